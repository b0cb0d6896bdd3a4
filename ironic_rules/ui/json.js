// JSON whose numbers stay as they are written: those of JavaScript do not tell 2.0 from 2, nor 2^53 from 2^53 + 1, and
// rules and inventories do.

const NUMBER = String.raw`-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?`;
/** Pattern that a text without such numbers does not have: most answers need not be looked through. */
const LIKELY = /(?:^|[[:,\s])(?:-0|-?\d+[.eE]|-?\d{16})/;
/** A text without an end, too, so that what is no JSON is not tried again from each of its quotation marks. */
const TOKEN = new RegExp(String.raw`"[^"\\]*(?:\\.[^"\\]*)*"?|${NUMBER}`, "gs");
// No text of others has it, so that none becomes a number.
const MARK = `number ${crypto.getRandomValues(new Uint32Array(4)).join(" ")} `;
const MARKED = new RegExp(`"${MARK}(${NUMBER})"`, "g");

/** A number that JavaScript would write in another way. */
class Numeral {
  #source;

  constructor(source) {
    this.#source = source;
  }

  toString() {
    return this.#source;
  }

  valueOf() {
    return Number(this.#source);
  }

  /** Only for writeJson. */
  toJSON() {
    return `${MARK}${this.#source}`;
  }
}

/** Return the number that JSON writes so, a Numeral if JavaScript would write it in another way. */
export function numeral(source) {
  const value = Number(source);
  return String(value) === source ? value : new Numeral(source);
}

export function isNumber(value) {
  return typeof value === "number" || value instanceof Numeral;
}

export function isObject(value) {
  return value !== null && typeof value === "object" && !Array.isArray(value) && !isNumber(value);
}

/** Return what JSON.parse returns, but for the numbers that it would change. */
export function readJson(text) {
  if (!LIKELY.test(text)) return JSON.parse(text);
  let isExact = true;
  const marked = text.replace(TOKEN, (token) => {
    if (token.startsWith('"') || String(Number(token)) === token) return token;
    isExact = false;
    return `{"${MARK}":"${token}"}`;
  });
  if (isExact) return JSON.parse(text);
  try {
    return JSON.parse(marked, (_, value) => (value?.[MARK] === undefined ? value : new Numeral(value[MARK])));
  } catch {
    return JSON.parse(text); // for an error whose position is that of this text
  }
}

/** Return what JSON.stringify returns, with the numbers as they were written. */
export function writeJson(value, indent = 0) {
  return JSON.stringify(value, null, indent)?.replace(MARKED, "$1");
}
