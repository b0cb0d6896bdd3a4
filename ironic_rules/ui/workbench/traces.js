// Results of a dry run, for people: a rule's conditions and actions, what changes, and what differs.

import {el} from "../dom.js";
import {writeJson} from "../json.js";
import {changeList, changesOf} from "../changes.js";
import {short} from "../parts.js";
import {line, lines} from "../messages.js";

// Red is for failures only: a rule that does not match is as it should be.
const VERDICTS = {matched: ["●", "holds", "matches"], not: ["○", "dim", "does not match"], failed: ["!", "bad", "fails"],
  absent: ["–", "dim", "does not run"]};

/** Return the kind of verdict of a rule's step: a key of VERDICTS. */
export function verdictOf(step) {
  return step === undefined ? "absent" : step.error ? "failed" : step.matched ? "matched" : "not";
}

export function markOf(verdict) {
  const [mark, kind, text] = VERDICTS[verdict];
  return {mark, kind, text};
}

/** Return a rule's trace.
 * @param {object} step of the dry run's answer
 * @param {function} goTo called with the pointer of a condition or an action; null: the rule is not in the editor */
export function trace(step, goTo) {
  if (step.sensitive) return el("p", {class: "dim"}, "A sensitive rule shows only whether it matches.");
  return [
    step.error && el("div", {class: "bad"}, lines(step.error)), step.note && el("p", {}, step.note),
    step.conditions.length === 0 ? el("p", {class: "dim"}, "It has no conditions: it runs for every machine.")
      : el("ol", {class: "steps", "aria-label": "Conditions"}, step.conditions.map((found) => condition(found, goTo))),
    step.actions.length > 0 && [el("h3", {}, "Actions"),
      el("ol", {class: "steps", "aria-label": "Actions"}, step.actions.map((found) => action(found, goTo)))],
    changesOf(step.changes).length > 0 && [el("h3", {}, "Changes"), changeList(step.changes)],
  ];
}

function condition(found, goTo) {
  const isTrue = found.outcome === true;
  return el("li", {},
    el("div", {},
      truth(isTrue),
      pointed(found.pointer, found.op, goTo),
      found.why && [" ", el("strong", {}, found.why)], found.detail && [" ", el("code", {}, found.detail)],
      found.short_circuited && el("span", {class: "dim"}, " (an inspection does not come to it)")),
    found.note && el("p", {}, found.note),
    found.items ? loop(found) : values(found.arguments));
}

function truth(isTrue) {
  return [el("span", {class: `mark ${isTrue ? "holds" : "dim"}`, "aria-hidden": "true"}, isTrue ? "●" : "○"),
    el("span", {class: "unseen"}, isTrue ? "true: " : "false: ")];
}

function loop(found) {
  if (found.items.length === 0) return null;
  const decisive = found.items.filter((item) => item.outcome === true).length;
  const rest = found.items_total - found.items.length;
  return el("details", {open: found.items.length <= 3},
    el("summary", {}, `${found.multiple} of ${found.items_total}: true for ${decisive}`, rest > 0 && ` of the first ${found.items.length}`),
    el("ol", {class: "steps"}, found.items.map((item) => el("li", {class: item.needed ? "" : "dim"},
      truth(item.outcome === true),
      item.why && el("strong", {}, item.why), item.detail && [" ", el("code", {}, item.detail)],
      !item.needed && " (not needed)", values(item.arguments)))));
}

function values(found) {
  if (!found?.length) return null;
  return el("dl", {class: "arguments"}, found.map((argument) => [
    el("dt", {}, argument.name),
    el("dd", {},
      argument.written && [el("code", {}, argument.written), " → "],
      argument.type === "missing" ? el("strong", {}, "missing")
        : argument.size ? `${argument.size} bytes` : el("code", {}, short(writeJson(argument.value), 400)),
      argument.type !== "missing" && el("span", {class: "dim"}, ` ${argument.type}`),
      argument.missing && [el("span", {class: "dim"}, ", there is no "), el("code", {}, argument.missing)])]));
}

function action(found, goTo) {
  return el("li", {},
    el("div", {}, pointed(found.pointer, found.op, goTo), found.times !== 1 && ` ${found.times} times`),
    found.notes?.map((note) => el("p", {}, note)),
    found.runs?.slice(0, 20).map(values));
}

function pointed(pointer, text, goTo) {
  return goTo ? el("button", {class: "link", onclick: () => goTo(pointer), title: "Go to its line"}, text) : el("span", {}, text);
}

/** Return what an inspection of the machine would change, send and log. */
export function effect({plugin_data: data, would, messages, ...told}) {
  return [changeList(told), data?.patch?.length > 0 && el("details", {},
    el("summary", {}, `Plug-in data: ${data.patch.length} changes`), changeList({plugin_data: data.patch.slice(0, 50)})),
  would?.length > 0 && [el("h3", {}, "Messages it would send"), el("ul", {}, would.map((found) => el("li", {}, line(found.text, 300))))],
  messages?.length > 0 && [el("h3", {}, "Log"),
    el("ul", {}, messages.map(({level, text}) => el("li", {}, el("span", {class: "dim"}, `${level} `), line(text, 1500))))]];
}

/** Return how the result with the rule differs from that of the stored ones. */
export function difference(found) {
  const parts = [["Node", found.node], ["Traits", found.traits], ["Ports", found.ports], ["Plug-in data", found.plugin_data]]
    .filter(([, operations]) => operations?.length > 0).map(([title, operations]) => [el("h4", {}, title), changeList({node: operations})]);
  if (found.outcome) parts.unshift(el("p", {}, `The inspection would have ${found.outcome[0]}, and has ${found.outcome[1]} with this rule.`));
  return parts.length > 0 ? parts : el("p", {class: "dim"}, "Nothing: the stored rules do the same.");
}
