"""Nova's filter of capabilities: what the scheduler knows of a bare-metal node, and how it compares extra specs.

Nova's driver reports a node as a host without processors, memory and disk of its own, whose statistics are the node's
capabilities and its architecture. The filter looks for a name among the attributes of the host first, then there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import orjson

from ironic_rules.extra_specs.definitions.images import ARCHITECTURE_ALIASES, ARCHITECTURES
from ironic_rules.models.documents import JSON, JSONObject

CAPABILITY = "capabilities:"
#: Extra specs of another namespace that the filter reads as a capability.
_TRANSLATED = {"hw:maxphysaddr_bits": ("cpu_info", "maxphysaddr", "bits")}

#: The attributes of every host that is a node without an instance, and those that the node's UUID is.
_SAME: Mapping[str, JSON] = {
    "hypervisor_type": "ironic", "hypervisor_version": 1, "cpu_info": "", "numa_topology": None,
    "vcpus_total": 0, "vcpus_used": 0, "total_usable_ram_mb": 0, "free_ram_mb": 0, "total_usable_disk_gb": 0,
    "free_disk_mb": 0, "disk_mb_used": 0, "num_instances": 0, "num_io_ops": 0, "instances": {}, "limits": {}}
_UUID = ("uuid", "hypervisor_hostname", "nodename")
#: Attributes that depend on Nova's services and configuration.
_UNKNOWN = frozenset({
    "host", "host_ip", "cell_uuid", "service", "aggregates", "failed_builds", "updated", "metrics", "pci_stats",
    "cpu_allocation_ratio", "ram_allocation_ratio", "disk_allocation_ratio", "allocation_candidates"})

_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": lambda a, b: a == b, "!=": lambda a, b: a != b, ">=": lambda a, b: a >= b, "<=": lambda a, b: a <= b,
    "<": lambda a, b: a < b, ">": lambda a, b: a > b, "=": lambda a, b: a >= b}


def read_by_filter(specs: Mapping[str, str]) -> dict[str, str]:
    """Return the extra specs that the filter looks at: capabilities, and what has no namespace."""
    return {key: value for key, value in specs.items()
            if ":" not in key or key.startswith(CAPABILITY) or key in _TRANSLATED}


def name_of(key: str) -> str:
    """Return the name of the capability that an extra spec requires."""
    return key.removeprefix(CAPABILITY)


def distinguishing(keys: Iterable[str]) -> tuple[str, ...]:
    """Return what of a node the filter's verdict on these extra specs depends on; see :func:`host`."""
    firsts = {_scope(key)[0] for key in keys}
    if not firsts:
        return ()
    return ("capabilities", "cpu_arch", *(["uuid"] if firsts.intersection(_UUID) else []))


def unknown(keys: Iterable[str]) -> list[str]:
    """Return those of the extra specs that are compared with what only Nova knows. They count as fulfilled."""
    return [key for key in keys if _scope(key)[0] in _UNKNOWN]


def host(capabilities: str | None, cpu_arch: str | None, uuid: str | None = None) -> JSONObject:
    """Return the attributes of the host that a node is.

    :param capabilities: the JSON of ``properties/capabilities``, None if it has none;  cpu_arch: the same
    :param uuid: of the node, where it matters
    """
    decoded: Any = _loaded(cpu_arch)
    arch = decoded if isinstance(decoded, str) else None
    name = "" if arch is None else arch.lower()
    name = ARCHITECTURE_ALIASES.get(name, name)
    return {**_SAME, **dict.fromkeys(_UUID, uuid), "stats": {"cpu_arch": arch, "uptime": None, **_pairs(capabilities)},
            "supported_instances": [[name, "baremetal", "hvm"]] if name in ARCHITECTURES else []}


def compared(specs: Mapping[str, str], attributes: Mapping[str, Any]) -> dict[str, bool]:
    """Return whether a host is as each of the extra specs requires, without those that the filter ignores.

    :param specs: those of :func:`read_by_filter`
    :param attributes: of the :func:`host`
    """
    verdicts = {}
    for key, required in specs.items():
        scope = _scope(key)
        if scope[0] in _UNKNOWN:
            verdicts[key] = True
        elif ":" in key or key in attributes or key in attributes["stats"]:
            value = _value(attributes, scope)
            verdicts[key] = value is not None and matches(str(value), required)
    return verdicts


def capable(specs: Mapping[str, str], verdicts: Iterable[tuple[Mapping[str, bool], int]]) -> dict[str, int]:
    """Return the number of nodes that are as each extra spec requires, without those that the filter ignores for all.

    :param verdicts: of :func:`compared`, each with the number of nodes for which it holds
    """
    counts = {key: 0 for key in specs if ":" in key}
    for verdict, count in verdicts:
        for key, fits in verdict.items():
            counts[key] = counts.get(key, 0) + count * fits
    return counts


def matches(value: str, required: str) -> bool:
    """Return whether a value is as an extra spec requires, by the filter's operators (``<in>``, ``s==``, …)."""
    operator, *operands = required.split() or [""]
    if operator == "<or>":
        return value in operands[::2]
    if operator == "<in>":
        return bool(operands) and operands[0] in value
    if operator == "<all-in>":
        return bool(operands) and all(operand in value for operand in operands)
    if operator in _COMPARISONS and operator not in ("<", ">"):
        return _by_number(_COMPARISONS[operator], value, operands)
    if operator.startswith("s") and operator[1:] in _COMPARISONS and operator != "s=":
        return bool(operands) and _COMPARISONS[operator[1:]](value, operands[0])
    return value == required


def _by_number(compare: Callable[[Any, Any], bool], value: str, operands: list[str]) -> bool:
    try:
        return bool(operands) and compare(float(value), float(operands[0]))
    except ValueError:
        return False


def _scope(key: str) -> tuple[str, ...]:
    return _TRANSLATED.get(key) or tuple(name_of(key).split(":"))


def _value(attributes: Mapping[str, Any], scope: tuple[str, ...]) -> Any:
    """Return the value at the end of a path, None if there is none."""
    value = attributes.get(scope[0])
    if value is None:
        value = attributes["stats"].get(scope[0])
    for step in scope[1:]:
        if isinstance(value, str):
            value = _loaded(value)
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _pairs(capabilities: str | None) -> dict[str, str]:
    """Return the capabilities that Nova's driver finds: ``boot_mode:uefi,raid:1``. An object is a text for it, too."""
    stored = _loaded(capabilities)
    parts = (part.split(":") for part in str(stored).split(",")) if stored else ()
    return {part[0].strip(): part[1] for part in parts if len(part) == 2 and part[0] and part[1]}


def _loaded(stored: str | None) -> Any:
    try:
        return None if stored is None else orjson.loads(stored)
    except orjson.JSONDecodeError:
        return None
