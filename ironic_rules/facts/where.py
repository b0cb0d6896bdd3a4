"""The short form of conditions, in which the fleet is asked: ``vendor = Dell and not traits has CUSTOM_GPU``.

The grammar is below. :func:`parse` returns a tree whose leaves are conditions of rules, so that the rule engine defines
what each of them means; :func:`conditions_of` returns those of a rule. Columns count from 1, over the whole text.
"""

from __future__ import annotations

import datetime
import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, cast

from lark import Lark, Token, Transformer, UnexpectedCharacters, UnexpectedInput, v_args

from ironic_rules.exceptions import Invalid, Problem
from ironic_rules.models import addresses
from ironic_rules.models.documents import JSON, JSONObject, is_int64
from ironic_rules.models.fields import Type
from ironic_rules.models.nodes import MAX_CLAUSE, NODE
from ironic_rules.rules.errors import OperandError
from ironic_rules.rules.regex import compile_regex
from ironic_rules.rules.signatures import parse_network
from ironic_rules.rules.template import QUANTIFIER
from ironic_rules.text import enumeration, is_storable, nearest

#: Maximum number of conditions in a clause, and of levels of ``not`` and parentheses.
MAX_TERMS = 1000
MAX_DEPTH = 50
#: Problems of a clause that are listed.
_MAX_PROBLEMS = 20

#: Words of the grammar have priority over names. Where a value is expected, each word is a value.
GRAMMAR = r"""
start: either
either: both (_OR both)*
both: part (_AND part)*
?part: NOT part        -> inverted
     | "(" either ")"   -> grouped
     | test
?test: NAME COMPARISON value                            -> compared
    | NAME WORD_OPERATOR value                         -> compared
    | NAME _IN "(" value ("," value)* ")"              -> listed
    | NAME NOT _IN "(" value ("," value)* ")"          -> not_listed
    | NAME _IS STATE                                   -> stated
    | NAME _IS NOT STATE                               -> not_stated
value: WORD | QUOTED

NOT.3: /not(?![\w\[])/i
_AND.3: /and(?!\w)/i
_OR.3: /or(?!\w)/i
_IN.2: /in(?![\w-])/i
_IS.2: /is(?!\w)/i
STATE: /(?:empty|absent)(?!\w)/i
WORD_OPERATOR.2: /(?:has|starts|contains|matches|in-net)(?!\w)/i
COMPARISON: /<=|>=|!=|==|=|<|>/
NAME: /[A-Za-z_][A-Za-z0-9_]*(?:\[[^\[\]\s"']*\])?/
QUOTED: /"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'/s
WORD: /[^\s()"'‘’“”,=<>!]+/
%ignore /\s+/
"""


class WhereError(Invalid):
    """A clause, or the conditions of a question, cannot be asked; each problem has the column or the pointer."""

    message = "The question is not valid."


@dataclass(frozen=True, slots=True)
class Name:
    """A name that questions can have.

    :ivar template: the value in a rule; where there is a ``loop``, that of one of its items
    :ivar type: ``text``, ``integer``, ``number``, ``boolean``, ``address``, ``mac`` or ``time``
    :ivar many: whether the value is a list
    :ivar loop: the list whose items are compared
    :ivar choices: the values that it can have, as far as they are known
    """

    template: str
    type: str
    many: bool = False
    unit: str | None = None
    loop: str | None = None
    choices: tuple[str | bool, ...] = ()


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition as rules have them, and its column in the clause."""

    written: JSONObject
    column: int


@dataclass(frozen=True, slots=True)
class And:
    """All parts hold."""

    parts: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """At least one of the parts holds.

    :ivar column: that of its first part
    """

    parts: tuple[Tree, ...]
    column: int


Tree: TypeAlias = "And | Or | Condition"

#: Types of the fields of nodes.
_NODE_TYPES = {Type.STRING: "text", Type.INTEGER: "integer", Type.BOOLEAN: "boolean", Type.TIME: "time"}
#: Names of fields of nodes, and of lists that belong to nodes.
NODE_FIELDS: Mapping[str, Name] = {
    name: Name(f"{{node[{name}]}}", _NODE_TYPES[NODE[name].type], choices=(
        (True, False) if NODE[name].type is Type.BOOLEAN else NODE[name].choices))
    for name in NODE.where(lambda entry: entry.shown and not entry.secret and entry.type in _NODE_TYPES)}
NODE_NAMES: Mapping[str, Name] = {
    **NODE_FIELDS,
    "state": NODE_FIELDS["provision_state"],
    "traits": Name("{node[traits]}", "text", many=True),
    "ports": Name("{item[address]}", "mac", many=True, loop="{ports}"),
}


def parse(text: str, names: Mapping[str, Name]) -> Tree:
    """Return the tree of a clause; inversions are in its conditions.

    :param names: those of facts, which have precedence over :data:`NODE_NAMES`; ``fact[..]`` and ``node[..]`` are exact
    :raises WhereError: with the column of each problem
    """
    if len(text) > MAX_CLAUSE:
        raise WhereError(f"The clause is longer than {MAX_CLAUSE} characters.")
    if not is_storable(text):
        raise WhereError("The clause must not contain NUL and lone surrogate characters.")
    if not text.strip():
        raise WhereError("The clause is empty.")
    try:
        terms = cast("_Terms", _parser().parse(text))
    except UnexpectedInput as error:
        raise _complaint(text, error) from None
    built = _Build(names)
    tree = built.tree(terms, inverted=False)
    if built.problems:
        raise WhereError(problems=built.problems[:_MAX_PROBLEMS])
    return tree


def conditions_of(tree: Tree) -> list[JSONObject]:
    """Return the conditions of a rule that matches what the tree selects.

    :raises WhereError: the tree has an alternative, which a rule does not have
    """
    if isinstance(tree, Condition):
        return [tree.written]
    if isinstance(tree, Or):
        raise _column_error(tree.column, (
            "all conditions of a rule must hold, so that 'or' has no place there: to compare one name with several "
            "values, use NAME in (a, b); otherwise, make a rule for each side of 'or'"))
    return [written for part in tree.parts for written in conditions_of(part)]


def leaves(tree: Tree) -> Iterator[Condition]:
    """Yield the conditions of a tree in the order of the clause."""
    if isinstance(tree, Condition):
        yield tree
    else:
        for part in tree.parts:
            yield from leaves(part)


def holds(tree: Tree, condition: Callable[[JSONObject], bool]) -> bool:
    """Return whether a tree holds for one node.

    :param condition: returns whether a condition of a rule holds for it
    """
    if isinstance(tree, Condition):
        return condition(tree.written)
    return (all if isinstance(tree, And) else any)(holds(part, condition) for part in tree.parts)


@dataclass(frozen=True, slots=True)
class _Term:
    """One comparison as it is written."""

    name: Token
    operator: str
    values: tuple[Token, ...]
    inverted: bool = False
    depth: int = 0


@dataclass(frozen=True, slots=True)
class _Joined:
    """Terms between ``and`` or ``or``, or after ``not``."""

    kind: str
    parts: tuple[_Term | _Joined, ...]
    depth: int


_Terms: TypeAlias = "_Term | _Joined"


@v_args(inline=True)
class _Reader(Transformer[Token, _Terms]):
    """Makes terms of what the parser finds, while it parses: nothing here is recursive."""

    def start(self, terms: _Terms) -> _Terms:
        return terms

    def either(self, *parts: _Terms) -> _Terms:
        return _joined("or", parts)

    def both(self, *parts: _Terms) -> _Terms:
        return _joined("and", parts)

    def inverted(self, word: Token, part: _Terms) -> _Terms:
        return _Joined("not", (part,), _deeper(part, word))

    def grouped(self, part: _Terms) -> _Terms:
        return replace(part, depth=_deeper(part, None))

    def compared(self, name: Token, operator: Token, value: Token) -> _Terms:
        return _Term(name, operator.lower(), (value,))

    def listed(self, name: Token, *values: Token) -> _Terms:
        return _Term(name, "in", values)

    def not_listed(self, name: Token, _word: Token, *values: Token) -> _Terms:
        return _Term(name, "in", values, inverted=True)

    def stated(self, name: Token, state: Token) -> _Terms:
        return _Term(name, f"is {state.lower()}", ())

    def not_stated(self, name: Token, _word: Token, state: Token) -> _Terms:
        return _Term(name, f"is {state.lower()}", (), inverted=True)

    def value(self, token: Token) -> Token:
        return token


def _joined(kind: str, parts: Sequence[_Terms]) -> _Terms:
    return parts[0] if len(parts) == 1 else _Joined(kind, tuple(parts), max(part.depth for part in parts))


def _deeper(part: _Terms, word: Token | None) -> int:
    if part.depth >= MAX_DEPTH:
        place = "" if word is None else f"column {_column(word)}: "
        raise WhereError(f"{place}'not' and parentheses are nested deeper than {MAX_DEPTH} levels.")
    return part.depth + 1


@functools.cache
def _parser() -> Lark:
    return Lark(GRAMMAR, parser="lalr", transformer=_Reader(), maybe_placeholders=False)


class _Build:
    """Makes conditions of terms, and collects their problems."""

    def __init__(self, names: Mapping[str, Name]) -> None:
        self.problems: list[Problem] = []
        self._names = names
        self._terms = 0

    def tree(self, terms: _Terms, *, inverted: bool) -> Tree:
        if isinstance(terms, _Term):
            return self._condition(terms, terms.inverted != inverted)
        if terms.kind == "not":
            return self.tree(terms.parts[0], inverted=not inverted)
        parts = [self.tree(part, inverted=inverted) for part in terms.parts]
        if (terms.kind == "and") != inverted:
            return And(tuple(_flat(parts, And)))
        return Or(tuple(_flat(parts, Or)), next(leaves(parts[0])).column)

    def _condition(self, term: _Term, inverted: bool) -> Condition:
        self._terms += 1
        if self._terms > MAX_TERMS:
            raise WhereError(f"The clause has more than {MAX_TERMS} conditions.")
        column = _column(term.name)
        try:
            name = self._find(str(term.name))
            return Condition(_written(name, term, inverted), column)
        except _Unusable as error:
            place = column if error.token is None else _column(error.token)
            self.problems.append(Problem("", f"column {place}: {error}"))
            return Condition({}, column)

    def _find(self, name: str) -> Name:
        root, bracket, key = name.removesuffix("]").partition("[")
        if bracket:
            names: Mapping[str, Name] = {"fact": self._names, "node": NODE_NAMES}.get(root.lower(), {})
            if not names:
                raise _Unusable("only fact[..] and node[..] have names in brackets")
            entry = names.get(key)
        else:
            key = name
            names = {**NODE_NAMES, **self._names}
            entry = names.get(name)
        if entry is None:
            # A comparison with all known names takes long, so few unknown names get one.
            near = nearest(key, names) if len(self.problems) < _MAX_PROBLEMS else None
            hint = f"did you mean {near!r}?" if near else f"known: {enumeration(sorted(names), 12)}"
            raise _Unusable(f"there is no fact or field of nodes with this name; {hint}")
        return entry


class _Unusable(Exception):
    """A term has no meaning; ``token`` is the part that is wrong, None: the name."""

    def __init__(self, text: str, token: Token | None = None) -> None:
        self.token = token
        super().__init__(text)


def _flat(parts: Iterable[Tree], kind: type[And] | type[Or]) -> Iterator[Tree]:
    for part in parts:
        if isinstance(part, kind):
            yield from part.parts
        else:
            yield part


def _written(name: Name, term: _Term, inverted: bool) -> JSONObject:
    """Return the condition of a rule that a term stands for."""
    word = term.operator
    if name.many and word not in _OF_LISTS:
        raise _Unusable(f"it has several values, which {word} does not compare; use {', '.join(_OF_LISTS)}")
    if not name.many and word == "has":
        raise _Unusable("it has one value; use =")
    if word in _STATED:
        op = "is-empty" if name.many else _STATED[word]
        return _inverse({"op": op, "args": {"value": name.loop or name.template}}, inverted)
    if name.type not in _TYPES_OF.get(word, _ANY):
        raise _Unusable(f"it is {_article(name.type)}, which {word} does not compare")
    values = [_value(name, word, token) for token in term.values]
    if name.loop is None:
        return _inverse(_compared(name.template, word, values), inverted)
    # No item may match where the condition is inverted.
    test = _compared(name.template, "=" if word == "has" else word, values)
    return {**_inverse(test, inverted), "loop": name.loop, "multiple": "all" if inverted else "any"}


_STATED = {"is empty": "is-empty", "is absent": "is-none"}
_OF_LISTS = ("has", "starts", "contains", *_STATED)
_OPS = {"=": "eq", "==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
_INVERSE = {"eq": "ne", "ne": "eq"}
_ANY = frozenset({"text", "integer", "number", "boolean", "address", "mac", "time"})
_TEXTUAL = frozenset({"text", "address", "mac"})
#: Types that an operator compares; others compare all types.
_TYPES_OF = {"starts": _TEXTUAL, "contains": _TEXTUAL, "matches": _TEXTUAL, "in-net": frozenset({"address", "text"}),
             **dict.fromkeys(("<", "<=", ">", ">="), _ANY - {"boolean"})}


#: Operators by name, with the types that they compare, and whether they compare lists.
OPERATORS: Mapping[str, tuple[frozenset[str], bool]] = {
    name: (_TYPES_OF.get(name, _ANY), name in _OF_LISTS) for name in (
        "=", "!=", "<", "<=", ">", ">=", "in", "has", "starts", "contains", "matches", "in-net", *_STATED)}
#: Number of values after an operator, where that is not one.
OPERANDS: Mapping[str, str] = {"in": "several", **dict.fromkeys(_STATED, "none")}
#: Words that join comparisons; ``not`` is also part of ``not in``, ``is not empty`` and ``is not absent``.
WORDS = ("and", "or", "not")


def _inverse(condition: JSONObject, inverted: bool) -> JSONObject:
    op = condition["op"]
    return {**condition, "op": _INVERSE.get(op, f"!{op}")} if inverted else condition


def _compared(template: str, word: str, values: list[JSON]) -> JSONObject:
    first = values[0]
    if word in _OPS:
        return {"op": _OPS[word], "args": {"values": [template, first]}}
    if word == "in":
        return {"op": "one-of", "args": {"value": template, "values": values}}
    if word == "in-net":
        return {"op": "in-net", "args": {"address": template, "subnet": first}}
    regex = {"has": "^{}$", "starts": "^{}"}.get(word, "{}").format(first)
    return {"op": "matches" if word == "matches" else "contains", "args": {"value": template, "regex": regex}}


def _value(name: Name, word: str, token: Token) -> JSON:
    """Return the value of a token in the form that the condition of a rule has."""
    is_quoted = token.type == "QUOTED"
    text = _ESCAPE.sub(r"\1", token[1:-1]) if is_quoted else str(token)
    if word in ("contains", "matches"):
        return _regex(text, token)
    value = _typed(name, text, token, is_quoted, whole=word != "starts") if word != "in-net" else _network(text, token)
    if word in ("has", "starts"):
        return literal(str(value)) if name.loop is None or word == "starts" else value
    return value.replace("{", "{{").replace("}", "}}") if isinstance(value, str) else value


_ESCAPE = re.compile(r"""\\([\\"'])""")
_NUMBER = re.compile(r"[+-]?[0-9]{1,20}(?:\.[0-9]{1,20})?(?:[eE][+-]?[0-9]{1,2})?")


def _typed(name: Name, text: str, token: Token, is_quoted: bool, *, whole: bool) -> JSON:
    """Return a value of the type that a name has: words are not guessed to be numbers, and have no units.

    :param whole: not only the beginning of a value
    """
    kind = name.type
    if kind == "mac":
        try:
            return addresses.check_mac(_bare_mac(text)) if whole else text.lower().replace("-", ":")
        except ValueError as error:
            raise _Unusable(str(error), token) from None
    if kind == "address":
        address = addresses.parse(text) if whole else None
        return text if address is None else str(address)
    if kind == "boolean":
        if is_quoted or text.lower() not in ("true", "false"):
            raise _Unusable("expected true or false, without quotes", token)
        return text.lower() == "true"
    if kind in ("integer", "number"):
        if is_quoted or not _NUMBER.fullmatch(text):
            unit = "" if name.unit is None else f" of {name.unit}"
            raise _Unusable(f"expected a number{unit}, without a unit and quotes", token)
        number = float(text) if set(text) & set(".eE") else int(text)
        if isinstance(number, int) and not is_int64(number):
            raise _Unusable("a number has at most 64 bits", token)
        return number
    return _moment(text, token) if kind == "time" else text


def _bare_mac(text: str) -> str:
    """Return a MAC address with colons where it is written as 12 digits, or as three groups of four."""
    digits = text.replace(".", "")
    if len(digits) == 12 and digits.isalnum():
        return ":".join(digits[at:at + 2] for at in range(0, 12, 2))
    return text


def _moment(text: str, token: Token) -> str:
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise _Unusable("expected a time like 2026-03-01T12:00:00Z", token) from None
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=datetime.UTC)
    try:
        return moment.astimezone(datetime.UTC).isoformat()
    except OverflowError:
        raise _Unusable("the time is too far away", token) from None


def _network(text: str, token: Token) -> str:
    try:
        parse_network(text)
    except OperandError as error:
        raise _Unusable(str(error), token) from None
    return text


_META = re.compile(r"[\\.+*?()|\[\]{}^$]")
#: Parts of a regular expression with braces, and single braces, which templates could begin with.
_BRACES = re.compile(r"\\[pPx]\{[^{}]*\}|\\.|" + QUANTIFIER.pattern + r"|[{}]", re.DOTALL)


def quoted(text: str) -> str:
    """Return a text as a value of a clause."""
    if re.fullmatch(r"[A-Za-z0-9_.:/+-]+", text):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def literal(text: str) -> str:
    """Return the regular expression that matches a text; as an argument of a rule, it has no template."""
    return _META.sub(lambda match: f"\\{match.group()}", text)


def _regex(text: str, token: Token) -> str:
    escaped = _BRACES.sub(lambda match: f"\\{match.group()}" if match.group() in "{}" else match.group(), text)
    try:
        compile_regex(escaped)
    except OperandError as error:
        raise _Unusable(str(error), token) from None
    return escaped


def _article(kind: str) -> str:
    return {"integer": "a number", "address": "an address", "mac": "a MAC address"}.get(kind, f"a {kind}")


def _column(token: Token) -> int:
    return (token.start_pos or 0) + 1


def _column_error(column: int, text: str) -> WhereError:
    return WhereError(problems=[Problem("", f"column {column}: {text}")])


#: Texts about expected input, by the terminals of the grammar, in the order of messages.
_EXPECTED = {
    "NAME": "a name", "COMPARISON": "an operator (=, !=, <, <=, >, >=, in, has, starts, contains, matches, in-net, is)",
    "WORD": "a value", "STATE": "empty or absent", "LPAR": "'('", "COMMA": "','", "RPAR": "')'", "_AND": "'and'",
    "_OR": "'or'", "$END": "the end"}
_WORDS = ("in", "has", "starts", "contains", "matches", "in-net", "is", "not")


def _complaint(text: str, error: UnexpectedInput) -> WhereError:
    """Return the error for a clause that the parser does not accept; quotes only its own words."""
    at = min(error.pos_in_stream or 0, len(text)) if isinstance(error, UnexpectedCharacters) else _place(text, error)
    expected = set(getattr(error, "allowed", None) or getattr(error, "expected", None) or ())
    rest = text[at:]
    if rest[:1] in ('"', "'") and expected & {"QUOTED", "WORD"}:
        return _column_error(at + 1, "this quote is not closed")
    if text.count("(", 0, at) <= text.count(")", 0, at):
        expected -= {"COMMA", "RPAR"}
    *others, last = [shown for name, shown in _EXPECTED.items() if name in expected] or [""]
    reason = f"expected {', '.join(others)}{' or ' if others else ''}{last}"
    word = re.match(r"[A-Za-z-]+", rest)
    if "COMPARISON" in expected and word and (near := nearest(word.group(), _WORDS)):
        reason += f"; did you mean {near!r}?"
    elif "_AND" in expected and rest:
        reason += "; a value with other characters than letters, digits and . : / - _ needs quotes"
    if ")" not in text[at:] and "RPAR" in expected and not rest:
        reason = f"a '(' is not closed; {reason}"
    return _column_error(at + 1, reason)


def _place(text: str, error: UnexpectedInput) -> int:
    token = getattr(error, "token", None)
    if isinstance(token, Token) and token.type != "$END" and token.start_pos is not None:
        return token.start_pos
    return len(text.rstrip())
