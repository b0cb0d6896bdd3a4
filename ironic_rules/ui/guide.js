// A first rule in five steps, for those who see the page for the first time. It stays while they walk through the views,
// and ends when they say so; nothing of it is kept.

import {request} from "./api.js";
import {announce, el, fill} from "./dom.js";
import {address} from "./router.js";

const place = document.getElementById("guide");
let ident = null; // of the node with which it began
let other = null; // the UUID of a node that has not failed: where an inspection fails in a hook, no rule runs
let step = 0;

// [title, text, [text of a link, its address]]
const STEPS = [
  ["See why", "The reason of the failure is at the top of the machine's page. The time line has its inspections with what each "
    + "rule did, and the inventory has all that the machine has sent.",
  () => ["The machine", address("node", ident)]],
  ["Open the workbench", "There, a rule stands between what machines have sent and what it does with them. Beside this machine is one that "
    + "has not failed, because no rule runs where a hook has ended the inspection.",
    () => ["The workbench with this machine", address("workbench", {nodes: other === null ? ident : `${other},${ident}`})]],
  ["Click a value", "A value of a machine, clicked in the tree on the left, becomes a condition of the rule. The right side says "
    + "what the condition found, and why it holds or does not.", null],
  ["Choose what happens", "Add an action, such as add-trait or set-attribute: while you type, names, paths and values are "
    + "offered. Below the verdicts is what the machine would get. Nothing is changed yet.", null],
  ["Save, and inspect", "Save the rule, and let the machine be inspected again. In the demo, somebody has given it a disk meanwhile: it "
    + "turns green, and its time line names your rule. \u201cApply again\u201d does without a reboot, with what the machine has sent before.",
  () => ["The machine", address("node", ident)]],
];

/** Begin with the node of that UUID or name. */
export function begin(node) {
  ident = node;
  step = 0;
  other = null;
  place.hidden = false;
  draw();
  findOther(node);
}

async function findOther(begun) {
  const {json} = await request("GET", "/v1/nodes?provision_state=manageable&fields=uuid&limit=1");
  if (ident !== begun) return;
  other = json?.nodes?.[0]?.uuid ?? null;
}

function end() {
  place.hidden = true;
  place.replaceChildren();
  document.getElementById("main").focus({preventScroll: true});
}

function draw() {
  const [title, text, link] = STEPS[step];
  const [words, to] = link === null ? [] : link();
  const isLast = step === STEPS.length - 1;
  const next = el("button", {class: "primary", onclick: () => (isLast ? end() : move(1))}, isLast ? "Done" : "Next step");
  fill(place,
    el("h2", {}, el("span", {class: "dim"}, `A first rule, ${step + 1} of ${STEPS.length}: `), title),
    el("p", {}, text, to && [" ", el("a", {href: to}, words)]),
    el("div", {class: "buttons"}, step > 0 && el("button", {onclick: () => move(-1)}, "Step back"), next,
      !isLast && el("button", {class: "quiet", onclick: end}, "Skip the guide")));
  return next;
}

function move(by) {
  step += by;
  draw().focus();
  announce(`Step ${step + 1}: ${STEPS[step][0]}`);
}
