// Problems that the API reports in a rule, at their places in the text, and their corrections.

/** Return the problems that the API finds in the rule, with their places in the text. */
export function problems(text, error) {
  return (error?.problems ?? []).map(({pointer, text: said}) => ({
    ...text.place(ownPointer(pointer)), place: fieldName(pointer), severity: "error", text: said, mend: suggestion(text, pointer, said)}));
}

export function warnings(text, reply) {
  return (reply?.warnings ?? []).filter(({pointer}) => pointer.startsWith("/as_if/0")).map(({pointer, text: said, nearest}) => {
    const place = text.place(ownPointer(pointer));
    return {...place, place: fieldName(pointer), severity: "warning", text: nearest ? `${said}; did you mean ${nearest}?` : said,
      mend: nearest ? mended(text, place, Number(/column (\d+)/.exec(said)?.[1]), nearest) : null};
  });
}

function ownPointer(pointer) {
  return pointer.replace(/^\/as_if\/0/, "");
}

/** Return what a person calls the place of a pointer: "actions[0].args.name". */
export function fieldName(pointer) {
  return ownPointer(pointer).slice(1).split("/").map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"))
    .reduce((name, step) => (/^\d+$/.test(step) ? `${name}[${step}]` : name ? `${name}.${step}` : step), "");
}

/** Return the change that writes the path that was probably meant. */
function mended(text, {from, to}, column, nearest) {
  const written = text.text.slice(from, to);
  const quote = /^["']/.test(written) ? 1 : 0;
  const start = written.lastIndexOf("{", (column || 1) - 1 + quote);
  const end = start < 0 ? -1 : written.slice(start).search(/[}|]/);
  return end < 0 ? null : {name: `Write ${nearest}`, from: from + start + 1, to: from + start + end, insert: nearest};
}

/** Return the change that writes the name that the API suggests: "did you mean 'set-attribute'?". */
function suggestion(text, pointer, said) {
  const found = /did you mean '?([\w-]+)'?\?/.exec(said);
  if (found === null || !pointer.endsWith("/op")) return null;
  const {from, to} = text.place(ownPointer(pointer));
  const written = /^(["']?)(!?\s?)/.exec(text.text.slice(from, to));
  return {name: `Write ${found[1]}`, from, to, insert: `${written[1]}${written[2]}${found[1]}${written[1]}`};
}

/** Return why a rule has no step. */
export function absence(reply, rule) {
  if (rule?.enabled === false) return "The rule is disabled.";
  if (reply.outcome === "refused") return "The machine would be rejected before the rules of its phase run.";
  if (reply.outcome === "failed") return "The inspection fails before it comes to this rule.";
  if (rule?.phase === "early") return "Rules of phase early run when a report arrives; what a node has sent has passed them. Try a sample or a pasted report.";
  if (rule?.scope) return `The machine is not in the scope ${rule.scope}.`;
  return "The rule does not run for this machine.";
}
