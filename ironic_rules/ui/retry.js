// Comes back by itself when the service does: what could not be requested is requested again, later and later.

import {pause, request} from "./api.js";
import {untilLeft} from "./router.js";

/** Seconds: the first wait, and the longest. */
const FIRST = 2;
const LONGEST = 30;
/** No answer, too many requests, and what proxies and the service say while it is not there. */
const TEMPORARY = new Set([0, 429, 502, 503, 504]);
/** How often it is waited for an element that is not shown yet. */
const UNSHOWN = 3;

/** @type {Map<string, {wait, ends}>} by path: the last wait in seconds, and when it ends, for all that wait for this path */
const waits = new Map();
const running = new WeakSet();

/** Return whether an error may be gone when the same is requested again, which does no harm. */
export function isTemporary(error) {
  return TEMPORARY.has(error.status) && typeof error.path === "string";
}

/** Request `error.path` again until it has another answer, then call `again`; as long as `element`, which shows the
 * error, is shown. What is shown and typed stays as it is until then. Not before Retry-After, nor while the page is
 * hidden. */
export async function retry(element, error, again) {
  const signal = untilLeft();
  let unshown = 0;
  let last = error;
  try {
    for (;;) {
      await pause(Math.max(next(error.path), last.retryAfter ?? 0), signal);
      if (!element.isConnected) {
        unshown += 1;
        if (unshown > UNSHOWN) return;
        continue;
      }
      unshown = UNSHOWN;
      const {error: now} = await request("GET", error.path, {signal});
      if (!element.isConnected) return;
      if (now && isTemporary(now)) {
        last = now;
        continue;
      }
      // Several parts of a view may be drawn by the same function.
      if (running.has(again)) return;
      running.add(again);
      try {
        await again();
      } finally {
        running.delete(again);
      }
      return;
    }
  } catch (problem) {
    if (problem.name !== "AbortError") throw problem;
  }
}

/** Return the seconds to wait: twice as many as before, if that was not long ago. */
function next(path) {
  const before = waits.get(path);
  const now = performance.now() / 1000;
  if (before && now < before.ends) return before.ends - now;
  const wait = before && now < before.ends + LONGEST ? Math.min(2 * before.wait, LONGEST) : FIRST;
  waits.set(path, {wait, ends: now + wait});
  return wait;
}
