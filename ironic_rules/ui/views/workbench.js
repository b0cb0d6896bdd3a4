// The workbench: machines at the left, a rule in the middle, at the right what it would do. Every change of the rule is
// tried by a dry run of the API, which also says what is wrong with it: nothing here knows the rules of rules.

import {announce, el, fill} from "../dom.js";
import {pages, pause, request} from "../api.js";
import {address, go} from "../router.js";
import {confirmed, empty, loading, notice, section, showsError} from "../parts.js";
import {isTemporary} from "../retry.js";
import {shortcut} from "../shortcuts.js";
import {ruleSaved} from "../guide.js";
import {called, line, lines} from "../messages.js";
import {tree} from "../tree.js";
import {RuleEditor} from "../workbench/editor.js";
import {Text, flow, isJson, toJson, toYaml} from "../workbench/text.js";
import {completing} from "../workbench/completion.js";
import {Draft, draftOf, forget, keep} from "../workbench/drafts.js";
import {MOST, chooseMachines, nodeMachine, sampleMachines} from "../workbench/machines.js";
import {conditionAt} from "../workbench/paths.js";
import {chooseAction, chooseCondition} from "../workbench/insertions.js";
import {Coverage} from "../workbench/coverage.js";
import {absence, fieldName, problems, warnings} from "../workbench/problems.js";
import {problemsOf} from "../forms.js";
import {WITHHELD, conflict, read, saveFile, store, written} from "../workbench/saving.js";
import {difference, effect, markOf, trace, verdictOf} from "../workbench/traces.js";
import {matrix} from "../workbench/matrix.js";

export const title = "Workbench";

const DRY_RUN = "/v1/inspection_rules/dry_run";
const VOCABULARY = "/v1/inspection_rules/vocabulary";
/** Milliseconds after the last key. */
const AFTER_KEY = 80;
/** Dry runs at a time: the service has room for four. */
const AT_ONCE = 3;
const NOTHING_SENT = "This node has not been inspected yet: there is nothing to try a rule on.";
/** States in which a node mostly has been inspected. */
const INSPECTED = /^(?:manageable|available|active)$/;
/** Nodes that are shown at first. */
const FIRST = 4;
/** An action that changes nothing: a rule without an action is tried with it. */
const NO_ACTION = [{op: "del-attribute", args: {path: "/extra/rule-without-action"}}];

// The values stay while other views are shown.
let machines = [];
let currentMachine = null;
let vocabulary = null;
let isComparing = false;
let where = ""; // the question that selects the nodes of the headline
let justSaved = null; // the rule that was new, whose address is now another

export async function show(main, {path, query}, signal) {
  fill(main, el("div", {class: "head"}, el("h1", {}, title)), loading("Loading …", 20));
  const bench = new Workbench(main, signal);
  where = query.get("where") ?? where;
  const error = await bench.prepare(path[0] ?? null, query.get("nodes")?.split(",").filter(Boolean) ?? []);
  if (signal.aborted) return;
  if (error) fill(main, el("div", {class: "head"}, el("h1", {}, title)), notice(error, () => show(main, {path, query}, signal)));
  else bench.show();
}

class Workbench {
  constructor(main, signal) {
    this._main = main;
    this._signal = signal;
    this._known = {vocabulary: null, data: null};
    this._rules = [];
    this._replies = new Map();
    this._errors = new Map();
    this._shown = {rule: null, machine: null};
    this._running = null;
    this._hasBegun = false; // the results are those of the present text, as far as there are any
    this._isStopped = false;
    this._timer = null;
    this._given = anyUuid();
  }

  /** Get what the view needs; return an error as request() has it, or null. */
  async prepare(uuid, nodes) {
    const signal = this._signal;
    const [known, rules] = await Promise.all([
      vocabulary === null ? request("GET", VOCABULARY, {signal}) : {json: vocabulary, error: null},
      pages("/v1/inspection_rules?sort_key=execution&limit=1000", "inspection_rules", {signal, most: 5000})]);
    if (known.error ?? rules.error) return known.error ?? rules.error;
    vocabulary = known.json;
    this._known.vocabulary = vocabulary;
    this._rules = rules.items;
    this._names = new Map(rules.items.map((rule) => [rule.uuid, called(rule)]));
    this._draft = draftOf(uuid);
    if (this._draft === null || (!this._draft.isDirty && uuid !== null)) {
      const {draft, error} = await this._begin(uuid);
      if (error) return error;
      this._draft = draft;
    }
    keep(this._draft);
    return await this._prepareMachines(nodes);
  }

  async _begin(uuid) {
    if (uuid === null) return {draft: new Draft(null, ""), error: null};
    const {rule, tag, error} = await read(uuid, this._signal);
    if (error) return {draft: null, error};
    const withheld = rule.actions === undefined ? WITHHELD
      : rule.sensitive && "This rule is sensitive: its conditions and actions are never shown, so it cannot be changed here.";
    if (withheld) return {draft: null, error: {status: 0, text: withheld}};
    const text = toYaml(written(rule, vocabulary));
    // A built-in rule is changed where the service reads it: here it is where a new one begins.
    return {draft: rule.built_in ? new Draft(null, text) : new Draft(uuid, text, tag, rule), error: null};
  }

  async _prepareMachines(nodes) {
    for (const uuid of nodes.slice(0, MOST)) {
      if (!machines.some((machine) => machine.id === `node ${uuid}`)) machines.push(nodeMachine(uuid));
    }
    if (nodes.length > 0) currentMachine = machines.find((machine) => machine.id === `node ${nodes[0]}`);
    if (machines.length === 0) {
      const {json} = await request("GET", `/v1/nodes?${new URLSearchParams({fields: "uuid,name,provision_state", limit: 50, ...where && {where}})}`, {signal: this._signal});
      machines = (json?.nodes ?? []).filter((node) => INSPECTED.test(node.provision_state)).slice(0, FIRST).map((node) => nodeMachine(node.uuid, node.name ?? node.uuid));
    }
    if (machines.length === 0) {
      const known = await sampleMachines(this._signal);
      if (known.error) return known.error;
      machines = known.machines.slice(0, 1);
    }
    currentMachine ??= machines[0];
    const unnamed = machines.filter((machine) => machine.kind === "node" && machine.id === `node ${machine.name}`);
    await Promise.all(unnamed.map(async (machine) => {
      const {json} = await request("GET", `/v1/nodes/${encodeURIComponent(machine.name)}?fields=uuid,name`, {signal: this._signal});
      machine.name = json?.name ?? machine.name;
    }));
    await currentMachine.load(this._signal); // so that its inventory moves nothing; _inspect tells of an error
    return null;
  }

  show() {
    const signal = this._signal;
    this._tree = null;
    this._inventory = el("div", {});
    this._machineBar = el("div", {class: "machines", role: "group", "aria-label": "Machines"});
    this._editor = new RuleEditor(this._draft.text, (text) => this._typed(text), completing(this._known));
    signal.addEventListener("abort", () => {
      clearTimeout(this._timer);
      this._running?.abort();
      this._editor.close();
    }, {once: true});
    this._coverage = new Coverage(where, {signal, open: (node) => this._open(node), asked: (text) => {
      where = text;
      this._note();
    }});
    this._problems = el("div", {class: "problems", role: "status", "aria-live": "polite"});
    this._said = el("div", {});
    this._verdict = el("div", {"aria-live": "off"});
    this._progress = el("div", {class: "progress"});
    this._matrix = el("div", {});
    this._save = el("button", {class: "primary", onclick: () => this._store()}, "Save");
    const compare = el("input", {type: "checkbox", checked: isComparing, onchange: () => { isComparing = compare.checked; this._run(); }});
    const name = this._draft.uuid === null ? "New rule" : this._names.get(this._draft.uuid) ?? this._draft.uuid;
    fill(this._main,
      el("div", {class: "head"}, el("h1", {}, title), el("span", {class: "dim"}, name)),
      el("div", {class: "workbench"},
        el("div", {class: "stack"}, section("Inventory",
          this._machineBar,
          el("p", {class: "dim"}, "Click a value, or press Enter on it, to make a condition."),
          this._inventory)),
        el("div", {class: "stack"}, section("Rule",
          el("div", {class: "bar"}, this._chooser(), el("button", {onclick: () => this._addAction()}, "Add action …"),
            el("button", {onclick: () => this._convert()}, "YAML ⇄ JSON"),
            el("button", {onclick: () => this._export()}, "Save as file"),
            this._draft.uuid !== null && el("button", {onclick: () => this._again()}, "Discard changes"),
            el("span", {class: "grow"}), this._save),
          this._said, this._editor.element, this._problems)),
        el("div", {class: "stack verdicts"}, section("Verdict", this._coverage.element,
          el("label", {class: "choice"}, compare, "Compare with the stored rules"), this._verdict))),
      el("div", {class: "stack verdicts"}, this._progress, this._matrix));
    shortcut("e", "Go to the rule", () => this._editor.focus(), signal);
    shortcut("a", "Add an action", () => this._addAction(), signal);
    shortcut("i", "Search the inventory", () => this._tree?.focusSearch(), signal);
    shortcut("m", "Choose machines", () => this._choose(), signal);
    // In the editor, too, where the keys above are typed.
    addEventListener("keydown", (event) => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "s") {
        event.preventDefault();
        this._store();
      }
      // An element that closes on Escape itself, such as a completion, has said so.
      if (event.key === "Escape" && !event.defaultPrevented && !document.querySelector("dialog[open]") && this._isTrying()) this._stop();
    }, {signal});
    if (justSaved !== null && justSaved.uuid === this._draft.uuid) this._say(justSaved);
    justSaved = null;
    this._showMachines();
    this._inspect(currentMachine);
    this._run();
  }

  /** Say that a rule was saved. */
  _say(rule) {
    fill(this._said, el("div", {class: "notice good", role: "status"}, el("p", {}, "Saved. The next inspections run it."),
      rule.warnings?.map((warning) => el("p", {}, `${warning.pointer}: ${warning.text}`))));
  }

  _chooser() {
    const select = el("select", {"aria-label": "Rule to change", onchange: () => {
      go(select.value ? address("workbench", select.value) : address("workbench"));
    }}, el("option", {value: "", selected: this._draft.uuid === null}, "New rule"),
    this._rules.map((rule) => el("option", {value: rule.uuid, selected: rule.uuid === this._draft.uuid, disabled: rule.sensitive},
      `${called(rule)}${rule.built_in ? " (built-in)" : rule.enabled ? "" : " (disabled)"}`)));
    return select;
  }

  // ---- machines

  _showMachines() {
    fill(this._machineBar, machines.map((machine) => el("span", {class: "machine"},
      el("button", {"aria-pressed": String(machine === currentMachine), title: `${machine.kind} ${machine.name}`,
        onclick: () => this._select(machine)}, `${machine.name}`),
      machines.length > 1 && el("button", {"aria-label": `Without ${machine.name}`, title: "Remove", onclick: () => this._setMachines(
        machines.filter((other) => other !== machine))}, "×"))),
    el("button", {onclick: () => this._choose()}, "Choose machines …"));
  }

  async _choose() {
    const chosen = await chooseMachines(machines, this._signal);
    if (chosen !== null && !this._signal.aborted) this._setMachines(chosen);
  }

  async _setMachines(chosen) {
    machines = chosen;
    if (machines.length === 0) machines = (await sampleMachines(this._signal)).machines.slice(0, 1);
    const ids = new Set(machines.map((machine) => machine.id));
    for (const id of this._replies.keys()) if (!ids.has(id)) this._replies.delete(id);
    currentMachine = machines.find((machine) => machine.id === currentMachine?.id) ?? machines[0];
    this._note();
    this._showMachines();
    this._inspect(currentMachine);
    this._run();
  }

  /** Let the address name the nodes that are tried, for those who send it to others; it never has data. */
  _note() {
    const nodes = machines.filter((machine) => machine.kind === "node").map((machine) => machine.id.slice("node ".length));
    const rule = this._draft.uuid === null ? [] : [this._draft.uuid];
    history.replaceState(null, "", address("workbench", ...rule, {nodes: nodes.join(","), where}));
  }

  /** Show a node of the headline's lists, beside the machines that are chosen. */
  _open(node) {
    const known = machines.find(({id}) => id === `node ${node.uuid}`);
    if (known) this._select(known);
    else {
      currentMachine = nodeMachine(node.uuid, node.name ?? node.uuid);
      this._shown = {rule: null, machine: null};
      this._setMachines([currentMachine, ...machines].slice(0, MOST));
    }
    this._verdict.scrollIntoView({block: "nearest"});
  }

  _select(machine, rule = null) {
    currentMachine = machine;
    this._shown = {rule, machine: machine.id};
    this._showMachines();
    this._inspect(machine);
    this._draw();
  }

  /** Show the inventory of a machine. */
  async _inspect(machine) {
    const error = await machine.load(this._signal);
    if (machine !== currentMachine) return;
    this._known.data = error ? null : machine.data;
    const pick = (path, value) => this._addCondition(path, value);
    this._tree = error ? null : tree(machine.data, {label: `the inventory of ${machine.name}`, pick, actions: (path, value) => [
      el("button", {onclick: () => pick(path, value)}, "Make a condition")]});
    fill(this._inventory, this._tree ?? (error.status === 404 ? empty(NOTHING_SENT) : notice(error, () => this._inspect(machine))));
  }

  // ---- the rule

  _typed(text) {
    this._draft.text = text;
    keep(this._draft);
    clearTimeout(this._timer);
    this._timer = setTimeout(() => this._run(), AFTER_KEY);
    this._showSaved();
  }

  _showSaved() {
    const isStored = this._draft.uuid !== null && !this._draft.isDirty;
    this._save.textContent = this._draft.uuid === null ? "Save as new rule" : isStored ? "Saved" : "Save";
    this._save.disabled = isStored || this._draft.text.trim() === "";
  }

  async _addCondition(path, value) {
    if (conditionAt(path, () => ({})) === null) {
      announce("This key cannot be written in a template.");
      fill(this._said, notice({text: "A key of this path has brackets or braces, which a template cannot have."}));
      return;
    }
    this._insert("conditions", await chooseCondition(path, value, vocabulary));
  }

  async _addAction() {
    this._insert("actions", await chooseAction(vocabulary));
  }

  /** Return the text, if it can be read; else say so and return null. */
  _readable(otherwise) {
    const text = new Text(this._editor.text);
    if (text.value !== null) return text;
    fill(this._said, notice({text: `Correct the text first: ${otherwise}`}));
    return null;
  }

  /** Write a condition or an action into the text; null is none. */
  _insert(part, item) {
    if (item === null || this._signal.aborted) return;
    const change = new Text(this._editor.text).adding(part, item);
    if (change === null) {
      fill(this._said, notice({text: "Correct the text first: nothing can be added to a rule that cannot be read."}));
      return;
    }
    this._said.replaceChildren();
    this._editor.change(change);
    this._editor.focus();
    announce(`${part === "actions" ? "Action" : "Condition"} added: ${flow(item)}`);
  }

  _convert() {
    const text = this._readable("only a rule that can be read can be converted.");
    if (text === null) return;
    const {length} = this._editor.text;
    this._editor.change({from: 0, to: length, insert: isJson(text.text) ? toYaml(text.value) : toJson(text.value)});
  }

  _export() {
    const text = this._readable("this is not a rule yet.");
    if (text === null) return;
    const {name, bundle} = saveFile(this._editor.text, text.value, this._draft.uuid);
    fill(this._said, el("div", {class: "notice", role: "status"}, el("p", {}, "To bring the file into a service:"),
      el("pre", {}, `openstack baremetal inspection rule apply ${name}${bundle ? ` --bundle '${bundle.replaceAll("'", "'\\''")}'` : ""}`)));
  }

  async _again() {
    if (this._draft.isDirty && !await confirmed("Discard what you have typed?", "Discard")) return;
    forget(this._draft);
    go(address("workbench", this._draft.uuid), {replace: true});
  }

  // ---- trying

  /** Try the rule on all machines, beginning with the one that is shown; with `rest` only on those without a result. */
  async _run(rest = false) {
    clearTimeout(this._timer);
    this._running?.abort();
    if (!rest) this._coverage.stop();
    const running = new AbortController();
    this._running = running;
    this._isStopped = false;
    const isRest = rest && this._hasBegun;
    this._hasBegun = isRest;
    this._showSaved();
    const text = new Text(this._editor.text);
    if (text.text.trim() === "") {
      this._editor.mark([]);
      fill(this._problems, el("p", {class: "dim"}, "Begin with a value of the inventory, an action, or type: Ctrl-Space completes."));
      fill(this._verdict);
      fill(this._matrix);
      this._coverage.clear();
      this._end(running);
      return;
    }
    if (text.errors.length > 0) {
      this._coverage.clear();
      this._tell(text, text.errors.map((error) => ({...error, severity: "error", mend: null})));
      this._end(running);
      this._stale();
      return;
    }
    this._verdict.setAttribute("aria-busy", "true");
    try {
      if (isRest) await this._tryEach(this._untried(), text, running.signal);
      else await this._tryAll(text, running.signal);
    } catch (error) {
      if (error.name !== "AbortError") throw error;
      return;
    }
    this._verdict.removeAttribute("aria-busy");
    this._end(running);
  }

  /** Let the machines that have not been tried be. */
  _stop() {
    this._running.abort();
    this._running = null;
    this._isStopped = true;
    this._verdict.removeAttribute("aria-busy");
    if (this._hasBegun) this._draw();
    else this._stale("Stopped before there was a result.");
    this._showProgress();
    announce(`Stopped. ${this._tried()}`);
  }

  _end(running) {
    if (this._running === running) this._running = null;
    const hadFocus = this._progress.contains(document.activeElement);
    this._showProgress();
    if (hadFocus && !this._progress.firstChild) this._matrix.querySelector(".matrix")?.focus();
  }

  _isTrying() {
    return this._running !== null && machines.length > 1;
  }

  _untried() {
    return machines.filter(({id}) => !this._replies.has(id) && !this._errors.has(id));
  }

  _tried() {
    return `${this._hasBegun ? machines.length - this._untried().length : 0} of ${machines.length} machines are tried.`;
  }

  /** Show how many machines are tried, with a button that keeps its place and the focus. */
  _showProgress() {
    if (!this._isTrying() && !(this._isStopped && machines.length > 1)) {
      this._progress.replaceChildren();
      return;
    }
    if (!this._progress.firstChild) {
      this._bar = el("progress", {"aria-label": "Machines that are tried"});
      this._count = el("span", {class: "dim"});
      this._halt = el("button", {onclick: () => { if (this._isTrying()) this._stop(); else this._run(true); }});
      fill(this._progress, this._bar, this._count, this._halt);
    }
    this._bar.max = machines.length;
    this._bar.value = this._hasBegun ? machines.length - this._untried().length : 0;
    this._count.textContent = this._tried();
    this._halt.textContent = this._isTrying() ? "Stop" : "Try the rest";
    this._halt.title = this._isTrying() ? "Stop (Escape)" : "";
  }

  async _tryAll(text, signal) {
    const queue = machines.filter((machine) => machine !== currentMachine);
    const [replies, errors] = [new Map(), new Map()];
    this._showProgress();
    // The one that is shown also tells whether the rule is valid; if it has no data, the next one does.
    let first = await this._try(currentMachine, text, replies, errors, signal);
    while (first.reply === null && first.error.problems.length === 0 && queue.length > 0) {
      first = await this._try(queue.shift(), text, replies, errors, signal);
    }
    if (first.reply === null && first.error.problems.length === 0) fill(this._problems, el("p", {class: "dim"}, "The rule is not checked."));
    else this._tell(text, [...problems(text, first.error), ...warnings(text, first.reply)]);
    if (first.error?.problems.length > 0) {
      this._coverage.clear();
      this._stale();
      return;
    }
    [this._replies, this._errors] = [replies, errors];
    this._hasBegun = true;
    this._coverage.run(this._asked(text));
    await this._tryEach(queue, text, signal);
  }

  async _tryEach(queue, text, signal) {
    const [replies, errors] = [this._replies, this._errors];
    this._draw();
    this._showProgress();
    let drawn = performance.now();
    const work = async () => {
      while (queue.length > 0) {
        await this._try(queue.shift(), text, replies, errors, signal);
        signal.throwIfAborted();
        this._showProgress();
        // A table of many columns is not drawn anew for each of them.
        if (performance.now() - drawn > 400) {
          this._draw();
          drawn = performance.now();
        }
      }
    };
    await Promise.all(Array.from({length: AT_ONCE}, work));
    this._running = null;
    this._draw();
  }

  /** Try the rule on one machine; return {reply, error} and note it. */
  async _try(machine, text, replies, errors, signal) {
    let error = machine.asked === null ? await machine.load(signal) : null;
    let reply = null;
    while (error === null && reply === null) {
      const body = {...machine.asked, as_if: [this._asked(text)]};
      if (isComparing && machine === currentMachine) body.compare = true;
      ({json: reply, error} = await request("POST", DRY_RUN, {body, signal}));
      // A dry run changes nothing: it may be begun again when the service answers.
      if (error) error = {...error, path: VOCABULARY, problems: problemsOf(reply).filter(({pointer}) => pointer.startsWith("/as_if/0"))};
      if (error) reply = null;
      // Others try rules, too: there is room for a few at a time.
      if (error?.status === 503 && error.retryAfter !== null) {
        this._wait(error);
        await pause(Math.min(error.retryAfter, 30), signal);
        error = null;
      }
    }
    if (error) errors.set(machine.id, {...error, problems: error.problems ?? []});
    else replies.set(machine.id, reply);
    return {reply, error: errors.get(machine.id) ?? null};
  }

  /** Return the rule that a dry run has. */
  _asked({value}) {
    return {...value, actions: value.actions ?? NO_ACTION, uuid: typeof value.uuid === "string" ? value.uuid : this._draft.uuid ?? this._given};
  }

  _wait(error) {
    fill(this._said, el("p", {class: "dim waiting", role: "status"}, `${error.text} Trying again …`));
  }

  // ---- results

  /** Show what is wrong, in the text and below it. */
  _tell(text, found) {
    this._editor.mark(found);
    fill(this._problems, found.length === 0 ? text.value?.actions === undefined ? el("p", {class: "dim"}, "The rule has no action yet: add one before you save it.")
      : el("p", {class: "good"}, "The rule is valid.") : el("ul", {"aria-label": "Problems"}, found.map((problem) => el("li", {},
        el("button", {class: "link", onclick: () => this._editor.goTo(problem.from, problem.to)}, `Line ${text.lineOf(problem.from)}`),
        " ", problem.place && [el("code", {}, problem.place), " "],
        el("span", {class: problem.severity === "error" ? "bad" : "busy"}, `${problem.severity}: `), line(problem.text, 600),
        problem.mend && [" ", el("button", {onclick: () => this._editor.change(problem.mend)}, problem.mend.name)]))));
  }

  /** The results are those of an earlier text. */
  _stale(otherwise = "Correct the rule to see the verdict.") {
    this._verdict.removeAttribute("aria-busy");
    if (!this._verdict.firstChild) fill(this._verdict, empty(otherwise));
    else this._verdict.classList.add("dim");
  }

  _draw() {
    this._verdict.classList.remove("dim");
    this._said.querySelector(".waiting")?.remove();
    const machine = this._shown.machine === null ? currentMachine
      : machines.find((found) => found.id === this._shown.machine) ?? currentMachine;
    const error = this._errors.get(machine.id);
    const reply = this._replies.get(machine.id);
    const own = [...this._replies.values()][0]?.given["/as_if/0"] ?? null;
    const rule = this._shown.rule ?? own;
    if (error) {
      fill(this._verdict, error.status === 404 ? empty(NOTHING_SENT) : notice(error, () => this._run()));
    } else if (reply) this._drawVerdict(machine, reply, rule, own);
    else if (this._isStopped) fill(this._verdict, empty(`The rule has not been tried on ${machine.name}.`));
    fill(this._matrix, machines.length > 1 && section(`${machines.length} machines`, matrix(
      machines.filter((found) => !this._errors.has(found.id)), this._replies, {rule, machine: machine.id},
      (uuid, description) => this._nameOf(uuid, description), new Set([own]), this._running !== null,
      (opened, id) => this._select(machines.find((found) => found.id === id), opened)),
    this._errors.size > 0 && el("p", {class: "dim"}, "Without a result: ",
      machines.filter((found) => this._errors.has(found.id)).map((found) => found.name).join(", ")),
    !error && this._running === null && this._unanswered()));
  }

  /** Return a notice of the machines that had no answer, which are tried again; false if there are none. */
  _unanswered() {
    const failed = [...this._errors].filter(([, error]) => isTemporary(error));
    return failed.length > 0 && notice(failed[0][1], () => {
      for (const [id] of failed) this._errors.delete(id);
      return this._run(true);
    });
  }

  _nameOf(uuid, description) {
    if (uuid === this._given) return "this rule";
    const name = this._names.get(uuid) ?? (description || uuid);
    return uuid === this._draft.uuid ? `${name} (this rule)` : name;
  }

  _drawVerdict(machine, reply, rule, own) {
    const step = reply.steps.find((found) => found.rule === rule);
    const {mark, kind, text} = markOf(verdictOf(step));
    const name = rule === own ? "The rule" : this._nameOf(rule, step?.description);
    const goTo = rule !== own ? null : (pointer) => {
      const {from, to} = new Text(this._editor.text).place(pointer);
      this._editor.goTo(from, to);
    };
    const verdict = `${name} ${text} on ${machine.name}.`;
    fill(this._verdict,
      el("p", {class: `verdict ${kind}`}, el("span", {"aria-hidden": "true"}, mark), el("span", {}, verdict)),
      reply.failure && el("div", {class: "bad"}, el("p", {}, `The inspection ${reply.outcome === "refused" ? "would be rejected" : "would fail"}:`), lines(reply.failure.reason)),
      step ? trace(rule === own && new Text(this._editor.text).value?.actions === undefined ? {...step, actions: []} : step, goTo) : empty(absence(reply, new Text(this._editor.text).value)),
      rule !== own && el("p", {}, el("button", {onclick: () => { this._shown = {rule: null, machine: null}; this._draw(); }}, "Back to the rule that is written here")),
      el("h3", {}, "Changes by an inspection"), reply.outcome === "finished" ? effect(reply) : empty("Nothing: it would not be finished."),
      reply.difference && [el("h3", {}, "Compared with the stored rules"), difference(reply.difference)]);
    if (verdict !== this._told) announce(verdict);
    this._told = verdict;
  }

  // ---- saving

  async _store() {
    const text = new Text(this._editor.text);
    if (text.value === null) {
      this._tell(text, text.errors.map((error) => ({...error, severity: "error", mend: null})));
      announce("The text cannot be read; it is not saved.");
      return;
    }
    if (this._draft.uuid !== null && !this._draft.isDirty) return;
    const draft = this._draft;
    this._save.disabled = true;
    const {json, headers, error} = await store(draft, text.value, vocabulary, this._signal);
    this._showSaved();
    if (!error) this._stored(draft, text.text, json, headers.get("ETag"));
    else if (draft.uuid !== null && [404, 409, 412].includes(error.status)) await this._conflict(draft);
    else {
      const {places, ...told} = error;
      const found = problemsOf(json);
      if (found.length > 0) this._tell(text, found.map(({pointer, text: said}) => ({...text.place(pointer), place: fieldName(pointer), severity: "error", text: said, mend: null})));
      fill(this._said, notice({...told, places: found.length > 0 ? [] : places}));
    }
  }

  _stored(draft, text, rule, tag) {
    forget(draft);
    const saved = new Draft(rule.uuid, text, tag, rule);
    // Text typed while the request was on its way stays.
    saved.text = this._editor.text;
    keep(saved);
    announce("Saved");
    const isNew = draft.uuid === null;
    this._draft = saved;
    this._names.set(rule.uuid, called(rule));
    this._showSaved();
    this._say(rule);
    ruleSaved();
    if (!isNew) return;
    justSaved = rule;
    go(address("workbench", rule.uuid), {replace: true});
  }

  async _conflict(draft) {
    const {rule, tag, error} = await read(draft.uuid, this._signal);
    if (error?.status !== 404 && showsError(this._said, error)) return;
    const theirs = error ? null : toYaml(written(rule, vocabulary));
    const mine = isJson(this._editor.text) || theirs === null ? this._editor.text : toYaml(new Text(this._editor.text).value);
    const answer = await conflict(mine, theirs);
    if (this._signal.aborted || answer === null) return;
    if (answer === "mine") {
      const next = theirs === null ? new Draft(null, "") : new Draft(draft.uuid, theirs, tag, rule);
      next.text = this._editor.text;
      if (theirs === null) forget(draft);
      this._draft = next;
      keep(next);
      await this._store();
    } else {
      this._draft = new Draft(draft.uuid, theirs, tag, rule);
      keep(this._draft);
      this._editor.open(theirs);
      this._run();
    }
  }
}

/** Return a random UUID; crypto.randomUUID() is only there with TLS. */
function anyUuid() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}
