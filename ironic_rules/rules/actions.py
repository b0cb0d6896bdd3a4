"""The actions that come with the service. Plug-ins add theirs to the same registry (``plugins.load_plugins``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ironic_rules.models import draft, pointer
from ironic_rules.models.draft import PortDraft
from ironic_rules.models.task import Task
from ironic_rules.rules import capabilities, paths
from ironic_rules.rules.base import ActiveRule, InspectionRuleActionBase
from ironic_rules.rules.errors import ActionError
from ironic_rules.rules.kinds import (
    TRAIT,
    Capability,
    DataPath,
    Flag,
    Level,
    NodeDelPath,
    NodePath,
    PortDelPath,
    PortId,
    PortPath,
    Text,
    Trait,
)
from ironic_rules.rules.registry import BadPlugin, Plugin, Registry, read_parameters
from ironic_rules.text import MAX_MESSAGE, printable

_NOTHING: frozenset[str] = frozenset()
_NODE = frozenset({"node"})
_PORTS = frozenset({"ports"})
_DATA = frozenset({"plugin_data"})


def _read(name: str, cls: Any) -> Plugin:
    if not (isinstance(cls, type) and issubclass(cls, InspectionRuleActionBase)):
        raise BadPlugin(f"action {name!r} is not a subclass of InspectionRuleActionBase")
    if cls.__abstractmethods__:
        raise BadPlugin(f"action {name!r} does not define __call__")
    if cls.supports_early and cls.call_early is InspectionRuleActionBase.call_early:
        raise BadPlugin(f"action {name!r} supports the early phase but does not define call_early")
    parameters = read_parameters(cls.__call__, skip=3)
    unknown = sorted(set(cls.formatted_params) - {parameter.name for parameter in parameters})
    if unknown and not any(parameter.variadic == "keyword" for parameter in parameters):
        raise BadPlugin(f"action {name!r}: __call__ does not take the formatted_params {', '.join(unknown)}")
    return Plugin(name, cls(), parameters, cls.__doc__ or "", frozenset(cls.formatted_params), cls.supports_early)


ACTIONS = Registry("action", _read)


@ACTIONS.add("fail")
class Fail(InspectionRuleActionBase):
    """Fail the inspection with a message.

    :param msg: the reason, shown in ``last_error``

    .. rule:: {op: fail, args: {msg: "{inventory[hostname]} is not ours"}}
    """

    formatted_params = ["msg"]
    supports_early = True
    touches = _NOTHING

    def __call__(self, task: Task | None, rule: ActiveRule, msg: Text) -> None:
        raise ActionError(printable(msg, MAX_MESSAGE))

    def call_early(self, rule: ActiveRule, msg: str) -> None:  # type: ignore[override]
        self(None, rule, msg)


@ACTIONS.add("log")
class Log(InspectionRuleActionBase):
    """Write a message to the service's log.

    :param msg: the message; control characters are escaped
    :param level: critical, error, warning, info or debug

    .. rule:: {op: log, args: {msg: "found {inventory[cpu][count]} CPUs", level: warning}}
    """

    formatted_params = ["msg", "level"]
    supports_early = True
    touches = _NOTHING

    def __call__(self, task: Task | None, rule: ActiveRule, msg: Text, level: Level = "info") -> None:
        rule.log(level, msg)

    def call_early(self, rule: ActiveRule, msg: str, level: str = "info") -> None:  # type: ignore[override]
        self(None, rule, msg, level)


@ACTIONS.add("set-plugin-data")
class SetPluginData(InspectionRuleActionBase):
    """Set a value in the plugin data.

    :param path: ``a.b`` or ``/a/b``; missing objects on the way are made
    :param value: anything

    .. rule:: {op: set-plugin-data, args: {path: site.rack, value: "{inventory[hostname]}"}}
    """

    formatted_params = ["path", "value"]
    supports_early = True
    touches = _DATA

    def __call__(self, task: Task | None, rule: ActiveRule, path: DataPath, value: Any) -> None:
        paths.write(rule.plugin_data, path, value)

    def call_early(self, rule: ActiveRule, path: str, value: Any) -> None:  # type: ignore[override]
        self(None, rule, path, value)


@ACTIONS.add("extend-plugin-data")
class ExtendPluginData(InspectionRuleActionBase):
    """Append to a list in the plugin data, which is made if missing.

    :param path: ``a.b`` or ``/a/b``
    :param value: the new element
    :param unique: do nothing if the list has the value already

    .. rule:: {op: extend-plugin-data, args: {path: site.macs, value: "{inventory[bmc_mac]}", unique: true}}
    """

    formatted_params = ["path", "value", "unique"]
    supports_early = True
    touches = _DATA

    def __call__(self, task: Task | None, rule: ActiveRule, path: DataPath, value: Any, unique: Flag = False) -> None:
        paths.extend(rule.plugin_data, path, value, unique)

    def call_early(self, rule: ActiveRule, path: str, value: Any,  # type: ignore[override]
                   unique: bool = False) -> None:
        self(None, rule, path, value, unique)


@ACTIONS.add("unset-plugin-data")
class UnsetPluginData(InspectionRuleActionBase):
    """Remove a value from the plugin data. Nothing there is no error.

    :param path: ``a.b`` or ``/a/b``

    .. rule:: {op: unset-plugin-data, args: {path: site.rack}}
    """

    formatted_params = ["path"]
    supports_early = True
    touches = _DATA

    def __call__(self, task: Task | None, rule: ActiveRule, path: DataPath) -> None:
        paths.unset(rule.plugin_data, path)

    def call_early(self, rule: ActiveRule, path: str) -> None:  # type: ignore[override]
        self(None, rule, path)


@ACTIONS.add("set-attribute")
class SetAttribute(InspectionRuleActionBase):
    """Set ``path`` of the node to ``value``.

    :param path: JSON pointer below the node, e.g. ``/properties/cpu_arch``; missing objects on the way are made
    :param value: anything that the field takes

    .. rule:: {op: set-attribute, args: {path: /extra/model, value: "{inventory[cpu][model_name]}"}}
    """

    formatted_params = ["path", "value"]
    touches = _NODE

    def __call__(self, task: Task, rule: ActiveRule, path: NodePath, value: Any) -> None:
        task.node.write(path, value)

    def problems(self, literals: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
        tokens = _tokens(literals)
        if tokens[:1] != ("traits",) or len(tokens) == 1:
            return _field_problem(draft.NodeDraft, literals)
        if tokens[1:] != ("-",):
            return [("path", "write /traits (a list) or /traits/- (one more)")]
        return _trait_problem(literals)


@ACTIONS.add("extend-attribute")
class ExtendAttribute(InspectionRuleActionBase):
    """Append to a list of the node, which is made if missing.

    :param path: JSON pointer below the node, e.g. ``/extra/disks``
    :param value: the new element
    :param unique: do nothing if the list has the value already

    .. rule:: {op: extend-attribute, args: {path: /extra/hosts, value: "{inventory[hostname]}", unique: true}}
    """

    formatted_params = ["path", "value", "unique"]
    touches = _NODE

    def __call__(self, task: Task, rule: ActiveRule, path: NodePath, value: Any, unique: Flag = False) -> None:
        task.node.extend(path, value, unique)

    def problems(self, literals: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
        tokens = _tokens(literals)
        if tokens[:1] != ("traits",):
            return _list_problem(literals)
        return _trait_problem(literals) if len(tokens) == 1 else [("path", "a trait has no parts")]


@ACTIONS.add("del-attribute")
class DelAttribute(InspectionRuleActionBase):
    """Unset ``path`` of the node; a field gets its default. A missing key below a field is no error.

    :param path: JSON pointer below the node, e.g. ``/extra/old``

    .. rule:: {op: del-attribute, args: {path: /properties/capabilities}}
    """

    formatted_params = ["path"]
    touches = _NODE

    def __call__(self, task: Task, rule: ActiveRule, path: NodeDelPath) -> None:
        task.node.delete(path)


@ACTIONS.add("set-port-attribute")
class SetPortAttribute(InspectionRuleActionBase):
    """Set ``path`` of a port to ``value``.

    :param port_id: the port's MAC address or UUID; the node must have it
    :param path: JSON pointer below the port, e.g. ``/extra/switch``
    :param value: anything that the field takes

    .. rule:: {op: set-port-attribute, args: ["{inventory[boot][pxe_interface]}", /extra/pxe, true]}
    """

    formatted_params = ["port_id", "path", "value"]
    touches = _PORTS

    def __call__(self, task: Task, rule: ActiveRule, port_id: PortId, path: PortPath, value: Any) -> None:
        _port(task, port_id).write(path, value)

    def problems(self, literals: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
        return _field_problem(PortDraft, literals)


@ACTIONS.add("extend-port-attribute")
class ExtendPortAttribute(InspectionRuleActionBase):
    """Append to a list of a port, which is made if missing.

    :param port_id: the port's MAC address or UUID; the node must have it
    :param path: JSON pointer below the port, e.g. ``/extra/vlans``
    :param value: the new element
    :param unique: do nothing if the list has the value already

    .. rule:: {op: extend-port-attribute, args: ["{inventory[boot][pxe_interface]}", /extra/vlans, 7]}
    """

    formatted_params = ["port_id", "path", "value", "unique"]
    touches = _PORTS

    def __call__(self, task: Task, rule: ActiveRule, port_id: PortId, path: PortPath, value: Any,
                 unique: Flag = False) -> None:
        _port(task, port_id).extend(path, value, unique)

    def problems(self, literals: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
        return _list_problem(literals)


@ACTIONS.add("del-port-attribute")
class DelPortAttribute(InspectionRuleActionBase):
    """Unset ``path`` of a port; a field gets its default. A missing key below a field is no error.

    :param port_id: the port's MAC address or UUID; the node must have it
    :param path: JSON pointer below the port, e.g. ``/extra/old``

    .. rule:: {op: del-port-attribute, args: {port_id: "{inventory[boot][pxe_interface]}", path: /physical_network}}
    """

    formatted_params = ["port_id", "path"]
    touches = _PORTS

    def __call__(self, task: Task, rule: ActiveRule, port_id: PortId, path: PortDelPath) -> None:
        _port(task, port_id).delete(path)


@ACTIONS.add("set-capability")
class SetCapability(InspectionRuleActionBase):
    """Set one capability in ``properties/capabilities``, replacing its old value.

    :param name: the capability
    :param value: its value; must not contain a comma

    .. rule:: {op: set-capability, args: {name: boot_mode, value: "{inventory[boot][current_boot_mode]}"}}
    """

    formatted_params = ["name", "value"]
    touches = _NODE

    def __call__(self, task: Task, rule: ActiveRule, name: Capability, value: Any) -> None:
        found = task.node.properties.get("capabilities")
        task.node.write("/properties/capabilities", capabilities.put(found, name, value))

    def problems(self, literals: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
        if "value" in literals:
            try:
                capabilities.put(None, "", literals["value"])
            except ActionError as exc:
                yield "value", str(exc)


@ACTIONS.add("unset-capability")
class UnsetCapability(InspectionRuleActionBase):
    """Remove one capability from ``properties/capabilities``. A missing one is no error.

    :param name: the capability

    .. rule:: {op: unset-capability, args: {name: boot_mode}}
    """

    formatted_params = ["name"]
    touches = _NODE

    def __call__(self, task: Task, rule: ActiveRule, name: Capability) -> None:
        found = task.node.properties.get("capabilities")
        if found is not None:
            task.node.write("/properties/capabilities", capabilities.remove(found, name))


@ACTIONS.add("add-trait")
class AddTrait(InspectionRuleActionBase):
    """Add a trait to the node.

    :param name: a standard trait, or ``CUSTOM_`` followed by capital letters, digits and underscores

    .. rule:: {op: add-trait, args: {name: CUSTOM_GPU}}
    """

    formatted_params = ["name"]
    touches = _NODE

    def __call__(self, task: Task, rule: ActiveRule, name: Trait) -> None:
        task.node.add_trait(name)


@ACTIONS.add("remove-trait")
class RemoveTrait(InspectionRuleActionBase):
    """Remove a trait from the node. A missing one is no error.

    :param name: the trait

    .. rule:: {op: remove-trait, args: {name: CUSTOM_GPU}}
    """

    formatted_params = ["name"]
    touches = _NODE

    def __call__(self, task: Task, rule: ActiveRule, name: Trait) -> None:
        task.node.traits.discard(name)


def _port(task: Task, port_id: str) -> PortDraft:
    port = task.find_port(port_id)
    if port is None:
        raise ActionError("the node has no port with this MAC address or UUID")
    return port


def _tokens(literals: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the parts of a literal path; none of one that is only known at run time."""
    return pointer.parse(literals["path"], relative=True) if "path" in literals else ()


def _field_problem(fields: type[draft.NodeDraft] | type[PortDraft],
                   literals: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    tokens = _tokens(literals)
    if len(tokens) == 1 and "value" in literals and (reason := fields.value_problem(tokens[0], literals["value"])):
        yield "value", reason


def _list_problem(literals: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    if len(_tokens(literals)) == 1:
        yield "path", "this field is not a list"


def _trait_problem(literals: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    if "value" in literals and (reason := TRAIT.literal_problem(literals["value"])):
        yield "value", reason
