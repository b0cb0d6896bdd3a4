// Asks for the credentials that the service wants. They stay in memory: a reload forgets them.

import {el, newId} from "./dom.js";

/** Ask, and return a promise of the headers to send, or of null if the person does not want to. */
export function signIn(error, wasRefused) {
  return /keystone/i.test(error.authenticate ?? "") ? askForToken(wasRefused) : askForPassword(wasRefused);
}

function ask(title, hint, wasRefused, fields, headersOf) {
  return new Promise((resolve) => {
    const titleId = newId("sign-in");
    let given = null;
    const form = el("form", {method: "dialog", class: "stack", onsubmit: (event) => {
      if (event.submitter?.value !== "no") given = headersOf();
    }},
    el("h2", {id: titleId}, title),
    el("p", {}, hint),
    wasRefused && el("p", {class: "bad", role: "alert"}, "The service did not accept these credentials."),
    fields.map(([text, input]) => el("label", {class: "field"}, el("span", {}, text), input)),
    el("div", {class: "buttons"},
      el("button", {class: "primary", value: "yes"}, "Sign in"),
      el("button", {value: "no", formnovalidate: true}, "Not now")));
    const dialog = el("dialog", {"aria-labelledby": titleId, onclose: () => { dialog.remove(); resolve(given); }}, form);
    document.body.append(dialog);
    dialog.showModal();
    fields[0][1].focus();
  });
}

function askForPassword(wasRefused) {
  const user = el("input", {autocomplete: "username", required: true, spellcheck: "false"});
  const password = el("input", {type: "password", autocomplete: "current-password", required: true});
  return ask("Sign in", "The service asks for a user and a password. They are kept until this page is closed.",
    wasRefused, [["User", user], ["Password", password]], () => {
      const bytes = new TextEncoder().encode(`${user.value}:${password.value}`);
      return {Authorization: `Basic ${btoa(String.fromCharCode(...bytes))}`};
    });
}

function askForToken(wasRefused) {
  const token = el("input", {type: "password", autocomplete: "off", required: true, spellcheck: "false"});
  return ask("Sign in", "The service asks for a token of Keystone, from “openstack token issue -f value -c id”. It is "
    + "kept until this page is closed.", wasRefused, [["Token", token]], () => ({"X-Auth-Token": token.value.trim()}));
}
