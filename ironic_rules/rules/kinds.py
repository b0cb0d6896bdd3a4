"""Kinds of arguments: what a literal must look like, and what the operator or action gets.

A parameter annotated ``Regex`` takes a string in the rule and receives a compiled pattern. A literal is converted once,
when the rule is compiled; a templated value at each evaluation.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import netaddr
import re2

from ironic_rules.exceptions import Invalid
from ironic_rules.models import draft, mac, pointer, traits
from ironic_rules.rules import capabilities, paths
from ironic_rules.rules.errors import CannotEvaluate, OperandError
from ironic_rules.rules.limits import DEFAULT, MAX_LEVELS, MAX_PROGRAM, MAX_REGEX, Limits
from ironic_rules.text import is_uuid, nearest

_HINTS = {
    "invalid perl operator": " (RE2 has no look-around)",
    "invalid escape sequence": " (RE2 has no back references)",
}
#: In how many places of an expression RE2's complaint is looked for.
_MAX_PLACES = 10
#: Bytes that RE2 may use for one expression, most of them for the states that it has met; with fewer it gets slow for
#: harmless texts.
_MAX_MEMORY = 2 * 1024 * 1024
_TOO_LARGE = "pattern too large - compile failed"
#: A parenthesis, or what may have one that means itself: an escape, a quotation, a character class.
_PARENTHESES = re.compile(r"\\Q.*?(?:\\E|\Z)|\\.|\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\]|[()]", re.DOTALL)
LOG_LEVELS = ("critical", "error", "warning", "info", "debug")


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of argument.

    :ivar schema: JSON schema of a literal
    :ivar literal: types of which a literal must be, with ``expected`` as the complaint; None = anything
    :ivar convert: from the value to what the function gets; raises OperandError; None = as it is
    :ivar limited: as ``convert``, in its place, where that depends on the limits
    :ivar regex: the text is a regular expression, so ``{2,3}`` in it is no template
    :ivar prefix: checks, by the limits, the literal beginning of a text that continues with a template
    :ivar check: what a literal must be besides; data need not: they make no error of the rule's author
    """

    name: str
    schema: Mapping[str, Any]
    literal: tuple[type, ...] | None = None
    expected: str = ""
    convert: Callable[[Any], Any] | None = None
    limited: Callable[[Any, Limits], Any] | None = None
    regex: bool = False
    prefix: Callable[[str, Limits], Any] | None = None
    check: Callable[[Any], Any] | None = None

    def converter(self, limits: Limits) -> Callable[[Any], Any] | None:
        """Return what makes of a value what the function gets; None if that is the value itself."""
        limited = self.limited
        return self.convert if limited is None else lambda value: limited(value, limits)

    @property
    def takes_text(self) -> bool:
        """Whether a text can be one."""
        return self.literal is None or str in self.literal

    def literal_problem(self, value: Any, limits: Limits = DEFAULT) -> str | None:
        """Say why ``value`` can not stand in a rule; None if it can. Never quotes the value."""
        if self.literal is not None and (
            not isinstance(value, self.literal) or (isinstance(value, bool) and bool not in self.literal)
        ):
            return f"must be {self.expected}"
        for check in filter(None, (self.converter(limits), self.check)):
            try:
                check(value)
            except OperandError as exc:
                return str(exc)
        return None


class Network(NamedTuple):
    """A network as integers, so that a look-up is two comparisons."""

    version: int
    first: int
    last: int


class Pattern:
    """A regular expression for texts of at most ``most`` bytes: the time that one takes grows with the text."""

    __slots__ = ("_fullmatch", "_most", "_search")

    def __init__(self, compiled: Any, most: int) -> None:
        self._search = compiled.search
        self._fullmatch = compiled.fullmatch
        self._most = most

    def is_in(self, text: bytes) -> bool:
        """Say whether it is found somewhere in ``text``.

        :raises CannotEvaluate: the text is too long
        """
        if len(text) > self._most:
            raise self._too_long()
        return self._search(text) is not None

    def is_in_any(self, texts: Sequence[bytes]) -> bool:
        """Say whether it is found in one of ``texts``, which together must not be too long."""
        if sum(map(len, texts)) > self._most:
            raise self._too_long()
        return any(self._search(text) is not None for text in texts)

    def is_all_of(self, text: bytes) -> bool:
        """Say whether it matches the whole of ``text``."""
        if len(text) > self._most:
            raise self._too_long()
        return self._fullmatch(text) is not None

    def _too_long(self) -> CannotEvaluate:
        return CannotEvaluate(f"the text is longer than the {self._most} bytes that regular expressions are tried on")


@functools.lru_cache(maxsize=512)
def compile_regex(text: str) -> Any:
    """Return a compiled RE2 pattern for UTF-8 bytes: on these, the binding is a third faster than on strings.

    :raises OperandError: RE2 refuses it; the text has RE2's reason and, where RE2 names a part, its column
    """
    if len(text) > MAX_REGEX:
        raise OperandError(f"a regular expression has at most {MAX_REGEX} characters")
    try:
        compiled = _compiled(text)
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
    # RE2 quotes a part, or all, of the expression; the quote may be a secret and helps nobody.
    column = _column(text, reason, part)
    place = "" if column is None else f" at column {column}"
    raise OperandError(f"not a regular expression that RE2 accepts: {reason}{_HINTS.get(reason, '')}{place}")


def _compiled(text: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = _MAX_MEMORY
    return re2.compile(text.encode("utf-8"), options)


def _complaint(exc: Exception) -> tuple[str, str]:
    """Return what RE2 complains of, and the part of the expression that it names."""
    raw = exc.args[0] if exc.args else b""
    message = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else str(raw)
    reason, _, part = message.partition(": ")
    return reason, part


def _column(text: str, reason: str, part: str) -> int | None:
    """Return where in ``text`` that is which RE2 complains of; None if that can not be told."""
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
    # Of several places it is the first at which RE2, having read so far, complains of the same.
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
    for found in _PARENTHESES.finditer(text):
        if found.group() == "(":
            opened.append(found.start() + 1)
        elif found.group() == ")" and opened:
            opened.pop()
    return opened[-1] if opened else None


# netaddr needs 5 us per address; the rules of one inspection ask for the same few again and again.
@functools.lru_cache(maxsize=1024)
def parse_address(text: str) -> tuple[int, int] | None:
    """Return version and number of an IP address, which may have a zone; None if it is none."""
    try:
        address = netaddr.IPAddress(text.strip().partition("%")[0])
    except (netaddr.AddrFormatError, ValueError, TypeError):
        return None
    return address.version, int(address)


@functools.lru_cache(maxsize=512)
def parse_network(text: str) -> Network:
    """Return a network in CIDR form; host bits may be set.

    :raises OperandError: not a network
    """
    try:
        network = netaddr.IPNetwork(text.strip())
    except (netaddr.AddrFormatError, ValueError, TypeError):
        raise OperandError("must be a network in CIDR form, such as 192.0.2.0/24 or 2001:db8::/32") from None
    return Network(network.version, network.first, network.last)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else str(value)


def _regex(value: Any, limits: Limits) -> Pattern:
    if not isinstance(value, str):
        raise OperandError("a regular expression must be a string")
    return Pattern(compile_regex(value), limits.subject)


def _check_address(text: str) -> None:
    if parse_address(text) is None:
        raise OperandError("must be an IP address, or a template that gives one")


def _network(value: Any) -> Network:
    if not isinstance(value, str):
        raise OperandError("must be a network in CIDR form, such as 192.0.2.0/24 or 2001:db8::/32")
    return parse_network(value)


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise OperandError("must be true or false")
    return value


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise OperandError("must be a list")
    return value


def _integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise OperandError("must be an integer")
    return value


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise OperandError("must be an object")
    return value


def _level(value: Any) -> str:
    level = value.lower() if isinstance(value, str) else None
    if level not in LOG_LEVELS:
        raise OperandError(f"must be one of {', '.join(LOG_LEVELS)}")
    return str(level)


def _trait(value: Any) -> str:
    if not traits.is_trait(value):
        raise OperandError("a trait is CUSTOM_ followed by A-Z, 0-9 and _, at most 255 characters, or one of os-traits")
    return str(value)


def _capability(value: Any) -> str:
    if not capabilities.is_name(value):
        raise OperandError("a capability's name is a string without ':', ',' and white space")
    return value


def _port_id(value: Any) -> str:
    if not isinstance(value, str) or not (mac.is_mac(value) or is_uuid(value)):
        raise OperandError("must be the MAC address or UUID of a port")
    return value


def _data_path(value: Any) -> str:
    try:
        _check_length(paths.parse(value))
    except pointer.PointerError as exc:
        raise OperandError(exc.reason) from None
    return str(value)


def _check_length(tokens: tuple[str, ...]) -> None:
    if len(tokens) > MAX_LEVELS:
        raise OperandError(f"a path has at most {MAX_LEVELS} parts")


def _writable(fields: type[draft.NodeDraft] | type[draft.PortDraft], deleting: bool = False) -> Callable[[Any], str]:
    def check(value: Any) -> str:
        if not isinstance(value, str):
            raise OperandError("a path must be a string, such as /extra/rack")
        try:
            if not deleting:
                path = draft.FieldPath(value, fields)
                _check_length(path.tokens)
                return path
            fields.path_tokens(value, deleting)
        except pointer.PointerError as exc:
            raise OperandError(exc.reason) from None
        except Invalid:
            raise OperandError(_not_writable(fields, value, deleting)) from None
        return value

    return check


def _not_writable(fields: type[draft.NodeDraft] | type[draft.PortDraft], path: str, deleting: bool) -> str:
    first, *rest = pointer.parse(path, relative=True) or ("",)
    if first in fields.writable:
        return f"/{first} has no parts" if rest else f"/{first} can not be removed"
    near = nearest(first, fields.writable)
    hint = f"did you mean /{near}?" if near else f"it can write {', '.join(sorted(fields.writable))}"
    return f"a rule can not write this field; {hint}"


def _prefix(fields: type[draft.NodeDraft] | type[draft.PortDraft]) -> Callable[[str, Limits], None]:
    check = _writable(fields)

    def check_prefix(text: str, limits: Limits) -> None:
        # "/extra/{item}": the field is known although the rest is not; "/ex{item}" can be told at run time only.
        first, slash, _ = text.removeprefix("/").partition("/")
        if slash:
            check(f"/{first}/x")

    return check_prefix


_STRING = {"type": "string"}
ANY = Kind("any", {})
TEXT = Kind("string", _STRING, (str,), "a string", _text)
ADDRESS = Kind("address", _STRING, (str,), "a string", check=_check_address)
BOOLEAN = Kind("boolean", {"type": ["boolean", "string"]}, (bool,), "true or false", _boolean)
INTEGER = Kind("integer", {"type": ["integer", "string"]}, (int,), "an integer", _integer)
LIST = Kind("list", {"type": ["array", "string"]}, (list,), "a list, or a template that gives one", _list)
OBJECT = Kind("object", {"type": ["object", "string"]}, (dict,), "an object, or a template that gives one", _object)
REGEX = Kind("regular expression", _STRING, (str,), "a string", limited=_regex, regex=True)
NETWORK = Kind("network", _STRING, (str,), "a string", _network)
LEVEL = Kind("log level", _STRING, (str,), "a string", _level)
TRAIT = Kind("trait", _STRING, (str,), "a string", _trait)
CAPABILITY = Kind("capability", _STRING, (str,), "a string", _capability)
PORT_ID = Kind("port", _STRING, (str,), "a string", _port_id)
DATA_PATH = Kind("plugin data path", _STRING, (str,), "a string", _data_path)
NODE_PATH = Kind("node path", _STRING, (str,), "a string", _writable(draft.NodeDraft), prefix=_prefix(draft.NodeDraft))
NODE_DEL_PATH = Kind("node path", _STRING, (str,), "a string", _writable(draft.NodeDraft, deleting=True),
                     prefix=_prefix(draft.NodeDraft))
PORT_PATH = Kind("port path", _STRING, (str,), "a string", _writable(draft.PortDraft), prefix=_prefix(draft.PortDraft))
PORT_DEL_PATH = Kind("port path", _STRING, (str,), "a string", _writable(draft.PortDraft, deleting=True),
                     prefix=_prefix(draft.PortDraft))

Text = Annotated[str, TEXT]
Address = Annotated[Any, ADDRESS]
Flag = Annotated[bool, BOOLEAN]
Values = Annotated[list[Any], LIST]
Regex = Annotated[Pattern, REGEX]
Subnet = Annotated[Network, NETWORK]
Level = Annotated[str, LEVEL]
Trait = Annotated[str, TRAIT]
Capability = Annotated[str, CAPABILITY]
PortId = Annotated[str, PORT_ID]
DataPath = Annotated[str, DATA_PATH]
NodePath = Annotated[str, NODE_PATH]
NodeDelPath = Annotated[str, NODE_DEL_PATH]
PortPath = Annotated[str, PORT_PATH]
PortDelPath = Annotated[str, PORT_DEL_PATH]

#: Plain annotations of other people's actions.
BY_TYPE: dict[Any, Kind] = {str: TEXT, bool: BOOLEAN, int: INTEGER, list: LIST, dict: OBJECT}
