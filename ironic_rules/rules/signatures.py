"""Signatures of operators and actions: their names, their parameters, and the kinds of arguments.

Parameters are read once from the signature of a function. A kind is the form of literals, and the value that operators
and actions receive: a parameter annotated ``Regex`` accepts a string in the rule and receives a compiled pattern. A
literal is converted once, when the rule is compiled; a value with templates is converted at each evaluation. IP
addresses and networks become numbers, for fast comparison.
"""

from __future__ import annotations

import functools
import inspect
import ipaddress
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import netaddr

from ironic_rules.exceptions import Invalid
from ironic_rules.models import addresses, documents, draft, traits
from ironic_rules.models.documents import JSONObject
from ironic_rules.rules import capabilities, paths
from ironic_rules.rules.errors import OperandError
from ironic_rules.rules.limits import DEFAULT, MAX_LEVELS, Limits
from ironic_rules.rules.regex import Pattern, cautions, compile_regex
from ironic_rules.text import is_uuid, nearest


class Network(NamedTuple):
    """A network as integers, so that a lookup takes two comparisons."""

    version: int
    first: int
    last: int


#: Maximum number of characters of a text that is remembered: a report may have texts of megabytes in their place.
_LONGEST = 128


def parse_address(text: str) -> tuple[int, int] | None:
    """Return version and number of an IP address, which may have a zone; None if it is not an address."""
    return (_parsed_address if len(text) <= _LONGEST else _parsed_address.__wrapped__)(text)


def parse_network(text: str) -> Network:
    """Return a network in CIDR form; host bits may be set.

    :raises OperandError: not a network
    """
    return (_parsed_network if len(text) <= _LONGEST else _parsed_network.__wrapped__)(text)


# The rules of one inspection parse the same few addresses repeatedly.
@functools.lru_cache(maxsize=1024)
def _parsed_address(text: str) -> tuple[int, int] | None:
    text = text.strip().partition("%")[0]
    version = _version(text)
    return None if version is None else (version, int(netaddr.IPAddress(text, version)))


@functools.lru_cache(maxsize=512)
def _parsed_network(text: str) -> Network:
    text = text.strip()
    address, _, mask = text.partition("/")
    version = _version(address)
    if version is not None and (not mask or _is_number(mask) or _version(mask) == version):
        try:
            network = netaddr.IPNetwork(text)
        except (netaddr.AddrFormatError, ValueError, TypeError):
            pass
        else:
            return Network(network.version, network.first, network.last)
    raise OperandError("must be a network in CIDR form, such as 192.0.2.0/24 or 2001:db8::/32")


def _is_number(text: str) -> bool:
    try:
        int(text)
    except ValueError:
        return False
    return True


def _version(text: str) -> int | None:
    """Return the IP version of an address; None if it is none.

    Asked first, because netaddr keeps errors in variables of the functions that raise them: a cycle, which keeps each
    frame below in memory until the garbage collector runs, and with them the report of a ramdisk.
    """
    try:
        return ipaddress.ip_address(text).version
    except ValueError:
        return None


LOG_LEVELS = ("critical", "error", "warning", "info", "debug")


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of argument.

    :ivar schema: JSON schema of a literal
    :ivar literal: types that a literal must have, described by ``expected`` in errors; None = any type
    :ivar convert: converts the value to what the function receives; raises OperandError; None = unchanged
    :ivar limited: as ``convert``, and used instead of it, if the conversion depends on the limits
    :ivar regex: the text is a regular expression, so ``{2,3}`` in it is not a template
    :ivar prefix: checks, by the limits, the literal beginning of a text that continues with a template
    :ivar check: a further check of literals; it does not apply to data, which are not the rule author's mistake
    :ivar cautions: returns the warnings about a valid text; instead of its templates the text has letters
    :ivar tolerated: returns the warning about a literal that is not valid, but that clients are known to send; None if
        it is refused. An action with it fails when it runs
    :ivar for_people: the text is a message: what cannot be filled in is named in its place, and nothing fails
    :ivar names_fact: the text is the name of a fact; the function receives its value now, and that before
    :ivar otherwise: the value in the place of data that cannot be converted; None: the action fails
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
    cautions: Callable[[str], Iterable[str]] | None = None
    tolerated: Callable[[Any], str | None] | None = None
    for_people: bool = False
    names_fact: bool = False
    otherwise: str | None = None

    def converter(self, limits: Limits) -> Callable[[Any], Any] | None:
        """Return the function that converts a value to what the operation receives; None if it is unchanged."""
        limited = self.limited
        return self.convert if limited is None else lambda value: limited(value, limits)

    def takes(self, kind: type) -> bool:
        """Return whether a value of this type, found at run time, can be of this kind."""
        return self.literal is None or kind in self.literal or self.convert is _text

    def literal_problem(self, value: object, limits: Limits = DEFAULT) -> str | None:
        """Return why ``value`` is not valid in a rule; None if it is. Never quotes the value."""
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


def _text(value: Any) -> str:
    return value if isinstance(value, str) else str(value)


def _regex(value: object, limits: Limits) -> Pattern:
    if not isinstance(value, str):
        raise OperandError("a regular expression must be a string")
    compile_regex(value)
    return Pattern(value, limits.subject)


def _check_address(text: str) -> None:
    if parse_address(text) is None:
        raise OperandError("must be an IP address, or a template that gives one")


def _network(value: object) -> Network:
    if not isinstance(value, str):
        raise OperandError("must be a network in CIDR form, such as 192.0.2.0/24 or 2001:db8::/32")
    return parse_network(value)


def _boolean(value: object) -> bool:
    if not isinstance(value, bool):
        raise OperandError("must be true or false")
    return value


def _list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise OperandError("must be a list")
    return value


def _integer(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise OperandError("must be an integer")
    return value


def _object(value: object) -> JSONObject:
    if not isinstance(value, dict):
        raise OperandError("must be an object")
    return value


def _level(value: object) -> str:
    level = value.lower() if isinstance(value, str) else None
    if level not in LOG_LEVELS:
        raise OperandError(f"must be one of {', '.join(LOG_LEVELS)}")
    return str(level)


def _trait(value: object) -> str:
    if not traits.is_trait(value):
        raise OperandError("a trait is CUSTOM_ followed by A-Z, 0-9 and _, at most 255 characters, or one of os-traits")
    return str(value)


def _capability(value: Any) -> str:
    if not capabilities.is_name(value):
        raise OperandError("a capability's name is a string without ':', ',' and white space")
    return value


def _port_id(value: object) -> str:
    if (address := addresses.mac_of_port(value)) is not None:
        return address
    if not isinstance(value, str) or not is_uuid(value):
        raise OperandError("must be the MAC address or UUID of a port")
    return value


def _data_path(value: object) -> str:
    try:
        _check_length(paths.parse(value))
    except documents.PointerError as exc:
        raise OperandError(exc.reason) from None
    return str(value)


def _check_length(tokens: tuple[str, ...]) -> None:
    if len(tokens) > MAX_LEVELS:
        raise OperandError(f"a path has at most {MAX_LEVELS} parts")


def _writable(fields: type[draft.NodeDraft] | type[draft.PortDraft], deleting: bool = False) -> Callable[[Any], str]:
    def check(value: object) -> str:
        if not isinstance(value, str):
            raise OperandError("a path must be a string, such as /extra/rack")
        try:
            if not deleting:
                path = draft.FieldPath(value, fields)
                _check_length(path.tokens)
                return path
            fields.path_tokens(value, deleting)
        except documents.PointerError as exc:
            raise OperandError(exc.reason) from None
        except Invalid:
            raise OperandError(_not_writable(fields, value, deleting)) from None
        return value

    return check


def _not_writable(fields: type[draft.NodeDraft] | type[draft.PortDraft], path: str, deleting: bool) -> str:
    first, *rest = documents.parse_pointer(path, relative=True) or ("",)
    if first in fields.writable:
        return f"/{first} has no parts" if rest else f"/{first} cannot be removed"
    near = nearest(first, fields.writable)
    hint = f"did you mean /{near}?" if near else f"it can write {', '.join(sorted(fields.writable))}"
    return f"a rule cannot write this field; {hint}"


def _prefix(fields: type[draft.NodeDraft] | type[draft.PortDraft]) -> Callable[[str, Limits], None]:
    check = _writable(fields)

    def check_prefix(text: str, limits: Limits) -> None:
        # "/extra/{item}": the field is known although the rest is not; "/ex{item}" can only be checked at run time.
        first, slash, _ = text.removeprefix("/").partition("/")
        if slash:
            check(f"/{first}/x")

    return check_prefix


def _in_braces(path: object) -> str | None:
    """Return the warning about a path in braces, such as ``{ /extra/rack }``, which a template in a rule looks like."""
    if not isinstance(path, str) or not path.startswith("{") or not path.endswith("}"):
        return None
    return ("braces in a path are text, and there is no such field: the action will fail when it runs; a path is "
            "written without them, such as /extra/rack")


_STRING = {"type": "string"}
ANY = Kind("any", {})
TEXT = Kind("string", _STRING, (str,), "a string", _text)
MESSAGE = Kind("string", _STRING, (str,), "a string", _text, for_people=True)
ADDRESS = Kind("address", _STRING, (str,), "a string", check=_check_address)
BOOLEAN = Kind("boolean", {"type": ["boolean", "string"]}, (bool,), "true or false", _boolean)
INTEGER = Kind("integer", {"type": ["integer", "string"]}, (int,), "an integer", _integer)
LIST = Kind("list", {"type": ["array", "string"]}, (list,), "a list, or a template that gives one", _list)
OBJECT = Kind("object", {"type": ["object", "string"]}, (dict,), "an object, or a template that gives one", _object)
REGEX = Kind("regular expression", _STRING, (str,), "a string", limited=_regex, regex=True,
             cautions=cautions)
NETWORK = Kind("network", _STRING, (str,), "a string", _network)
FACT_NAME = Kind("fact", _STRING, (str,), "the name of a fact", names_fact=True)
LEVEL = Kind("log level", _STRING, (str,), "a string", _level, otherwise="warning")
TRAIT = Kind("trait", _STRING, (str,), "a string", _trait)
CAPABILITY = Kind("capability", _STRING, (str,), "a string", _capability)
PORT_ID = Kind("port", _STRING, (str,), "a string", _port_id)
DATA_PATH = Kind("plugin data path", _STRING, (str,), "a string", _data_path)
NODE_PATH = Kind("node path", _STRING, (str,), "a string", _writable(draft.NodeDraft), prefix=_prefix(draft.NodeDraft),
                 tolerated=_in_braces)
NODE_DEL_PATH = Kind("node path", _STRING, (str,), "a string", _writable(draft.NodeDraft, deleting=True),
                     prefix=_prefix(draft.NodeDraft), tolerated=_in_braces)
PORT_PATH = Kind("port path", _STRING, (str,), "a string", _writable(draft.PortDraft), prefix=_prefix(draft.PortDraft),
                 tolerated=_in_braces)
PORT_DEL_PATH = Kind("port path", _STRING, (str,), "a string", _writable(draft.PortDraft, deleting=True),
                     prefix=_prefix(draft.PortDraft), tolerated=_in_braces)

Text = Annotated[str, TEXT]
Message = Annotated[str, MESSAGE]
Address = Annotated[Any, ADDRESS]
Flag = Annotated[bool, BOOLEAN]
Values = Annotated[list[Any], LIST]
Regex = Annotated[Pattern, REGEX]
Subnet = Annotated[Network, NETWORK]
FactName = Annotated[Any, FACT_NAME]
Level = Annotated[str, LEVEL]
Trait = Annotated[str, TRAIT]
Capability = Annotated[str, CAPABILITY]
PortId = Annotated[str, PORT_ID]
DataPath = Annotated[str, DATA_PATH]
NodePath = Annotated[str, NODE_PATH]
NodeDelPath = Annotated[str, NODE_DEL_PATH]
PortPath = Annotated[str, PORT_PATH]
PortDelPath = Annotated[str, PORT_DEL_PATH]

#: Plain annotations, as used by third-party actions.
BY_TYPE: dict[Any, Kind] = {str: TEXT, bool: BOOLEAN, int: INTEGER, list: LIST, dict: OBJECT}


class UnknownName(LookupError):
    """No such operator or action. ``nearest`` is the most similar name, or None."""

    def __init__(self, kind: str, nearest: str | None, names: list[str]) -> None:
        self.nearest = nearest
        hint = f"did you mean {nearest!r}?" if nearest else f"known: {', '.join(names)}"
        super().__init__(f"there is no such {kind}; {hint}")


class BadOperation(ValueError):
    """An object cannot be registered as an operation, or its name is already in use."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter: ``variadic`` is "", "positional" (``*values``) or "keyword" (``**options``)."""

    name: str
    kind: Kind
    required: bool
    variadic: str = ""
    keyword_only: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """A registered operator or action.

    :ivar call: the function, or the instance of the action's class
    :ivar formatted: names of the parameters in which templates are filled in; None = all
    :ivar early: whether it works in the early phase
    :ivar absent: what it gives if one of its values is missing; None: such a value is null
    """

    name: str
    call: Any
    parameters: tuple[Parameter, ...]
    doc: str
    formatted: frozenset[str] | None = None
    early: bool = True
    absent: bool | None = None

    def parameter(self, name: str) -> Parameter | None:
        """Return the named parameter, or the one that takes any name; None if there is neither."""
        for parameter in self.parameters:
            if parameter.name == name and parameter.variadic != "keyword":
                return parameter
        return next((p for p in self.parameters if p.variadic == "keyword"), None)

    def argument_names(self) -> list[str]:
        """Return the names that a rule can give, in order."""
        return [p.name for p in self.parameters if p.variadic != "keyword"]


_VARIADIC: dict[Any, str] = {
    inspect.Parameter.VAR_POSITIONAL: "positional", inspect.Parameter.VAR_KEYWORD: "keyword",
}


class Registry:
    """Operations by name. The same name twice is refused, unless it is the same object again.

    :param what: the kind of operations, for messages
    :param read: creates an Operation from a name and an object; raises BadOperation
    """

    def __init__(self, kind: str, read: Callable[[str, Any], Operation]) -> None:
        self.what = kind
        self._read = read
        self._operations: dict[str, Operation] = {}
        self._objects: JSONObject = {}

    def add(self, name: str, target: object = None) -> Any:
        """Register ``target``; without one, return a decorator.

        :raises BadOperation: the name is already in use, or the signature is not supported
        """
        if target is None:
            return lambda decorated: self.add(name, decorated)
        if name in self._operations:
            if self._objects[name] is target:
                return target
            raise BadOperation(f"{self.what} {name!r} is registered twice")
        self._operations[name] = self._read(name, target)
        self._objects[name] = target
        return target

    def get(self, name: str) -> Operation:
        """Return the named operation.

        :raises UnknownName: with the nearest valid name
        """
        try:
            return self._operations[name]
        except KeyError:
            raise UnknownName(self.what, nearest(name, self._operations), self.names()) from None

    def names(self) -> list[str]:
        """Return all names, sorted."""
        return sorted(self._operations)

    def __iter__(self) -> Iterator[Operation]:
        return (self._operations[name] for name in self.names())

    def __len__(self) -> int:
        return len(self._operations)

    def __contains__(self, name: object) -> bool:
        return name in self._operations


def read_parameters(function: Callable[..., Any], skip: int) -> tuple[Parameter, ...]:
    """Read the parameters of ``function`` except the first ``skip``.

    An annotation ``Annotated[..., Kind]`` or a plain ``str``, ``bool``, ``int``, ``list``, ``dict`` defines the kind.
    """
    signature = inspect.signature(function)
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except (NameError, TypeError):
        hints = {}
    parameters = []
    for parameter in list(signature.parameters.values())[skip:]:
        variadic = _VARIADIC.get(parameter.kind, "")
        parameters.append(Parameter(
            name=parameter.name, kind=_kind(hints.get(parameter.name)),
            required=parameter.default is parameter.empty and not variadic, variadic=variadic,
            keyword_only=parameter.kind is parameter.KEYWORD_ONLY,
        ))
    return tuple(parameters)


def _kind(hint: object) -> Kind:
    for extra in getattr(hint, "__metadata__", ()):
        if isinstance(extra, Kind):
            return extra
    plain = typing.get_origin(hint) or hint
    return BY_TYPE.get(plain, ANY) if isinstance(plain, type) else ANY
