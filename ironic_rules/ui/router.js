// Addresses are #/view/identifier?filters: identifiers and filters only, never data or credentials.

const guards = new Set();
let left = new AbortController();

/** Leave the view that is shown; return the signal of the next one. */
export function leave() {
  left.abort();
  left = new AbortController();
  return left.signal;
}

/** Return the signal that is aborted when the view that is shown is left. */
export function untilLeft() {
  return left.signal;
}

/** Return {name, path, query} of the current address: `path` are the decoded parts after the view's name. */
export function here() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
  const parts = path.split("/").filter(Boolean).map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
  return {name: parts[0] ?? "", path: parts.slice(1), query: new URLSearchParams(query)};
}

/** Return the address of a view: address("node", uuid), address("fleet", {provision_state: "enroll"}). */
export function address(name, ...parts) {
  const query = new URLSearchParams();
  const path = [name];
  for (const part of parts) {
    if (part !== null && typeof part === "object") {
      for (const [key, value] of Object.entries(part)) {
        if (value !== null && value !== undefined && value !== "") query.set(key, value);
      }
    } else path.push(encodeURIComponent(part));
  }
  const text = query.toString();
  return `#/${path.join("/")}${text ? `?${text}` : ""}`;
}

/** Go to an address; `replace` leaves no entry in the browser's history. */
export function go(to, {replace = false} = {}) {
  if (replace) {
    history.replaceState(null, "", to);
    dispatchEvent(new HashChangeEvent("hashchange"));
  } else location.hash = to;
}

/** Ask before the view is left while `isDirty()` is true; until `signal` is aborted. */
export function guardLeaving(signal, isDirty) {
  guards.add(isDirty);
  signal.addEventListener("abort", () => guards.delete(isDirty));
}

/** Return whether something that was typed would be lost. */
export function isDirty() {
  return [...guards].some((guard) => guard());
}

addEventListener("beforeunload", (event) => {
  if (isDirty()) event.preventDefault();
});
