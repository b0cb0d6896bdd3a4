// The API's client: the same requests, credentials and policy as any other client of it.

import {readJson, writeJson} from "./json.js";

// Relative to the page, which may be behind a proxy that serves the API below a path of its own.
const BASE = new URL("../", document.baseURI);
const VERSION = "1.96";
const VERSION_HEADER = "X-OpenStack-Ironic-API-Version";
const NO_TAG = '"none"'; // matches nothing

/** Requests without a change after which `poll` waits twice as long, and how many times as long it waits at most. */
const QUIET = 12;
const LONGEST = 3;

let credentials = null; // header -> value; only ever here, in memory
let onSession = () => {};
let signIn = null; // function(error) -> promise of headers, or of null
let declined = false; // the person did not want to sign in, and is not asked again by each request
let asking = null; // the promise while the person is asked, for all requests that wait for it

/** Let `asks(error)` be called when a request needs credentials; it returns a promise of headers, or null.
 * @param {function} changed called when it has returned */
export function onUnauthorized(asks, changed) {
  signIn = asks;
  onSession = changed;
}

export function setCredentials(headers) {
  credentials = headers;
}

/** Return whether the person did not want to sign in. */
export function hasDeclined() {
  return declined;
}

/** Let the next request that needs credentials ask for them, also if the person did not want to give them before. */
export function askAgain() {
  declined = false;
}

export function hasCredentials() {
  return credentials !== null;
}

/** Send a request.
 * @param {string} path e.g. "/v1/nodes?limit=1"
 * @param {object} options `body`: any JSON; `headers`: more of them, e.g. If-Match; `signal`: of an AbortController
 * @returns {Promise<{status, json, headers, error}>} `json` is null without a body, its numbers are those of json.js;
 *   `error` is null, or {status, text, places, retryAfter, authenticate, path}: the API's text, its JSON pointers,
 *   after how many seconds to try again (null: it does not say), the scheme that it asks for, and what can be requested
 *   again without an effect (null: it cannot). `status` is 0 if there was no answer.
 * @throws {DOMException} AbortError, when `signal` is aborted */
export async function request(method, path, {body, headers = {}, signal} = {}) {
  for (;;) {
    const used = credentials;
    const reply = await once(method, path, {body, headers, signal});
    if (reply.status !== 401 || signIn === null || declined) return reply;
    if (used !== credentials) continue; // they were given since
    asking ??= ask(reply.error);
    const given = await asking;
    if (signal?.aborted) throw new DOMException("left", "AbortError");
    if (given === null) return reply;
  }
}

async function ask(error) {
  try {
    const given = await signIn(error);
    declined = given === null;
    credentials = given;
    onSession();
    return given;
  } finally {
    asking = null;
  }
}

async function once(method, path, {body, headers, signal}) {
  const sent = {Accept: "application/json", [VERSION_HEADER]: VERSION, ...credentials, ...headers};
  if (body !== undefined) sent["Content-Type"] = "application/json";
  const again = method === "GET" ? path : null;
  let response;
  let text;
  try {
    // Without the browser's own credentials and cookies: it would ask for a password itself, and keep it.
    response = await fetch(new URL(path.replace(/^\//, ""), BASE), {
      method, signal, headers: sent, credentials: "omit", cache: "no-store", redirect: "error", referrerPolicy: "no-referrer",
      body: body === undefined ? undefined : writeJson(body)});
    text = response.status === 304 ? "" : await response.text();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    return {status: 0, json: null, headers: new Headers(), error: problem(0, null, new Headers(), again)};
  }
  let json = null;
  try {
    json = text ? readJson(text) : null;
  } catch {
    json = null;
  }
  const failed = response.status >= 400;
  return {status: response.status, json, headers: response.headers,
    error: failed ? problem(response.status, json, response.headers, again) : null};
}

const OTHERWISE = {
  0: "The service does not answer.",
  401: "The service needs credentials.",
  403: "You may not do this.",
  404: "There is no such resource.",
  406: "The service does not know this version of the API.",
  409: "It conflicts with something else.",
  412: "Another user changed it first.",
  503: "The service is not available at the moment.",
};

function problem(status, json, headers, path) {
  let told = json?.error_message ?? json?.error ?? null;
  try {
    if (typeof told === "string") told = JSON.parse(told);
  } catch {
    // plain text
  }
  const text = typeof told === "string" ? told : told?.faultstring || told?.description || told?.message || told?.title;
  const wait = Number.parseInt(headers.get("Retry-After") ?? "", 10);
  const shown = text || OTHERWISE[status] || `The service answers with status ${status}.`;
  return {
    status, text: shown, messageId: told?.message_id ?? null,
    places: [...shown.matchAll(/(?:^|[\s'"(])(\/[\w~.-]+(?:\/[\w~.-]+)*)(?=$|[\s'":,;)])/g)].map((found) => found[1])
      .filter((place) => !place.startsWith("/v1/")),
    retryAfter: Number.isNaN(wait) ? null : wait,
    authenticate: headers.get("WWW-Authenticate"), path,
  };
}

/** Return all items of a list, page by page, at most `most`; `items` is the list's name in the answer.
 * @returns {Promise<{items, error, more}>} `more`: there are others beyond `most` */
export async function pages(path, name, {signal, most = 1000} = {}) {
  const items = [];
  let next = path;
  while (next) {
    const {json, error} = await request("GET", next, {signal});
    if (error) return {items, error, more: false};
    items.push(...json[name]);
    next = json.next ? fromLink(json.next) : null;
    if (items.length >= most) break;
  }
  return {items: items.slice(0, most), error: null, more: Boolean(next) || items.length > most};
}

/** Return a path with the filters that have a value. */
export function setPath(path, filters) {
  const query = new URLSearchParams(Object.entries(filters).filter(([, value]) => value !== ""));
  return query.size > 0 ? `${path}?${query}` : path;
}

/** Return the path and query, from /v1 on, of a link in an answer: its host may be another name of this service. */
export function fromLink(link) {
  const url = new URL(link, BASE);
  return url.pathname.slice(url.pathname.indexOf("/v1/")) + url.search;
}

/** Request again and again until `signal` is aborted: with If-None-Match, for which the API gives an ETag and answers
 * 304 without a body while nothing has changed; not while the page is hidden, as late as Retry-After says, and later
 * and later, up to three times, while nothing changes.
 * @param {function} show called with each reply that differs from the one before, and with errors, of which `path` is
 *   null; its second argument is a function that requests now
 * @param {number} seconds between two requests */
export async function poll(path, {signal, seconds = 5}, show) {
  let tag = null;
  let quiet = 0;
  let before = null;
  let wake = () => {};
  const now = () => wake();
  while (!signal.aborted) {
    let wait = seconds * Math.min(1 + quiet / QUIET, LONGEST);
    try {
      quiet += 1;
      const reply = await request("GET", path, {signal, headers: {"If-None-Match": tag ?? NO_TAG}});
      if (reply.error) {
        before = null;
        tag = null;
        wait = Math.max(wait, reply.error.retryAfter ?? 0);
        show({...reply, error: {...reply.error, path: null}}, now);
      } else if (reply.status !== 304) {
        tag = reply.headers.get("ETag");
        const text = writeJson(reply.json);
        if (text !== before) {
          before = text;
          [quiet, wait] = [0, seconds];
          show(reply, now);
        }
      }
      await pause(wait, signal, (early) => { wake = early; });
    } catch (error) {
      if (error.name !== "AbortError") throw error;
      return;
    }
  }
}

/** Wait for some seconds, and until the page is visible.
 * @param {function} begun called with a function that ends the wait early
 * @throws {DOMException} AbortError, when `signal` is aborted */
export async function pause(seconds, signal, begun = () => {}) {
  signal.throwIfAborted();
  await new Promise((resolve, reject) => {
    const aborted = () => { clearTimeout(timer); reject(new DOMException("left", "AbortError")); };
    const done = () => { clearTimeout(timer); signal.removeEventListener("abort", aborted); resolve(); };
    const timer = setTimeout(done, seconds * 1000);
    signal.addEventListener("abort", aborted, {once: true});
    begun(done);
  });
  while (document.hidden && !signal.aborted) {
    await new Promise((resolve) => {
      const done = () => resolve();
      document.addEventListener("visibilitychange", done, {once: true, signal});
      signal.addEventListener("abort", done, {once: true});
    });
  }
}
