// Forms in dialogs. Nothing here checks what was typed: the API does, and each of its problems stands at the field that
// it is about.

import {announce, el, fill, modal, newId} from "./dom.js";
import {request} from "./api.js";
import {notice} from "./parts.js";
import {readJson} from "./json.js";

/** Return the problems that an error reply of the API lists: {pointer, text} each. */
export function problemsOf(json) {
  try {
    return JSON.parse(json.error_message).problems ?? [];
  } catch {
    return [];
  }
}

/** Return the traits that nodes and deploy templates have and that begin with a text. */
export async function traitsLike(typed) {
  const begin = typed.trim().toUpperCase();
  const [found, templates] = await Promise.all([begin && request("GET", `/v1/search?q=${encodeURIComponent(begin)}&limit=100`),
    request("GET", "/v1/deploy_templates?fields=name&limit=500")]);
  const names = [...(found?.json?.results ?? []).filter(({type}) => type === "trait").map(({trait}) => trait),
    ...(templates.json?.deploy_templates ?? []).map(({name}) => name)];
  return [...new Set(names)].filter((name) => name.startsWith(begin)).sort();
}

/** Return what a text means as JSON; what is no JSON is a text. */
export function meant(text) {
  try {
    return readJson(text);
  } catch {
    return text;
  }
}

/** Return a field: {element, input, pointer, value, tell}.
 * @param {object} options `label`; `pointer`: of what it is about in the body of the request; `help`; `value`;
 *   `options`: texts, or [value, text], for a choice; `suggest(typed)`: returns a promise of texts that complete it;
 *   `kind`: "area", "checkbox" or an input's type; the others are attributes */
export function field({label, pointer = null, help = null, value = "", options = null, suggest = null, kind = "text", ...attributes}) {
  const [id, list] = [newId("field"), newId("list")];
  const given = {id, "aria-describedby": `${id}-said`, spellcheck: "false", autocomplete: "off", ...attributes};
  const input = options ? el("select", given, options.map((option) => {
    const [key, text] = Array.isArray(option) ? option : [option, option];
    return el("option", {value: key, selected: key === value}, text);
  })) : kind === "area" ? el("textarea", given, value)
    : el("input", {...given, type: kind, value: kind === "checkbox" ? null : value, checked: kind === "checkbox" && value, list: suggest && list});
  const said = el("span", {id: `${id}-said`, class: "dim small"}, help);
  const offered = suggest && el("datalist", {id: list});
  let asked = null;
  const complete = async () => {
    if (asked === input.value) return;
    asked = input.value;
    const found = await suggest(input.value).catch(() => []);
    fill(offered, found.slice(0, 100).map((text) => el("option", {value: text})));
  };
  if (suggest) {
    input.addEventListener("input", complete);
    input.addEventListener("focus", complete);
  }
  const tell = (text) => {
    fill(said, text ?? help);
    said.className = text ? "bad small" : "dim small";
    input.toggleAttribute("aria-invalid", Boolean(text));
  };
  return {
    input, pointer, tell, get value() { return kind === "checkbox" ? input.checked : input.value; },
    element: el("div", {class: kind === "checkbox" ? "choice" : "field"}, kind === "checkbox" && input, el("label", {for: id}, label),
      kind !== "checkbox" && input, said, offered),
  };
}

/** Say each problem at the field whose pointer is the longest that it begins with; return those that no field is about. */
export function tellFields(fields, problems) {
  for (const each of fields) each.tell(null);
  const [told, rest] = [new Map(), []];
  for (const {pointer, text} of problems) {
    const [found] = fields.filter((each) => each.pointer !== null && `${pointer}/`.startsWith(`${each.pointer}/`))
      .sort((a, b) => b.pointer.length - a.pointer.length);
    if (found) told.set(found, [...told.get(found) ?? [], text]);
    else rest.push({pointer, text});
  }
  for (const [each, texts] of told) each.tell(texts.join("; "));
  [...told.keys()][0]?.input.focus();
  return rest;
}

/** Ask in a dialog; return a promise of the reply of `send`, null if nothing was sent.
 * @param {function} fields returns those that are shown now
 * @param {function} send returns a promise of {json, error}, as of request(); with an error the dialog stays */
export function form(title, yes, content, fields, send) {
  return new Promise((resolve) => {
    const said = el("div", {});
    let answer = null;
    const submit = el("button", {class: "primary"}, yes);
    const dialog = modal(title, {class: "form", closed: () => resolve(answer)},
      el("form", {onkeydown: (event) => {
        if (event.key !== "Enter" || event.target.tagName !== "SELECT") return; // which does not submit by itself
        event.preventDefault();
        event.currentTarget.requestSubmit();
      }, onsubmit: async (event) => {
        event.preventDefault();
        if (submit.disabled) return;
        submit.disabled = true;
        const reply = await send();
        submit.disabled = false;
        if (!reply.error) {
          answer = reply;
          dialog.close();
          return;
        }
        const problems = reply.problems ?? problemsOf(reply.json);
        const rest = tellFields(fields(), problems);
        fill(said, problems.length === 0 ? notice(reply.error)
          : rest.length > 0 && notice({text: rest.map(({pointer, text}) => `${pointer}: ${text}`).join("\n")}));
        announce(problems.length === 1 ? problems[0].text : `${problems.length || 1} problems`);
      }}, content, said, el("div", {class: "buttons"}, submit, el("button", {type: "button", onclick: () => dialog.close()}, "Cancel"))));
  });
}
