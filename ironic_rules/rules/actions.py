"""The actions of the service: on the node, its ports, capabilities and traits, on plugin data, messages, and API calls.

``api-call`` sends an HTTP GET to a host that the operator has allowed. The engine does not access the network: the
function that sends requests is passed to the rule set. The hosts that may be called are one of the limits, so that a
rule with a call that is not allowed is refused.

Actions of other packages are from the entry point group ``ironic.inspection_rules.actions``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import stevedore

from ironic_rules.exceptions import ConfigurationError, SecretMasked
from ironic_rules.models import documents, draft, secrets
from ironic_rules.models.draft import NodeDraft, PortDraft
from ironic_rules.models.task import Task
from ironic_rules.rules import capabilities, paths
from ironic_rules.rules.base import ACTIONS, ActiveRule, InspectionRuleActionBase
from ironic_rules.rules.errors import ActionError, OperandError
from ironic_rules.rules.limits import Limits, host_of
from ironic_rules.rules.signatures import (
    TRAIT,
    BadOperation,
    Capability,
    DataPath,
    Flag,
    Kind,
    Level,
    Message,
    NodeDelPath,
    NodePath,
    PortDelPath,
    PortId,
    PortPath,
    Registry,
    Trait,
)
from ironic_rules.text import MAX_MESSAGE, printable


def tokens_of(literals: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the parts of a literal path; an empty tuple if the path is only known at run time."""
    return documents.parse_pointer(literals["path"], relative=True) if "path" in literals else ()


def field_problem(fields: type[draft.NodeDraft] | type[draft.PortDraft],
                   literals: Mapping[str, object]) -> Iterable[tuple[str, str]]:
    """Yield the problems of a literal value that its field cannot have."""
    tokens = tokens_of(literals)
    yield from _mask_problem(literals, tokens)
    if len(tokens) == 1 and "value" in literals and (reason := fields.value_problem(tokens[0], literals["value"])):
        yield "value", reason


def list_problem(literals: Mapping[str, object]) -> Iterable[tuple[str, str]]:
    """Yield the problems of a literal path to a field that is not a list, and of the value to append."""
    yield from _mask_problem(literals, tokens_of(literals))
    if len(tokens_of(literals)) == 1:
        yield "path", "this field is not a list"


def data_problem(literals: Mapping[str, object]) -> Iterable[tuple[str, str]]:
    """Yield the problem of a literal value that cannot be stored in the plug-in data."""
    return _mask_problem(literals, paths.parse(literals["path"]) if "path" in literals else ())


def _mask_problem(literals: Mapping[str, Any], tokens: tuple[str, ...]) -> Iterable[tuple[str, str]]:
    try:
        secrets.refuse_masks(literals.get("value"), tokens)
    except SecretMasked as exc:
        yield "value", str(exc)


@ACTIONS.add("set-attribute")
class SetAttribute(InspectionRuleActionBase):
    """Set ``path`` of the node to ``value``.

    :param path: JSON pointer below the node, e.g. ``/properties/cpu_arch``; missing objects in the path are created
    :param value: any value that the field accepts

    .. rule:: {op: set-attribute, args: {path: /extra/model, value: "{inventory[cpu][model_name]}"}}
    """

    formatted_params = ["path", "value"]
    touches = frozenset({"node"})
    node_path = "path"

    def __call__(self, task: Task, rule: ActiveRule, path: NodePath, value: Any) -> None:
        task.node.write(path, value)

    def problems(self, literals: Mapping[str, object]) -> Iterable[tuple[str, str]]:
        tokens = tokens_of(literals)
        if tokens[:1] != ("traits",) or len(tokens) == 1:
            return field_problem(NodeDraft, literals)
        if tokens[1:] != ("-",):
            return [("path", "write /traits (a list) or /traits/- (one more)")]
        return _trait_problem(literals)


@ACTIONS.add("extend-attribute")
class ExtendAttribute(InspectionRuleActionBase):
    """Append to a list of the node, which is created if missing.

    :param path: JSON pointer below the node, e.g. ``/extra/disks``
    :param value: the new element
    :param unique: do nothing if the list already has the value

    .. rule:: {op: extend-attribute, args: {path: /extra/hosts, value: "{inventory[hostname]}", unique: true}}
    """

    formatted_params = ["path", "value", "unique"]
    touches = frozenset({"node"})
    node_path = "path"

    def __call__(self, task: Task, rule: ActiveRule, path: NodePath, value: Any, unique: Flag = False) -> None:
        task.node.extend(path, value, unique)

    def problems(self, literals: Mapping[str, object]) -> Iterable[tuple[str, str]]:
        tokens = tokens_of(literals)
        if tokens[:1] != ("traits",):
            return list_problem(literals)
        return _trait_problem(literals) if len(tokens) == 1 else [("path", "a trait has no parts")]


@ACTIONS.add("del-attribute")
class DelAttribute(InspectionRuleActionBase):
    """Unset ``path`` of the node; a field gets its default. A missing key below a field is not an error.

    :param path: JSON pointer below the node, e.g. ``/extra/old``

    .. rule:: {op: del-attribute, args: {path: /properties/capabilities}}
    """

    formatted_params = ["path"]
    touches = frozenset({"node"})
    node_path = "path"

    def __call__(self, task: Task, rule: ActiveRule, path: NodeDelPath) -> None:
        task.node.delete(path)


def _trait_problem(literals: Mapping[str, object]) -> Iterable[tuple[str, str]]:
    if "value" in literals and (reason := TRAIT.literal_problem(literals["value"])):
        yield "value", reason


@ACTIONS.add("set-port-attribute")
class SetPortAttribute(InspectionRuleActionBase):
    """Set ``path`` of a port to ``value``.

    :param port_id: the port's UUID or MAC address, as any part of a report has it; the node must have that port
    :param path: JSON pointer below the port, e.g. ``/extra/switch``
    :param value: any value that the field accepts

    .. rule:: {op: set-port-attribute, args: {port_id: "{inventory[boot][pxe_interface]}", path: /extra/p, value: true}}
    """

    formatted_params = ["port_id", "path", "value"]
    touches = frozenset({"ports"})

    def __call__(self, task: Task, rule: ActiveRule, port_id: PortId, path: PortPath, value: Any) -> None:
        _port(task, port_id).write(path, value)

    def problems(self, literals: Mapping[str, object]) -> Iterable[tuple[str, str]]:
        return field_problem(PortDraft, literals)


@ACTIONS.add("extend-port-attribute")
class ExtendPortAttribute(InspectionRuleActionBase):
    """Append to a list of a port, which is created if missing.

    :param port_id: the port's UUID or MAC address, as any part of a report has it; the node must have that port
    :param path: JSON pointer below the port, e.g. ``/extra/vlans``
    :param value: the new element
    :param unique: do nothing if the list already has the value

    .. rule:: {op: extend-port-attribute, args: {port_id: "{inventory[boot][pxe_interface]}", path: /extra/v, value: 7}}
    """

    formatted_params = ["port_id", "path", "value", "unique"]
    touches = frozenset({"ports"})

    def __call__(self, task: Task, rule: ActiveRule, port_id: PortId, path: PortPath, value: Any,
                 unique: Flag = False) -> None:
        _port(task, port_id).extend(path, value, unique)

    def problems(self, literals: Mapping[str, object]) -> Iterable[tuple[str, str]]:
        return list_problem(literals)


@ACTIONS.add("del-port-attribute")
class DelPortAttribute(InspectionRuleActionBase):
    """Unset ``path`` of a port; a field gets its default. A missing key below a field is not an error.

    :param port_id: the port's UUID or MAC address, as any part of a report has it; the node must have that port
    :param path: JSON pointer below the port, e.g. ``/extra/old``

    .. rule:: {op: del-port-attribute, args: {port_id: "{inventory[boot][pxe_interface]}", path: /physical_network}}
    """

    formatted_params = ["port_id", "path"]
    touches = frozenset({"ports"})

    def __call__(self, task: Task, rule: ActiveRule, port_id: PortId, path: PortDelPath) -> None:
        _port(task, port_id).delete(path)


def _port(task: Task, port_id: str) -> PortDraft:
    port = task.find_port(port_id)
    if port is None:
        raise ActionError("the node has no port with this MAC address or UUID")
    return port


@ACTIONS.add("set-plugin-data")
class SetPluginData(InspectionRuleActionBase):
    """Set a value in the plugin data.

    :param path: ``a.b`` or ``/a/b``; missing objects in the path are created
    :param value: anything

    .. rule:: {op: set-plugin-data, args: {path: site.rack, value: "{inventory[hostname]}"}}
    """

    formatted_params = ["path", "value"]
    supports_early = True
    touches = frozenset({"plugin_data"})
    data_path = "path"

    def __call__(self, task: Task | None, rule: ActiveRule, path: DataPath, value: Any) -> None:
        paths.write(rule.plugin_data, path, value)

    def call_early(self, rule: ActiveRule, path: str, value: object) -> None:  # type: ignore[override]
        self(None, rule, path, value)

    def problems(self, literals: Mapping[str, object]) -> Iterable[tuple[str, str]]:
        return data_problem(literals)


@ACTIONS.add("extend-plugin-data")
class ExtendPluginData(InspectionRuleActionBase):
    """Append to a list in the plugin data, which is created if missing.

    :param path: ``a.b`` or ``/a/b``
    :param value: the new element
    :param unique: do nothing if the list already has the value

    .. rule:: {op: extend-plugin-data, args: {path: site.hosts, value: "{inventory[hostname]}", unique: true}}
    """

    formatted_params = ["path", "value", "unique"]
    supports_early = True
    touches = frozenset({"plugin_data"})
    data_path = "path"

    def __call__(self, task: Task | None, rule: ActiveRule, path: DataPath, value: Any, unique: Flag = False) -> None:
        paths.extend(rule.plugin_data, path, value, unique)

    def call_early(self, rule: ActiveRule, path: str, value: object,  # type: ignore[override]
                   unique: bool = False) -> None:
        self(None, rule, path, value, unique)

    def problems(self, literals: Mapping[str, object]) -> Iterable[tuple[str, str]]:
        return data_problem(literals)


@ACTIONS.add("unset-plugin-data")
class UnsetPluginData(InspectionRuleActionBase):
    """Remove a value from the plugin data. A missing one is not an error.

    :param path: ``a.b`` or ``/a/b``

    .. rule:: {op: unset-plugin-data, args: {path: site.rack}}
    """

    formatted_params = ["path"]
    supports_early = True
    touches = frozenset({"plugin_data"})
    data_path = "path"

    def __call__(self, task: Task | None, rule: ActiveRule, path: DataPath) -> None:
        paths.unset(rule.plugin_data, path)

    def call_early(self, rule: ActiveRule, path: str) -> None:  # type: ignore[override]
        self(None, rule, path)


@ACTIONS.add("set-capability")
class SetCapability(InspectionRuleActionBase):
    """Set one capability in ``properties/capabilities``, replacing its old value.

    :param name: the capability
    :param value: its value; must not contain a comma

    .. rule:: {op: set-capability, args: {name: boot_mode, value: "{inventory[boot][current_boot_mode]}"}}
    """

    formatted_params = ["name", "value"]
    touches = frozenset({"node"})

    def __call__(self, task: Task, rule: ActiveRule, name: Capability, value: Any) -> None:
        stored = task.node.properties.get("capabilities")
        task.node.write("/properties/capabilities", capabilities.put(stored, name, value))

    def problems(self, literals: Mapping[str, object]) -> Iterable[tuple[str, str]]:
        if "value" in literals:
            try:
                capabilities.put(None, "", literals["value"])
            except ActionError as exc:
                yield "value", str(exc)


@ACTIONS.add("unset-capability")
class UnsetCapability(InspectionRuleActionBase):
    """Remove one capability from ``properties/capabilities``. A missing one is not an error.

    :param name: the capability

    .. rule:: {op: unset-capability, args: {name: boot_mode}}
    """

    formatted_params = ["name"]
    touches = frozenset({"node"})

    def __call__(self, task: Task, rule: ActiveRule, name: Capability) -> None:
        stored = task.node.properties.get("capabilities")
        if stored is not None:
            task.node.write("/properties/capabilities", capabilities.remove(stored, name))


@ACTIONS.add("add-trait")
class AddTrait(InspectionRuleActionBase):
    """Add a trait to the node.

    :param name: a standard trait, or ``CUSTOM_`` followed by capital letters, digits and underscores

    .. rule:: {op: add-trait, args: {name: CUSTOM_GPU}}
    """

    formatted_params = ["name"]
    touches = frozenset({"node"})

    def __call__(self, task: Task, rule: ActiveRule, name: Trait) -> None:
        task.node.add_trait(name)


@ACTIONS.add("remove-trait")
class RemoveTrait(InspectionRuleActionBase):
    """Remove a trait from the node. A missing one is not an error.

    :param name: the trait

    .. rule:: {op: remove-trait, args: {name: CUSTOM_GPU}}
    """

    formatted_params = ["name"]
    touches = frozenset({"node"})

    def __call__(self, task: Task, rule: ActiveRule, name: Trait) -> None:
        task.node.traits.discard(name)


@ACTIONS.add("fail")
class Fail(InspectionRuleActionBase):
    """Fail the inspection with a message.

    :param msg: the reason, shown in ``last_error``; missing values are named

    .. rule:: {op: fail, args: {msg: "{inventory[hostname]} is not ours"}}
    """

    formatted_params = ["msg"]
    supports_early = True
    touches = frozenset()

    def __call__(self, task: Task | None, rule: ActiveRule, msg: Message) -> None:
        raise ActionError(printable(msg, MAX_MESSAGE))

    def call_early(self, rule: ActiveRule, msg: str) -> None:  # type: ignore[override]
        self(None, rule, msg)


@ACTIONS.add("log")
class Log(InspectionRuleActionBase):
    """Write a message to the service's log.

    :param msg: the message; control characters are escaped, and missing values are named
    :param level: critical, error, warning, info or debug; warning, if a template gives something else

    .. rule:: {op: log, args: {msg: "found {inventory[cpu][count]} CPUs", level: warning}}
    """

    formatted_params = ["msg", "level"]
    supports_early = True
    touches = frozenset()

    def __call__(self, task: Task | None, rule: ActiveRule, msg: Message, level: Level = "info") -> None:
        rule.log(level, msg)

    def call_early(self, rule: ActiveRule, msg: str, level: str = "info") -> None:  # type: ignore[override]
        self(None, rule, msg, level)


MAX_TIMEOUT_S = 60
#: Maximum number of requests of a rule for one node, which remains locked until they end.
MAX_REQUESTS = 16

_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_HEADER_VALUE = re.compile(r"[\x20-\x7e]*")
#: Headers that determine the destination or the end of a request.
_RESERVED_HEADERS = frozenset({"connection", "content-length", "expect", "host", "te", "transfer-encoding", "upgrade"})


def _url(value: object, limits: Limits) -> str:
    try:
        return limits.hosts.check(value)
    except ValueError as exc:
        raise OperandError(str(exc)) from None


def _url_prefix(text: str, limits: Limits) -> None:
    try:
        limits.hosts.check_prefix(text)
    except ValueError as exc:
        raise OperandError(str(exc)) from None


def _headers(value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        raise OperandError("must be an object of strings")
    headers = {}
    for name, header in value.items():
        if not _HEADER.fullmatch(name) or name.lower() in _RESERVED_HEADERS:
            raise OperandError(f"names must be those of HTTP headers, but not {', '.join(sorted(_RESERVED_HEADERS))}")
        if isinstance(header, bool) or not isinstance(header, (str, int, float)):
            raise OperandError("must be an object of strings")
        headers[name] = str(header)
        if not _HEADER_VALUE.fullmatch(headers[name]):
            raise OperandError("the value of a header must be printable ASCII")
    return headers


def _seconds(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= MAX_TIMEOUT_S:
        raise OperandError(f"must be a number of seconds, more than 0 and at most {MAX_TIMEOUT_S}")
    return float(value)


URL = Kind("URL", {"type": "string"}, (str,), "a string", limited=_url, prefix=_url_prefix)
HEADERS = Kind("HTTP headers", {"type": ["object", "string"]}, (dict,), "an object of strings", _headers)
SECONDS = Kind("seconds", {"type": ["number", "string"]}, (int, float), "a number", _seconds)

Url = Annotated[str, URL]
Headers = Annotated[Mapping[str, str] | None, HEADERS]
Seconds = Annotated[float, SECONDS]


@ACTIONS.add("api-call")
class ApiCall(InspectionRuleActionBase):
    """Notify another service of the node by an HTTP GET. A response other than 2xx fails the rule.

    Only hosts in ``[inspection_rules]api_call_allowed_hosts`` can be called. Redirects are not followed, requests are
    not retried, and the content of the response is ignored. A rule sends at most 16 requests for a node. A dry run
    sends nothing, and assumes a response of 2xx.

    :param url: ``http`` or ``https``; templates may only be used after the host
    :param headers: HTTP headers by name
    :param timeout: seconds for the connection, and for each wait for data; at most 60

    .. rule:: {op: api-call, args: {url: "https://cmdb.example.org/seen/{inventory[hostname]}", timeout: 10}}
    """

    formatted_params = ["url", "headers", "timeout"]
    touches = frozenset()
    waits = True

    def __call__(self, task: Task, rule: ActiveRule, url: Url, headers: Headers = None, timeout: Seconds = 5.0) -> None:
        rule.requests += 1
        if rule.requests > MAX_REQUESTS:
            raise ActionError(f"more than {MAX_REQUESTS} requests")
        if rule.dry_run:
            rule.would(f"send GET to {host_of(url)}")
            return
        status = rule.get(url, headers or {}, timeout)
        if not 200 <= status <= 299:
            note = "; redirects are not followed" if 300 <= status <= 399 else ""
            raise ActionError(f"{host_of(url)} answered with status {status}{note}")


NAMESPACE = "ironic.inspection_rules.actions"


def load_plugins(namespace: str = NAMESPACE, registry: Registry = ACTIONS) -> list[str]:
    """Register the installed actions; called once, at start. Calling it again changes nothing.

    :returns: the names that were found
    :raises ConfigurationError: with every action that cannot be loaded, and why
    """
    failures: list[str] = []

    def failed(manager: Any, entry_point: Any, error: BaseException) -> None:
        failures.append(f"action {entry_point.name!r}: {type(error).__name__}: {error}")

    manager = stevedore.ExtensionManager(namespace, invoke_on_load=False, on_load_failure_callback=failed)
    names = []
    for extension in manager:
        try:
            registry.add(extension.name, extension.plugin)
        except BadOperation as exc:
            failures.append(str(exc))
        else:
            names.append(extension.name)
    if failures:
        raise ConfigurationError(f"[{namespace}] " + "; ".join(sorted(failures)))
    return sorted(names)
