// A first rule in five steps, for those who see the page for the first time. "Next step" goes where the step is done. It ends
// with the first rule that is saved, or when they say so, and this browser keeps that it is over, and nothing else.

import {request} from "./api.js";
import {announce, el, fill} from "./dom.js";
import {address, go, here} from "./router.js";
import {keep, kept} from "./theme.js";

const OVER = "guide-is-over";
const place = document.getElementById("guide");
let ident = null; // of the node with which it began
let other = null; // a promise of the UUID of a node that has not failed: where an inspection fails in a hook, no rule runs
let step = 0;
let isSaved = false;
let isEnded = false; // for browsers that keep nothing

// [title, text, the view where it is done]
const STEPS = [
  ["See why", "The machine's page says why its inspection failed. The time line shows what each rule did. The inventory shows "
    + "everything the machine reported.", "node"],
  ["Click a value", "Click a value of a machine in the tree on the left: it becomes a condition of the rule. The right side shows "
    + "the value, and whether the condition matches. A machine that has not failed is shown too, because no rule runs after a "
    + "hook has ended an inspection.", "workbench"],
  ["Choose what happens", "Add an action, such as add-trait or set-attribute. While you type, the editor offers names, paths and "
    + "values. The changes for the machine are shown below the verdicts. Nothing is changed yet.", "workbench"],
  ["Save", "Save the rule: the next inspections run it.", "workbench"],
  ["Inspect", "Inspect the machine again. In the demo, somebody has given it a disk, so the inspection succeeds, and its time "
    + "line names your rule. \u201cRe-run rules\u201d runs the rules on its newest report, without a reboot.", "node"],
];
const SAVE = 3;

/** Return whether this browser has seen the guide to its end. */
export function isOver() {
  return isEnded || kept(OVER) !== null;
}

function remember() {
  isEnded = true;
  keep(OVER, "1");
}

/** Begin with the node of that UUID or name, unless it is over. */
export function begin(node) {
  if (isOver()) return;
  ident = node;
  step = 0;
  place.hidden = false;
  draw();
  other = findOther();
}

/** Return a promise of the address of the workbench with a machine, and with one beside it that has not failed. */
export async function benchOf(node, beside = findOther()) {
  const uuid = await beside;
  return address("workbench", {nodes: uuid === null ? node : `${uuid},${node}`});
}

/** A rule was saved: what is left is to see it run. */
export function ruleSaved() {
  isSaved = true;
  remember();
  if (place.hidden) return;
  step = SAVE;
  draw();
}

async function findOther() {
  const {json} = await request("GET", "/v1/nodes?provision_state=manageable&fields=uuid&limit=1");
  return json?.nodes?.[0]?.uuid ?? null;
}

function end() {
  remember();
  place.hidden = true;
  place.replaceChildren();
  document.getElementById("main").focus({preventScroll: true});
}

function draw() {
  let [title, text] = STEPS[step];
  if (step === SAVE && isSaved) [title, text] = ["Saved", "The next inspections run your rule: see it at the machine."];
  const isLast = step === STEPS.length - 1;
  const next = el("button", {class: "primary", onclick: () => (isLast ? end() : move(1))}, isLast ? "Done" : "Next step");
  fill(place,
    el("h2", {}, el("span", {class: "dim"}, `A first rule, ${step + 1} of ${STEPS.length}: `), title),
    el("p", {}, text),
    el("div", {class: "buttons"}, step > 0 && el("button", {onclick: () => move(-1)}, "Step back"), next,
      !isLast && el("button", {class: "quiet", onclick: end}, "Skip the guide")));
  return next;
}

/** Go on or back, and to the view where the step is done, unless it is shown already. */
async function move(by) {
  step += by;
  const [title,, view] = STEPS[step];
  draw().focus();
  announce(`Step ${step + 1}: ${title}`);
  if (here().name !== view) go(view === "node" ? address("node", ident) : await benchOf(ident, other));
}

addEventListener("hashchange", () => {
  if (!place.hidden && isSaved && !["node", "workbench"].includes(here().name)) end();
});
