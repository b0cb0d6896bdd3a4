// On how many machines of a query the rule matches: the headline of the workbench, which follows each change of the rule.

import {announce, el, fill} from "../dom.js";
import {pause, request} from "../api.js";
import {empty, notice} from "../parts.js";
import {isTemporary} from "../retry.js";
import {line} from "../messages.js";
import {problemsOf} from "../forms.js";

const MATCHES = "/v1/inspection_rules/matches";
/** Seconds after the last key. */
const AFTER_KEY = 0.4;
/** Nodes that are listed for each verdict. */
const LISTED = 200;
// [verdict of the API, mark, class, text behind the number of one and of several nodes, kind of the bar's part]
const VERDICTS = [["matched", "●", "holds", ["matches", "match"], "chosen"], ["unmatched", "○", "dim", ["does not match", "do not match"], "plain"],
  ["failed", "!", "bad", ["fails by it", "fail by it"], "bad"], ["unreached", "–", "dim", ["does not run it", "do not run it"], "plain"],
  ["no data", "–", "dim", ["has not been inspected", "have not been inspected"], "plain"]];

export class Coverage {
  /** @param {string} where selects the nodes; "" is all of them
   * @param {object} options `open({uuid, name})`: called with a node that is chosen; `asked(where)`: with another
   *   question */
  constructor(where, {open, asked, signal}) {
    this.where = where;
    this._open = open;
    this._signal = signal;
    this._rule = null;
    this._running = null;
    this._headline = el("p", {class: "big", role: "status", "aria-live": "off"});
    this._bar = el("div", {});
    this._lists = el("div", {class: "counts"});
    this._said = el("div", {});
    this._halt = el("button", {type: "button", hidden: true, onclick: () => this.stop()}, "Stop");
    const input = el("input", {type: "search", class: "grow", value: where, spellcheck: "false", autocomplete: "off", placeholder: "all nodes",
      "aria-label": "Nodes to try the rule on", title: "A question, such as vendor = Dell and memory_gib >= 512"});
    this.element = el("div", {class: "coverage"}, this._headline, this._bar, this._lists,
      el("form", {class: "bar", role: "search", onsubmit: (event) => {
        event.preventDefault();
        this.where = input.value.trim();
        asked(this.where);
        this.run(this._rule, 0);
      }}, input, this._halt, el("button", {}, "Try")), this._said);
  }

  /** Stop trying a rule that has changed. */
  stop() {
    this._running?.abort();
    this._halt.hidden = true;
  }

  /** Show that there is no rule that could be tried, or that the numbers are those of an earlier one. */
  clear() {
    this.stop();
    this._rule = null;
    if (this._lists.firstChild) this.element.classList.add("stale");
    else fill(this._headline, "No rule to try yet");
  }

  /** Try a rule on all nodes of the query. */
  async run(rule, afterS = AFTER_KEY) {
    this.stop();
    this._rule = rule;
    if (rule === null) return;
    const running = new AbortController();
    this._running = running;
    try {
      await this._run(rule, afterS, AbortSignal.any([running.signal, this._signal]));
    } catch (error) {
      if (error.name !== "AbortError") throw error;
    }
  }

  async _run(rule, afterS, signal) {
    await pause(afterS, signal);
    const found = new Map(VERDICTS.map(([verdict]) => [verdict, {number: 0, nodes: []}]));
    let [marker, total] = [undefined, 0];
    do {
      const body = {rule, nodes: this.where ? {where: this.where} : {}, marker};
      const {json, error} = await request("POST", MATCHES, {body, signal});
      if (error?.status === 503 && error.retryAfter !== null) {
        await pause(Math.min(error.retryAfter, 30), signal);
        continue;
      }
      if (error) {
        this._refused(error, problemsOf(json));
        return;
      }
      fill(this._said);
      total = json.total ?? total;
      for (const node of json.nodes) {
        const group = found.get(node.verdict);
        group.number += 1;
        if (group.nodes.length < LISTED) group.nodes.push(node);
      }
      marker = json.marker;
      this._draw(found, total, marker !== null);
    } while (marker !== null);
    announce(this._headline.textContent);
  }

  _refused(error, problems) {
    const ofQuery = problems.filter(({pointer}) => pointer === "where");
    // Problems of the rule are shown at the rule.
    if (problems.length > ofQuery.length) this.clear();
    else fill(this._said, ofQuery.length > 0 ? el("p", {class: "bad", role: "alert"}, ofQuery.map(({text}) => text).join("; "))
      : notice({...error, path: isTemporary(error) ? "/v1/inspection_rules/vocabulary" : null}, () => this.run(this._rule, 0)));
  }

  _draw(found, total, isRunning) {
    const count = (verdict) => found.get(verdict).number;
    const done = VERDICTS.reduce((sum, [verdict]) => sum + count(verdict), 0);
    this.element.classList.remove("stale");
    this._halt.hidden = !isRunning;
    fill(this._headline, total === 0 ? this.where ? "No nodes match the question" : "No nodes yet"
      : `Matches ${count("matched").toLocaleString()} of ${(done - count("no data")).toLocaleString()}`,
    isRunning && el("span", {class: "dim small"}, ` … ${done.toLocaleString()} of ${total.toLocaleString()} tried`));
    fill(this._bar, done > 0 && el("div", {class: "split", "aria-hidden": "true"}, VERDICTS.map(([verdict, , , , kind]) => count(verdict) > 0
      && el("span", {class: kind, style: {"flex-grow": String(count(verdict))}}))));
    const opened = new Set([...this._lists.querySelectorAll("details[open]")].map((each) => each.dataset.verdict));
    const had = document.activeElement?.closest?.("details")?.dataset.verdict;
    fill(this._lists, VERDICTS.map(([verdict, mark, kind, text]) => count(verdict) > 0 && this._list(
      verdict, [el("span", {class: kind, "aria-hidden": "true"}, mark), ` ${count(verdict).toLocaleString()} ${text[Number(count(verdict) !== 1)]}`], found.get(verdict), opened.has(verdict))));
    if (had && this._lists.isConnected) this._lists.querySelector(`details[data-verdict="${had}"] summary`)?.focus({preventScroll: true});
  }

  _list(verdict, summary, {number, nodes}, isOpen) {
    return el("details", {"data-verdict": verdict, open: isOpen}, el("summary", {}, summary), el("ul", {class: "plain"}, nodes.map((node) => el("li", {},
      el("button", {class: "link", onclick: () => this._open(node)}, node.name ?? node.uuid), node.reason && verdict !== "no data"
        && el("span", {class: "dim"}, " ", line(node.reason, 160))))),
    number > nodes.length && empty(`Shows the first ${nodes.length} of ${number.toLocaleString()}.`));
  }
}
