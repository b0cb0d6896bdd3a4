// Which rule gave a node its traits, from the patches of its inspections.

const ITEM = /^\/traits\/(?:-|\d+)$/;

/**
 * Return a map from a trait to the UUID of the rule that gave it last.
 *
 * Traits are stored in order, so that one new trait is a patch that also moves those behind it: the new one is the first
 * that a patch writes. Where a rule adds several, those that earlier rules of the inspection had written are not new.
 *
 * @param {Array} inspections as the API has them, the newest first
 */
export function giversOfTraits(inspections) {
  const givers = new Map();
  for (const {rules} of inspections) {
    const written = new Set();
    for (const {rule, changes} of rules ?? []) {
      const patch = (changes?.node ?? []).filter(({path, op}) => ITEM.test(path) && op !== "remove");
      const added = patch.filter(({op}) => op === "add").length;
      const values = patch.map(({value}) => value);
      const whole = (changes?.node ?? []).find(({path}) => path === "/traits");
      const found = whole ? [whole.value].flat() : added === 1 ? values.slice(0, 1) : values;
      for (const trait of found) {
        if (!written.has(trait) && !givers.has(trait)) givers.set(trait, rule);
      }
      for (const trait of values) written.add(trait);
    }
  }
  return givers;
}
