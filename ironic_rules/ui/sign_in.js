// Asks for the credentials that the service wants. They stay in memory: a reload forgets them.

import {el, modal} from "./dom.js";

const REFUSED = "The service did not accept these credentials.";

/** Ask, and return a promise of the headers to send, or of null if the person does not want to. */
export async function signIn(error, wasRefused) {
  if (!/keystone/i.test(error.authenticate ?? "")) return askForPassword(wasRefused);
  return await takesPasswords() ? logIn() : askForToken(wasRefused);
}

// Relative to the page, as everything else.
const SESSION = new URL("session", document.baseURI);
const PLAIN = {credentials: "omit", cache: "no-store", redirect: "error", referrerPolicy: "no-referrer"};

/** Return a promise of whether the service forwards passwords to Keystone. */
async function takesPasswords() {
  try {
    return (await (await fetch(SESSION, PLAIN)).json()).password === true;
  } catch {
    return false;
  }
}

function ask(hint, problem, fields, headersOf) {
  return new Promise((resolve) => {
    let given = null;
    const form = el("form", {method: "dialog", class: "stack", onsubmit: (event) => {
      if (event.submitter?.value !== "no") given = headersOf();
    }},
    el("p", {}, hint),
    problem && el("p", {class: "bad", role: "alert"}, problem),
    fields.map(([text, input]) => el("label", {class: "field"}, el("span", {}, text), input)),
    el("div", {class: "buttons"},
      el("button", {class: "primary", value: "yes"}, "Sign in"),
      el("button", {value: "no", formnovalidate: true}, "Not now")));
    modal("Sign in", {closed: () => resolve(given)}, form);
    fields[0][1].focus();
  });
}

function credentials() {
  return [el("input", {autocomplete: "username", required: true, spellcheck: "false"}),
    el("input", {type: "password", autocomplete: "current-password", required: true})];
}

function askForPassword(wasRefused) {
  const [user, password] = credentials();
  return ask("The service asks for a user and a password. They are kept until this page is closed.",
    wasRefused && REFUSED, [["User", user], ["Password", password]], () => {
      const bytes = new TextEncoder().encode(`${user.value}:${password.value}`);
      return {Authorization: `Basic ${btoa(String.fromCharCode(...bytes))}`};
    });
}

/** Ask for a user of Keystone until it gives a token; return a promise of the headers, or of null. */
async function logIn() {
  const [user, password] = credentials();
  const project = el("input", {autocomplete: "off", spellcheck: "false", placeholder: "the whole system"});
  const domain = el("input", {autocomplete: "off", required: true, spellcheck: "false", value: "Default"});
  let problem = "";
  for (;;) {
    const given = await ask("The service forwards them to Keystone, whose token is kept until this page is closed.",
      problem, [["User", user], ["Password", password], ["Project", project], ["Domain of both", domain]], () => ({
        user: user.value, password: password.value, user_domain: domain.value,
        ...(project.value ? {project: project.value, project_domain: domain.value} : {system: true})}));
    if (given === null) return null;
    const {token, text} = await forwarded(given);
    if (token) return {"X-Auth-Token": token};
    problem = text;
    password.value = "";
  }
}

async function forwarded(given) {
  try {
    const reply = await fetch(SESSION, {...PLAIN, method: "POST", body: JSON.stringify(given),
      headers: {"Content-Type": "application/json", Accept: "application/json"}});
    const json = await reply.json();
    return reply.ok ? {token: json.token} : {text: JSON.parse(json.error_message).faultstring};
  } catch {
    return {text: "The service does not answer."};
  }
}

function askForToken(wasRefused) {
  const token = el("input", {type: "password", autocomplete: "off", required: true, spellcheck: "false"});
  return ask("The service asks for a token of Keystone, from “openstack token issue -f value -c id”. It is "
    + "kept until this page is closed.", wasRefused && REFUSED, [["Token", token]], () => ({"X-Auth-Token": token.value.trim()}));
}
