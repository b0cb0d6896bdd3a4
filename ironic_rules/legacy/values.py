"""The data that legacy rules read, and the values of their actions: templates such as ``{data[memory_mb]}``.

The data are what ironic-inspector's hooks made of a ramdisk's report, under their names there. Templates are at any
depth, in the keys of objects too. They are compiled as those of inspection rules, and are Python's format strings as
far as rules need them: ``data``, and keys and indexes in brackets. A template gives text as Python prints it; one that
is the whole text, and finds a list or an object, keeps that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ironic_rules.exceptions import Problem
from ironic_rules.legacy.paths import field_text
from ironic_rules.models import addresses, documents
from ironic_rules.models.documents import JSONObject
from ironic_rules.rules import template
from ironic_rules.rules.errors import CannotEvaluate
from ironic_rules.rules.getters import View, message_getter, path_getter
from ironic_rules.rules.limits import Limits
from ironic_rules.rules.values import Compiled, Const, Filled, Scope, Warnings, compile_value
from ironic_rules.text import printable

_ROOT = "data"
#: With what a template in a message begins: ironic-inspector had none there, so all other braces are text.
IN_MESSAGE = "{data["
_UNSUPPORTED = "conversions are not supported: write the template without one, as in {data[memory_mb]}"
#: Maximum number of problems that are reported.
MAX_PROBLEMS = 100


@dataclass(slots=True)
class LegacyScope(Scope):
    """The context of the values of a legacy rule; collects the problems of all of the rule.

    :ivar begin: with what each template begins; all other braces are text
    """

    begin: str = ""

    def complain(self, where: str, text: str) -> None:
        """Add a problem, unless there are too many."""
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(Problem(where, text))

    def compile_key(self, key: object, where: str, *, formatted: bool) -> tuple[str, Compiled]:
        """Return the place of a key in the object at ``where``, and the compiled key, which may have templates."""
        place = where + documents.format_pointer((printable(key, 64),))
        compiled = compile_value(self, key, place, formatted=formatted)
        if isinstance(compiled, Const):
            return place, compiled
        get = compiled.get
        return place, Filled(lambda view: _key(get(view)))

    def compile_template(self, text: str, where: str, *, regex: bool) -> Compiled:
        """Compile a text with braces."""
        try:
            parts = template.parse(text, begin=self.begin)
            fields = [part for part in parts if isinstance(part, template.Field)]
            for used in fields:
                _check(used)
        except template.ConversionError as exc:
            self.complain(where, f"column {exc.column}: {_UNSUPPORTED}")
            return Const("")
        except template.TemplateError as exc:
            self.complain(where, str(exc))
            return Const("")
        self.fields += fields
        if not fields:
            return Const("".join(part for part in parts if isinstance(part, str)))
        return _rendered(parts, self.limits.result)


def scope_of(limits: Limits, warnings: Warnings | None = None) -> LegacyScope:
    """Return the context of a legacy rule without problems so far."""
    return LegacyScope((_ROOT,), early=False, strict=True, problems=[], limits=limits, warnings=warnings)


def compile_message(scope: LegacyScope, text: str, where: str) -> Compiled:
    """Compile the message of an action: like messages of inspection rules, it is filled in as far as possible."""
    compiled = compile_value(replace(scope, begin=IN_MESSAGE), text, where)
    if isinstance(compiled, Const):
        return compiled
    return Filled(message_getter(message_parts(text), scope.limits.result))


def message_parts(text: str) -> tuple[str | template.Field, ...]:
    """Return the literal parts and the templates of a valid message."""
    return template.parse(text, begin=IN_MESSAGE)


def _key(value: object) -> str:
    if not isinstance(value, str):
        raise CannotEvaluate("a key of an object would be a list or an object")
    return value


def _check(used: template.Field) -> None:
    """:raises TemplateError: the field is not what ironic-inspector has"""
    if used.root != _ROOT:
        raise template.TemplateError(used.column + 1, "the only name is data, as in {data[memory_mb]}")
    if not used.is_plain:
        raise template.ConversionError(used.column_of(len(used.steps)) - 1, _UNSUPPORTED)
    if used.text != field_text(used.root, used.steps):
        raise template.TemplateError(used.column_of(0), "keys are written in brackets, as in {data[memory_mb]}")


def _rendered(parts: tuple[str | template.Field, ...], limit: int) -> Compiled:
    pieces = [part if isinstance(part, str) else path_getter(part, True) for part in parts]

    def render(view: View) -> Any:
        values = [piece if isinstance(piece, str) else piece(view) for piece in pieces]
        if len(values) == 1 and isinstance(values[0], (list, dict)):
            return values[0]
        result = "".join(map(str, values))
        if len(result) > limit:
            raise CannotEvaluate(f"the text is longer than {limit} characters")
        return result

    first = parts[0]
    return Filled(render, first if len(parts) == 1 and isinstance(first, template.Field) else None)


def processed(inventory: Mapping[str, object], plugin_data: Mapping[str, object], *,
              auto_discovered: bool = False) -> JSONObject:
    """Return the data that the ramdisk has sent, with the keys that ironic-inspector's rules read.

    :param plugin_data: with what hooks write: ``all_interfaces``, ``local_gb``, ``parsed_lldp`` and ``extra``
    :param auto_discovered: whether this inspection has enrolled the node

    ``memory_mb``, ``cpus``, ``cpu_arch``
        from the inventory
    ``ipmi_address``, ``ipmi_v6address``
        the addresses of the BMC
    ``all_interfaces``
        by name, each with ``mac``, ``ip``, ``pxe``, ``client_id``, and ``lldp_processed`` if a switch sent LLDP
    ``interfaces``
        those of ``valid_interfaces``, in this form; ``macs``: their addresses
    ``boot_interface``
        the address from which the ramdisk was booted
    ``local_gb``, ``root_disk``, ``extra``
        as hooks write them
    ``auto_discovered``
        true, or missing
    """
    data = {**plugin_data, "inventory": inventory}
    cpu, memory, boot = (_object_at(inventory.get(name)) for name in ("cpu", "memory", "boot"))
    lldp = _object_at(plugin_data.get("parsed_lldp"))
    interfaces = {name: _interface(value, lldp.get(name))
                  for name, value in _object_at(plugin_data.get("all_interfaces")).items() if isinstance(value, dict)}
    values = {
        "memory_mb": memory.get("physical_mb"), "cpus": cpu.get("count"), "cpu_arch": cpu.get("architecture"),
        "ipmi_address": addresses.normalize(inventory.get("bmc_address")),
        "ipmi_v6address": addresses.normalize(inventory.get("bmc_v6address")),
        "boot_interface": boot.get("pxe_interface") or plugin_data.get("boot_interface"),
    }
    data.update((name, value) for name, value in values.items() if value is not None)
    if "all_interfaces" in plugin_data:
        valid = _object_at(plugin_data.get("valid_interfaces"))
        data["all_interfaces"] = interfaces
        data["interfaces"] = {name: value for name, value in interfaces.items() if name in valid}
    data.pop("auto_discovered", None)
    if auto_discovered:
        data["auto_discovered"] = True
    return data


def _object_at(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _interface(value: Mapping[str, object], lldp: object) -> JSONObject:
    return {
        **value, "mac": value.get("mac_address"), "ip": value.get("ipv4_address") or value.get("ipv6_address"),
        "client_id": value.get("client_id"), "pxe": bool(value.get("pxe_enabled")),
        **({"lldp_processed": lldp} if lldp else {}),
    }
