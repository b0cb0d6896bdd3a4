// Clauses of the query language, `vendor = Dell and memory_gib >= 512`: their parts, as chips and links have them, and
// what completes one. The service parses them, and says what is wrong with them.

const WORDS = /"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[()]|(?<![\w.-])(?:and|or)(?![\w.-])/gi;
const TOKENS = /"(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?|[()]|[=!<>]+|[^\s()"'=!<>]+/g;
const MOST = 12;

/** Return the parts of a clause that all must hold. */
export function partsOf(where) {
  const parts = [];
  let [depth, from] = [0, 0];
  for (const {0: text, index} of where.matchAll(WORDS)) {
    if (text === "(") depth += 1;
    else if (text === ")") depth -= 1;
    else if (depth === 0 && /^or$/i.test(text)) return [where.trim()];
    else if (depth === 0 && /^and$/i.test(text)) {
      parts.push(where.slice(from, index));
      from = index + text.length;
    }
  }
  return [...parts, where.slice(from)].map((part) => part.trim()).filter(Boolean);
}

/** Return the clause of several parts. */
export function joined(parts) {
  if (parts.length < 2) return parts.join("");
  const isEither = (part) => [...part.replaceAll(/\([^()]*\)/g, "").matchAll(WORDS)].some(([text]) => /^or$/i.test(text));
  return parts.map((part) => (isEither(part) ? `(${part})` : part)).join(" and ");
}

/** Return whether a clause has the parts of another. */
export function has(where, other) {
  const parts = partsOf(where);
  return partsOf(other).every((part) => parts.includes(part));
}

/** Return a clause with the parts of another, or without them if it has them. */
export function toggled(where, other) {
  const [parts, others] = [partsOf(where), partsOf(other)];
  const left = parts.filter((part) => !others.includes(part));
  return joined(has(where, other) ? left : [...left, ...others]);
}

/** Return a value as clauses have it. */
export function quoted(value) {
  const text = String(value);
  return /^[A-Za-z0-9_.:/+-]+$/.test(text) ? text : `"${text.replaceAll(/["\\]/g, "\\$&")}"`;
}

/** Return what can follow at the end of a clause: {from, options}, where the typed beginning starts, and texts.
 * @param {object} vocabulary as the API has it
 * @param {object} values lists of values of names for which the vocabulary has none */
export function completions(text, vocabulary, values) {
  const found = [...text.matchAll(TOKENS)];
  const last = found.at(-1);
  const typed = last && last.index + last[0].length === text.length && !/^[()]$/.test(last[0]) ? last[0] : "";
  const tokens = found.slice(0, typed ? -1 : undefined).map(([token]) => token);
  const options = following(tokens, vocabulary, values);
  const sought = typed.replace(/^["']/, "").toLowerCase();
  const rank = (option) => (option.toLowerCase().startsWith(sought) ? 0 : 1);
  return {from: text.length - typed.length, options: options.filter((option) => option.toLowerCase().includes(sought) && option !== typed)
    .sort((a, b) => rank(a) - rank(b)).slice(0, MOST)};
}

function following(tokens, {names, operators}, values) {
  const [before, previous] = tokens.slice(-2);
  const at = (token) => names.find(({name}) => name === token);
  const word = tokens.at(-1);
  if (word === undefined || /^(?:and|or|not|\()$/i.test(word)) return names.map(({name}) => name);
  const subject = at(word);
  if (subject && !(tokens.length > 1 && isOperator(before, operators))) {
    return operators.filter(({types, lists}) => types.includes(subject.type) && (lists || !subject.is_list)).map(({name}) => name);
  }
  if (tokens.length > 1 && isOperator(previous, operators)) {
    return (at(before)?.values.length ? at(before).values : values[before] ?? (at(before)?.type === "boolean" ? ["true", "false"] : []))
      .map(quoted);
  }
  return ["and", "or"];
}

function isOperator(token, operators) {
  return operators.some(({name}) => name === token);
}
