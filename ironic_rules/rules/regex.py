"""Regular expressions by RE2: compilation, limits, error texts, and many expressions applied to one text at once.

A set of a thousand expressions takes little more time than a single one. RE2 limits the memory of a set, and reports
neither that a match needed more nor what it missed; so each set has one more expression, which matches every text: if
that is missing in a result, the expressions are applied one by one. Expressions that do not fit into any set always
are.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import re2

from ironic_rules.rules.errors import CannotEvaluate, OperandError

#: Maximum number of characters of a regular expression, the same in every service: RE2's program is many times larger.
MAX_REGEX = 4096

#: Maximum number of instructions of RE2's program for a regular expression. With so many, and the largest text that is
#: accepted by default, the worst case takes about a second. The longest expression of literal ASCII characters is
#: within this limit.
MAX_PROGRAM = 4100

#: Maximum number of named groups of a regular expression: RE2 copies the places of all groups for each instruction.
#: With as many, the largest text and program take 0.8 s; the longest expression could have 340, and took 1.6 s.
MAX_GROUPS = 32

_HINTS = {
    "invalid perl operator": " (RE2 has no look-around)",
    "invalid escape sequence": " (RE2 has no back references)",
}
#: Hints for the parts that RE2 quotes, instead of those for its reasons.
_PART_HINTS = {r"\Z": r" (the end of the text is \z)"}
#: Maximum number of places in an expression that are tried as the position of RE2's error.
_MAX_PLACES = 10
#: Bytes that RE2 may use for one expression, most of them for its cache of states; with fewer it becomes slow for
#: harmless texts.
_MAX_MEMORY = 2 * 1024 * 1024
#: Maximum number of bytes of a text for which it is remembered what matches it.
LONGEST_KNOWN = 128
#: Maximum number of these for one expression.
_KNOWN = 4
_TOO_LARGE = "pattern too large - compile failed"
#: A parenthesis, or what may contain a literal one: an escape, a quotation, a character class.
_PARENTHESES = re.compile(r"\\Q.*?(?:\\E|\Z)|\\.|\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\]|[()]", re.DOTALL)
#: An escape or the begin of a character class; inside one an escape, a named class or its end.
_OUTSIDE = re.compile(r"\\.|\[\^?\]?", re.DOTALL)
_INSIDE = re.compile(r"\\(?:[pP](?:\{[^{}]*\}|.)|.)|\[:\^?[A-Za-z]+:\]|\]", re.DOTALL)
#: Reason why escapes are not those of Python.
_ASCII = {"w": "é is no letter", "d": "only 0 to 9 are digits", "s": "a no-break space is no white space",
          "b": "é ends a word"}
#: The Unicode forms of escapes that are ASCII: alone, and in a character class; None if there is none.
_UNICODE: dict[str, tuple[str | None, str | None]] = {
    r"\w": (r"[\pL\pN_]", r"\pL\pN_"), r"\W": (r"[^\pL\pN_]", None),
    r"\d": (r"\p{Nd}", r"\p{Nd}"), r"\D": (r"\P{Nd}", r"\P{Nd}"),
    r"\s": (r"[\s\v\pZ]", r"\s\v\pZ"), r"\S": (r"[^\s\v\pZ]", None),
    r"\b": (None, None), r"\B": (None, None),
}
#: Parts of a character class that is not meant to be ASCII only.
_UNICODE_PARTS = {r"\w": {r"\pL", r"\p{L}"}, r"\d": {r"\pN", r"\p{N}", r"\p{Nd}"}, r"\s": {r"\pZ", r"\p{Z}"}}

_GROUP = re.compile(rb"\(\?P?<([^>]+)>")


def text_of(value: object) -> bytes | None:
    """Return the text that regular expressions are applied to, None if they never match the value."""
    if isinstance(value, str):
        # "replace": UTF-8 has no lone surrogates, but JSON escapes can contain them.
        return value.encode("utf-8", "replace")
    return str(value).encode() if isinstance(value, (int, float)) else None


def searched_texts(value: object) -> list[bytes]:
    """Return the texts that ``contains`` applies an expression to: those of the elements of a list."""
    return [text for item in (value if isinstance(value, list) else [value]) if (text := text_of(item)) is not None]


class Pattern:
    """A regular expression for texts of at most ``most`` bytes: the time of a match grows with the text.

    RE2's program is made when it is needed first: most expressions are only applied as parts of a set.

    The outcomes of the last short texts are known: machines of the same model have the same ones. While RE2 searches,
    other threads run, so that a search costs much more in a busy service.
    """

    __slots__ = ("_fullmatch", "_is_all_of", "_is_in", "_search", "most", "text")

    def __init__(self, text: str, most: int) -> None:
        self.text = text
        self.most = most
        self._search: Any = None
        self._fullmatch: Any = None
        self._is_in: dict[bytes, bool] | None = None
        self._is_all_of: dict[bytes, bool] | None = None

    def is_in(self, text: bytes) -> bool:
        """Return whether it matches anywhere in ``text``.

        :raises CannotEvaluate: the text is too long
        """
        if len(text) > self.most:
            raise self._too_long()
        outcomes = self._is_in
        if outcomes is not None and (outcome := outcomes.get(text)) is not None:
            return outcome
        outcome = self.search(text) is not None
        self._is_in = _with(outcomes, text, outcome)
        return outcome

    def is_in_any(self, texts: Sequence[bytes]) -> bool:
        """Return whether it matches anywhere in one of ``texts``, which together must not be too long."""
        if sum(map(len, texts)) > self.most:
            raise self._too_long()
        search = self.search
        return any(search(text) is not None for text in texts)

    def is_all_of(self, text: bytes) -> bool:
        """Return whether it matches the whole of ``text``."""
        if len(text) > self.most:
            raise self._too_long()
        outcomes = self._is_all_of
        if outcomes is not None and (outcome := outcomes.get(text)) is not None:
            return outcome
        outcome = self.fullmatch(text) is not None
        self._is_all_of = _with(outcomes, text, outcome)
        return outcome

    @property
    def search(self) -> Any:
        """RE2's function that searches in a text."""
        return self._search or self._compiled().search

    @property
    def fullmatch(self) -> Any:
        """RE2's function that matches a whole text."""
        return self._fullmatch or self._compiled().fullmatch

    def _compiled(self) -> Any:
        compiled = compile_regex(self.text)
        self._search, self._fullmatch = compiled.search, compiled.fullmatch
        return compiled

    @property
    def groups(self) -> tuple[str, ...]:
        """The names of its named groups; one that several groups have, as alternatives, is repeated."""
        if "<" not in self.text:
            return ()
        compiled = compile_regex(self.text)
        names = tuple(compiled.groupindex)
        if len(names) < compiled.groups:
            # RE2 returns only the first of them, and does not say which name it is.
            names = tuple(_GROUP.findall(compiled.pattern))
        return tuple(name.decode() for name in names)

    def groups_of(self, text: bytes) -> dict[str, str | None] | None:
        """Return the text of each named group, None for one without a part in the match of the whole of ``text``.

        :returns: None if it does not match
        """
        if len(text) > self.most:
            raise self._too_long()
        match = self.fullmatch(text)
        if match is None:
            return None
        # "replace": \C matches a single byte.
        return {name.decode(): None if part is None else part.decode("utf-8", "replace")
                for name, part in match.groupdict().items()}

    def _too_long(self) -> CannotEvaluate:
        return CannotEvaluate(f"the text is longer than the {self.most} bytes that regular expressions are applied to")


def _with(outcomes: dict[bytes, bool] | None, text: bytes, outcome: bool) -> dict[bytes, bool] | None:
    """Return the outcomes that are known, with one more."""
    if len(text) > LONGEST_KNOWN:
        return outcomes
    return {text: outcome} if outcomes is None or len(outcomes) >= _KNOWN else {**outcomes, text: outcome}


@functools.lru_cache(maxsize=512)
def compile_regex(text: str) -> Any:
    """Return a compiled RE2 pattern for UTF-8 bytes, with which the binding is a third faster than with strings.

    :raises OperandError: RE2 refuses it; the text has RE2's reason and, if RE2 quotes a part, its column
    """
    if len(text) > MAX_REGEX:
        raise OperandError(f"a regular expression has at most {MAX_REGEX} characters")
    try:
        compiled = _compiled(text)
        if compiled.groups > MAX_GROUPS:
            raise OperandError(f"a regular expression has at most {MAX_GROUPS} named groups")
        if compiled.programsize <= MAX_PROGRAM:
            return compiled
        reason = part = _TOO_LARGE
    except re2.error as exc:
        reason, part = _complaint(exc)
    except UnicodeEncodeError:
        raise OperandError("not a regular expression: lone surrogate characters") from None
    if reason == _TOO_LARGE:
        raise OperandError("the regular expression takes too much work: use fewer and smaller repetitions; "
                           "'.', [^..], \\D, \\S, \\W and \\p{..} are the costly ones to repeat")
    # RE2 quotes a part, or all, of the expression; the quotation is left out, because it may be a secret.
    column = _column(text, reason, part)
    place = "" if column is None else f" at column {column}"
    hint = _PART_HINTS.get(part) or _HINTS.get(reason, "")
    raise OperandError(f"not a regular expression that RE2 accepts: {reason}{hint}{place}")


def cautions(text: str) -> Iterator[str]:
    """Yield what a regular expression does otherwise than those of Python, once for each escape; quotes only that."""
    cautioned: set[tuple[str, bool]] = set()
    for at, escape, parts in _escapes(text):
        in_class = parts is not None
        if (escape, in_class) in cautioned or (parts and not parts.isdisjoint(_UNICODE_PARTS.get(escape, ()))):
            continue
        cautioned.add((escape, in_class))
        if escape in _UNICODE:
            yield f"column {at + 1}: {escape} of RE2 is ASCII: {_ASCII[escape[1].lower()]}; {_advice(escape, in_class)}"
        elif escape in _PART_HINTS:
            yield f"column {at + 1}: RE2 refuses {escape}{_PART_HINTS[escape]}"


def _advice(escape: str, in_class: bool) -> str:
    form = _UNICODE[escape][in_class]
    if form is not None:
        return f"the Unicode form is {form}"
    return "in a character class it has no Unicode form" if _UNICODE[escape][0] else "it has no Unicode form"


def _escapes(text: str) -> Iterator[tuple[int, str, set[str] | None]]:
    """Yield position and text of each escape, and the escapes of the character class that it is in."""
    at = 0
    while match := _OUTSIDE.search(text, at):
        at = match.end()
        token = match.group()
        if token == r"\Q":
            end = text.find(r"\E", at)
            at = len(text) if end < 0 else end + 2
        elif token[0] == "\\":
            yield match.start(), token, None
        else:
            inside = []
            while (part := _INSIDE.search(text, at)) and (at := part.end()) and part.group() != "]":
                inside.append(part)
            parts = {part.group() for part in inside}
            yield from ((part.start(), part.group(), parts) for part in inside)
            if part is None:
                return


def _compiled(text: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    # Named groups are captured nevertheless.
    options.never_capture = True
    options.max_mem = _MAX_MEMORY
    return re2.compile(text.encode("utf-8"), options)


def _complaint(exc: Exception) -> tuple[str, str]:
    """Return RE2's reason, and the part of the expression that it quotes."""
    raw = exc.args[0] if exc.args else b""
    message = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else str(raw)
    reason, _, part = message.partition(": ")
    return reason, part


def _column(text: str, reason: str, part: str) -> int | None:
    """Return the column of RE2's error in ``text``; None if it cannot be determined."""
    if reason == "trailing \\":
        return len(text)
    if reason == "missing ]":
        return len(text) - len(part) + 1
    if reason == "missing )":
        return _last_open(text)
    part = ")" if reason == "unexpected )" else part
    at = text.find(part) if part else -1
    if text.count(part) == 1:
        return at + 1
    # The place is the first one at which RE2 reports the same error for the text up to there.
    for _ in range(_MAX_PLACES):
        if at < 0:
            return None
        try:
            _compiled(text[:at + len(part)])
        except re2.error as exc:
            if _complaint(exc)[0] == reason:
                return at + 1
        at = text.find(part, at + 1)
    return None


def _last_open(text: str) -> int | None:
    """Return the column of the last parenthesis that is never closed."""
    opened: list[int] = []
    for match in _PARENTHESES.finditer(text):
        if match.group() == "(":
            opened.append(match.start() + 1)
        elif match.group() == ")" and opened:
            opened.pop()
    return opened[-1] if opened else None


#: Maximum number of expressions that are applied one by one beside sets, because compiling a set takes time.
LOOSE = 32
#: Maximum number of expressions that take less time one by one than in a set.
_FEW = 3
#: Maximum number of expressions in one set.
_MANY = 1000
#: Bytes that RE2 may use for a set, most of them for its cache of states.
MAX_MEMORY = 8 * 1024 * 1024
#: Maximum number of texts for which it is remembered what matches them, and of expressions that match one of these.
_KNOWN_SETS, _MOST_KNOWN = 16, 1000
_EVERY_TEXT = b"(?s:.*)"


class PatternSets:
    """Regular expressions, of which each text occurs once; immutable, shared by threads.

    :param full: whether an expression must match the whole text, or may match anywhere in it
    :param sets: of some expressions
    :param loose: expressions in none of the sets, by their texts
    """

    __slots__ = ("_full", "_known", "_loose", "_most", "_sets")

    def __init__(self, full: bool, sets: Sequence[_Set] = (), loose: Mapping[str, Pattern] | None = None) -> None:
        self._full = full
        self._sets = tuple(sets)
        self._loose = loose or {}
        #: expressions that match the texts of the last machines
        self._known: dict[bytes, frozenset[str]] = {}
        # The same for all: a limit of the service.
        self._most = min((pattern.most for patterns in (self._loose, *(part.patterns for part in self._sets))
                          for pattern in patterns.values()), default=0)

    @classmethod
    def compiled(cls, full: bool, patterns: Iterable[Pattern], max_memory: int = MAX_MEMORY) -> PatternSets:
        """Return sets of the expressions."""
        sets: list[_Set] = []
        loose: dict[str, Pattern] = {}
        queue = [tuple(patterns)]
        while queue:
            part = queue.pop()
            if len(part) > _MANY:
                queue += [part[:_MANY], part[_MANY:]]
                continue
            pattern_set = _Set.compiled(full, part, max_memory) if len(part) > 1 else None
            if pattern_set is not None:
                sets.append(pattern_set)
            elif len(part) > 1:
                queue += [part[:len(part) // 2], part[len(part) // 2:]]
            else:
                loose.update((pattern.text, pattern) for pattern in part)
        return cls(full, sets, loose)

    def with_loose(self, added: Iterable[Pattern]) -> PatternSets:
        """Return these with further expressions, which are in none of the sets."""
        new = {pattern.text: pattern for pattern in added
               if not any(pattern.text in pattern_set.patterns for pattern_set in self._sets)}
        return PatternSets(self._full, self._sets, {**self._loose, **new}) if new else self

    def tidied(self, needed: Collection[str]) -> PatternSets:
        """Return the sets of the expressions that are needed; these if few are loose, and not most are superfluous."""
        patterns = dict(self._loose)
        for pattern_set in self._sets:
            patterns |= pattern_set.patterns
        in_sets = len(patterns) - len(self._loose)
        if len(self._loose) <= min(LOOSE, _FEW + in_sets) and len(patterns) <= 2 * len(needed) + LOOSE:
            return self
        return PatternSets.compiled(self._full, [patterns[text] for text in needed])

    def matching(self, texts: Sequence[bytes]) -> Collection[str] | None:
        """Return the texts of those that match one of ``texts``; None if these are too long together."""
        if sum(map(len, texts)) > self._most:
            return None
        if len(texts) == 1 and len(texts[0]) <= LONGEST_KNOWN:
            return self._of_short(texts[0])
        return set().union(*map(self._of, texts))

    def _of_short(self, text: bytes) -> frozenset[str]:
        """Return the texts of those that match a text which other machines may have, too."""
        matching = self._known.get(text)
        if matching is None:
            matching = frozenset(self._of(text))
            if len(matching) <= _MOST_KNOWN:
                if len(self._known) >= _KNOWN_SETS:
                    self._known.clear()
                self._known[text] = matching
        return matching

    def _of(self, text: bytes) -> set[str]:
        matching = {name for name, pattern in self._loose.items() if self._matches(pattern, text)}
        for pattern_set in self._sets:
            numbers = pattern_set.match(text)
            if numbers is None:
                matching.update(name for name, pattern in pattern_set.patterns.items() if self._matches(pattern, text))
            else:
                matching.update(map(pattern_set.texts.__getitem__, numbers))
        return matching

    def _matches(self, pattern: Pattern, text: bytes) -> bool:
        return pattern.is_all_of(text) if self._full else pattern.is_in(text)


class _Set:
    """Several expressions by their texts, compiled together."""

    __slots__ = ("_match", "patterns", "texts")

    def __init__(self, patterns: Sequence[Pattern], match: re2.Set) -> None:
        self.patterns = {pattern.text: pattern for pattern in patterns}
        self.texts = tuple(self.patterns)
        self._match = match.Match

    @classmethod
    def compiled(cls, full: bool, patterns: Sequence[Pattern], max_memory: int) -> _Set | None:
        """Return a set; None if RE2 needs more memory for it."""
        options = re2.Options()
        options.log_errors = False
        options.never_capture = True
        options.max_mem = max_memory
        compiled = re2.Set.FullMatchSet(options) if full else re2.Set.SearchSet(options)
        try:
            for pattern in patterns:
                compiled.Add(pattern.text.encode())
            compiled.Add(_EVERY_TEXT)
            compiled.Compile()
        except re2.error:
            return None
        return cls(patterns, compiled)

    def match(self, text: bytes) -> list[int] | None:
        """Return the numbers of the expressions that match; None if RE2 ran out of memory."""
        result = self._match(text)  # False, if RE2 ran out of memory
        numbers: list[int] = result if isinstance(result, list) else []
        every = len(self.texts)
        return [number for number in numbers if number != every] if every in numbers else None
