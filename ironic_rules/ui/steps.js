// The steps of a deployment, as the API previews them.

import {el} from "./dom.js";
import {empty, short, table} from "./parts.js";

/** Return the arguments of a step; "" if it has none. */
export function args(step) {
  return Object.keys(step.args ?? {}).length > 0 ? el("code", {}, short(step.args, 400)) : "";
}

/** Return the steps of a preview in order, with where each comes from, problems and warnings. */
export function stepTable(told) {
  return [
    told.problems?.map((problem) => el("div", {class: "notice bad"}, el("p", {}, problem.text ?? String(problem)))),
    told.warnings?.map((warning) => el("div", {class: "notice busy"}, el("p", {}, warning.text ?? String(warning)))),
    told.deploy_steps.length === 0 ? empty(told.reason ?? "No step is known.") : table("Steps in their order", [
      {text: "#", class: "num"}, "Step", "From", "Arguments"], told.deploy_steps.map((step, index) => [
      {class: "num", children: index + 1}, el("code", {}, `${step.interface}.${step.step}`),
      step.source === "code" ? el("span", {class: "dim"}, "driver") : el("strong", {}, step.source),
      args(step)])),
    told.complete === false && empty("More steps may be known when a conductor has talked to the machine."),
  ];
}
