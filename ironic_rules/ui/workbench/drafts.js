// Drafts, by rule: each stays in memory until it is saved or thrown away, also while another view is shown. A
// reload forgets it, so the browser asks before that.

/** @type {Map<string, Draft>} by the UUID of the stored rule; "" is a new one */
const drafts = new Map();

/** The rule that is being written. */
export class Draft {
  /** @param {string | null} uuid of the stored rule that it changes; null: it is a new rule
   * @param {string} text what is stored, and at first what is written
   * @param {string | null} tag the ETag of what is stored
   * @param {object | null} stored the rule as the API shows it */
  constructor(uuid, text, tag = null, stored = null) {
    this.uuid = uuid;
    this.text = text;
    this.begun = text;
    this.tag = tag;
    this.stored = stored;
  }

  get isDirty() {
    return this.text !== this.begun;
  }
}

export function draftOf(uuid) {
  return drafts.get(uuid ?? "") ?? null;
}

export function keep(draft) {
  drafts.set(draft.uuid ?? "", draft);
}

export function forget(draft) {
  drafts.delete(draft.uuid ?? "");
}

addEventListener("beforeunload", (event) => {
  if ([...drafts.values()].some((draft) => draft.isDirty)) event.preventDefault();
});
