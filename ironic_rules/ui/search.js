// One search on every page, opened by Ctrl-K or "/": nodes, values of facts, traits and rules; and the field with
// suggestions that it consists of, which the filter of the fleet is, too.

import {announce, el, fill, modal, newId} from "./dom.js";
import {pause, request} from "./api.js";
import {address, go} from "./router.js";
import {called} from "./messages.js";

/** Seconds without typing before a request. */
const WAIT_S = 0.12;
const EACH = 6;
const MATCHED = {uuid: "UUID", instance: "instance", mac: "MAC address", bmc: "BMC address", serial: "serial number"};

/** Return a field with suggestions: {input, list, close}. Arrow keys move, Enter and clicks choose.
 * @param {object} given `label`; `find(text, signal)` returns a promise of suggestions, each with `children`, and
 *   `choose(suggestion)` takes one; `isFirstChosen`: Enter takes the first one, also if it comes later */
export function suggesting({label, find, choose, isFirstChosen = false, ...attributes}) {
  // The first suggestion is marked as soon as it comes, or taken, if the keys for that were pressed before.
  let [shown, active, asking, isMarked, isAwaited] = [[], -1, null, isFirstChosen, false];
  const id = newId("suggestions");
  const list = el("ul", {id, role: "listbox", class: "suggestions", "aria-label": `${label}: suggestions`, hidden: true});
  const input = el("input", {role: "combobox", "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": id,
    "aria-label": label, autocomplete: "off", spellcheck: "false", ...attributes, oninput: () => update(),
    onfocus: () => { if (!isFirstChosen) update(); }, onblur: () => { if (!isFirstChosen) close(); }, onkeydown: (event) => press(event)});

  function close() {
    asking?.abort();
    [asking, isMarked, isAwaited] = [null, isFirstChosen, false];
    draw([]);
  }

  function draw(found) {
    shown = found;
    fill(list, found.map((each, place) => el("li", {role: "option", id: `${id}-${place}`, "aria-selected": "false",
      // The field keeps the focus.
      onmousedown: (event) => event.preventDefault(), onclick: () => take(place)}, each.children)));
    list.hidden = found.length === 0;
    input.setAttribute("aria-expanded", String(!list.hidden));
    move(isMarked && found.length > 0 ? 0 : -1);
    isMarked = isFirstChosen;
  }

  function move(to) {
    list.children[active]?.setAttribute("aria-selected", "false");
    active = to;
    const option = list.children[active];
    option?.setAttribute("aria-selected", "true");
    option?.scrollIntoView({block: "nearest"});
    if (option) input.setAttribute("aria-activedescendant", option.id);
    else input.removeAttribute("aria-activedescendant");
  }

  function take(place) {
    const taken = shown[place];
    close();
    choose(taken, input);
  }

  async function update() {
    asking?.abort();
    const mine = asking = new AbortController();
    try {
      const found = await find(input.value, mine.signal, input);
      if (asking !== mine) return;
      asking = null;
      draw(found);
      if (isAwaited && found.length > 0) take(0);
      isAwaited = false;
    } catch (error) {
      if (error.name !== "AbortError") throw error;
    }
  }

  function press(event) {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (shown.length === 0) {
        isMarked = true;
        if (!asking) update();
      } else move((active + (event.key === "ArrowDown" ? 1 : active < 0 ? 0 : -1) + shown.length) % shown.length);
    } else if (event.key === "Enter" && (asking ? isMarked : active >= 0)) {
      event.preventDefault();
      if (asking) isAwaited = true;
      else take(active);
    } else if (event.key === "Escape" && !list.hidden && !isFirstChosen) {
      event.preventDefault();
      close();
    }
  }

  return {input, list, close};
}

/** Open the search. */
export function openSearch() {
  if (document.querySelector("dialog[open]")) return;
  const told = el("p", {class: "dim", role: "status"}, "A part of a name, MAC or BMC address, serial number, trait, rule …");
  const field = suggesting({label: "Search", isFirstChosen: true, autofocus: true,
    find: async (text, signal) => {
      if (text.trim() === "") return [];
      await pause(WAIT_S, signal);
      const {json, error} = await request("GET", `/v1/search?${new URLSearchParams({q: text.trim(), limit: EACH})}`, {signal});
      const found = error ? [] : json.results.map(suggestion);
      fill(told, error ? error.text : found.length === 0 ? "Nothing found." : `${found.length} found. Enter opens the one that is marked.`);
      return found;
    },
    choose: ({to}) => {
      dialog.close();
      go(to);
    }});
  const dialog = modal(null, {class: "search", "aria-label": "Search",
    onclick: (event) => { if (event.target === dialog) dialog.close(); }}, field.input, field.list, told);
  announce("Search");
}

function suggestion(found) {
  const line = (text, kind) => [el("span", {}, text), el("span", {class: "dim"}, kind)];
  if (found.type === "node") {
    return {to: address("node", found.uuid), children: line(found.name ?? "a node without a name",
      found.matched === "name" ? "node" : `node, ${MATCHED[found.matched] ?? found.matched} ${found.value}`)};
  }
  if (found.type === "rule") return {to: address("rules", {text: called(found)}), children: line(called(found), "rule")};
  return {to: address("fleet", {where: found.where}), children: found.type === "trait" ? line(found.trait, "trait: its nodes")
    : line(found.value, `${found.fact}: its nodes`)};
}

// Also while one types, where shortcuts do nothing.
addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === "k") {
    event.preventDefault();
    openSearch();
  }
});
