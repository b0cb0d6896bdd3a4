// The frame of the page: navigation, sign-in, and one view at a time.
//
// A view is a module below views/ with an entry in VIEWS (and in NAVIGATION, if it has one). It exports
//   title                                  its name, for the heading of the window
//   async show(main, params, signal)       puts its elements into `main`, which is empty
// `params` is {path, query}: the decoded parts of the address after the view's name, and a URLSearchParams. `signal` is
// aborted when the view is left: pass it to request(), poll(), shortcut(), guardLeaving() and addEventListener(), and
// let AbortErrors pass, also out of listeners. When only the query of the address changes, the view is shown again;
// history.replaceState changes the address without that.
//
// Rules: data become text (el); no innerHTML, no style attributes in markup (`style` of el is fine), nothing in
// localStorage but that the guide is over and the theme, nothing in addresses but identifiers and filters; each view has
// one h1; what loads says so (aria-busy), what has changed is announced; an error shows the API's text, and what was
// typed stays.

import {announce, el, fill} from "./dom.js";
import {askAgain, hasCredentials, hasDeclined, onUnauthorized, setCredentials} from "./api.js";
import {address, go, here, isDirty, leave} from "./router.js";
import {shortcut, showShortcuts} from "./shortcuts.js";
import {signIn} from "./sign_in.js";
import {icon, notice} from "./parts.js";
import {nextTheme, theme} from "./theme.js";
import {begin} from "./guide.js";
import {openSearch} from "./search.js";

const VIEWS = {
  fleet: () => import("./views/fleet.js"),
  rules: () => import("./views/rules.js"),
  workbench: () => import("./views/workbench.js"),
  node: () => import("./views/node.js"),
  compare: () => import("./views/compare.js"),
  templates: () => import("./views/templates.js"),
  journal: () => import("./views/journal.js"),
  operations: () => import("./views/operations.js"),
};

// [view, text, key after "g"]
const NAVIGATION = [
  ["fleet", "Fleet", "f"],
  ["rules", "Rules", "r"],
  ["workbench", "Workbench", "w"],
  ["templates", "Templates", "t"],
  ["journal", "Journal", "j"],
  ["operations", "Operations", "o"],
];

const FIRST = "fleet";
const main = document.getElementById("main");
let shownAt = "";
let isFirst = true;

async function show() {
  const wanted = location.hash;
  if (wanted === "#main") { // the link that skips the navigation
    history.replaceState(null, "", shownAt || `#/${FIRST}`);
    main.focus();
    return;
  }
  if (wanted !== shownAt && isDirty() && !confirm("Your changes here are not saved. Leave?")) {
    history.replaceState(null, "", shownAt);
    return;
  }
  const {name, path, query} = here();
  if (!Object.hasOwn(VIEWS, name)) {
    go(address(FIRST), {replace: true});
    return;
  }
  if (name === "node" && query.has("guide")) {
    begin(path[0]);
    go(address(name, ...path), {replace: true});
    return;
  }
  const signal = leave();
  const wasSame = shownAt.split("?")[0] === wanted.split("?")[0];
  shownAt = wanted;
  markCurrent(name);
  let view;
  try {
    view = await VIEWS[name]();
  } catch (error) {
    if (signal.aborted) return;
    fill(main, el("h1", {}, "This view cannot be shown"), notice({status: 0, text: String(error.message ?? error), path: "/v1/"}, show));
    return;
  }
  if (signal.aborted) return;
  try {
    document.title = `${view.title} – ironic-rules`;
    if (!wasSame) scrollTo(0, 0);
    main.replaceChildren();
    const done = view.show(main, {path, query}, signal);
    if (!isFirst && !wasSame) {
      main.focus({preventScroll: true});
      announce(view.title);
    }
    isFirst = false;
    await done;
  } catch (error) {
    if (signal.aborted || error.name === "AbortError") return;
    console.error(error);
    fill(main, el("h1", {}, "This view cannot be shown"), notice({text: String(error.message ?? error)}, show));
  }
}

function markCurrent(name) {
  for (const link of document.querySelectorAll("#views a")) {
    if (link.dataset.view === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

// theme -> icon
const THEMES = {auto: "sun-moon", light: "sun", dark: "moon"};

function themeButton() {
  const text = () => `Colors: ${theme()}`;
  const button = el("button", {class: "quiet", "aria-label": text(), title: text(), onclick: () => {
    announce(`Colors: ${nextTheme()}`);
    button.setAttribute("aria-label", text());
    button.setAttribute("title", text());
    fill(button, icon(THEMES[theme()]));
  }}, icon(THEMES[theme()]));
  return button;
}

function showSession() {
  fill(document.getElementById("session"),
    el("button", {class: "search-button", "aria-keyshortcuts": "Control+K /", title: "Search (Ctrl-K or /)", onclick: openSearch},
      "Search", el("kbd", {"aria-hidden": "true"}, "/")),
    hasCredentials() && el("button", {class: "quiet", onclick: () => {
      setCredentials(null);
      showSession();
      show();
    }}, "Sign out"),
    !hasCredentials() && hasDeclined() && el("button", {class: "primary", onclick: () => {
      askAgain();
      showSession();
      show();
    }}, "Sign in"),
    themeButton(), el("button", {class: "quiet", "aria-label": "Keys", title: "Keys (?)", onclick: showShortcuts}, "?"));
}

onUnauthorized((error) => signIn(error, hasCredentials()), showSession);

fill(document.getElementById("views"), NAVIGATION.map(([name, text]) =>
  el("a", {href: address(name), "data-view": name}, text)));
for (const [name, text, key] of NAVIGATION) shortcut(`g ${key}`, `Go to ${text}`, () => go(address(name)));
shortcut("/", "Search (also Ctrl-K)", openSearch);
shortcut("?", "Show these keys", showShortcuts);
showSession();
// Rejections of requests that a key or a button began in a view that has been left.
addEventListener("unhandledrejection", (event) => { if (event.reason?.name === "AbortError") event.preventDefault(); });
addEventListener("hashchange", show);
show();
