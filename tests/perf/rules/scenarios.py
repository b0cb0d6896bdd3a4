"""The rules and the machine that both engines get: the same data, as JSON."""

from __future__ import annotations

import json
import subprocess
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.perf import loads, reference

#: The measured scenarios, and the meaning of each name.
KINDS = {
    "nomatch": "one condition, false",
    "nomatch5": "five conditions, the last one false",
    "match_set": "one condition, true, and one attribute set; nothing is saved",
    "match_set_db": "the same, and the node is saved",
    "loop_regex": "a regular expression over the names of 8 interfaces, false for all; a different one in each rule",
    "loop_match": "the same, true for the last, and one attribute set; nothing is saved",
}

_MAKER, _MODEL, _SERIAL = (
    f"{{inventory[system_vendor][{name}]}}" for name in ("manufacturer", "product_name", "serial_number"))
_CPUS, _MEMORY, _HOSTNAME = "{inventory[cpu][count]}", "{inventory[memory][physical_mb]}", "{inventory[hostname]}"
_BMC, _RACK = "{inventory[bmc_address]}", "{plugin_data[bench][rack]}"
_IS_DELL = {"op": "eq", "args": {"values": [_MAKER, "Dell Inc."]}}
_NAMES = [f"{{inventory[interfaces][{number}][name]}}" for number in range(8)]

_Condition = dict[str, Any]


def _pair(op: str, value: Any, other: Any) -> _Condition:
    return {"op": op, "args": {"values": [value, other]}}


def _other(op: str, value: str, name: str, argument: Any) -> _Condition:
    return {"op": op, "args": {"address" if op.endswith("in-net") else "value": value, name: argument}}


#: Conditions that are false for the machine, by number: one for each test that can be looked up, and its inverse.
NEVER: tuple[Callable[[int], _Condition], ...] = (
    lambda n: _pair("eq", _MAKER, f"NoSuch {n}"),
    lambda n: _pair("!eq", _CPUS, 40),
    lambda n: _other("one-of", _SERIAL, "values", [f"A{n}", f"B{n}"]),
    lambda n: _other("!one-of", _SERIAL, "values", [f"A{n}", "SN000001"]),
    lambda n: _pair("gt", _CPUS, 10_000 + n),
    lambda n: _pair("!gt", _MEMORY, n),
    lambda n: _pair("lt", _MEMORY, -1 - n),
    lambda n: _pair("!lt", _CPUS, 10_000 + n),
    lambda n: _other("in-net", _BMC, "subnet", f"172.{16 + n % 16}.{n // 16 % 256}.0/24"),
    lambda n: _other("!in-net", _BMC, "subnet", f"10.0.0.0/{8 + n % 16}"),
    lambda n: _other("matches", _MODEL, "regex", f"no[0-9]+x{n}.*"),
    lambda n: _other("!matches", _MODEL, "regex", f"PowerEdge.*|x{n}"),
    lambda n: _other("contains", _MODEL, "regex", f"(?i)nosuch{n}"),
    lambda n: _other("!contains", _MODEL, "regex", f"(?i)poweredge|x{n}"),
    lambda n: {"op": "is-none", "args": {"value": _MAKER}},
    lambda n: {"op": "is-empty", "args": {"value": _MODEL}},
    lambda n: {"op": "is-true", "args": {"value": _HOSTNAME}},
    lambda n: {"op": "is-false", "args": {"value": _HOSTNAME}},
    lambda n: _pair("eq", _RACK, f"r{n}"),
    lambda n: _pair("gt", _RACK, 10_000 + n),
)
MATCHES = next(each for each in NEVER if each(0)["op"] == "matches")


def place_of(conditions: Callable[[int], _Condition]) -> str:
    """Return whether conditions test the inventory or the plugin data."""
    return "over plugin data" if "{plugin_data" in json.dumps(conditions(0)) else ""


def _crossed(number: int) -> _Condition:
    disk, name = divmod(number % 60, 5)
    nic, other = divmod(number // 60, 9)
    names = ("name", "model", "wwn", "serial", "vendor")
    others = ("name", "mac_address", "vendor", "product", "biosdevname", "pci_address", "driver", "client_id",
              "ipv6_address")
    return _pair("eq", f"{{inventory[disks][{disk}][{names[name]}]}}",
                 f"{{inventory[interfaces][{nic % 8}][{others[other]}]}}")


#: Conditions that cannot be looked up, by number; each is false for the machine.
UNINDEXED: dict[str, Callable[[int], _Condition]] = {
    "a field of the node": lambda n: _pair("eq", "{node.uuid}", f"r{n}"),
    "two paths": _crossed,
    "text around a template": lambda n: _pair("eq", f"{_HOSTNAME}!", f"r{n}"),
    "compared as text": lambda n: {"op": "eq", "args": {"values": [_CPUS, f"r{n}"], "force_strings": True}},
    "three values": lambda n: {"op": "gt", "args": {"values": [_MEMORY, _CPUS, 10_000 + n]}},
}


def one_each(conditions: Callable[[int], _Condition], count: int, matching: int = 0) -> list[dict[str, Any]]:
    """Return ``count`` rules with a condition each; of ``matching`` of them, evenly spread, it is true instead."""
    every = count // matching if matching else count + 1
    return [_rule(number, [conditions(number) if (number + 1) % every else _IS_DELL]) for number in range(count)]


def never(number: int) -> _Condition:
    """Return a condition that is false and can be looked up; of all kinds in turn."""
    return NEVER[number % len(NEVER)](number)


def for_reference(rules: list[dict[str, Any]]) -> list[dict[str, Any]] | None:
    """Return rules that the reference can run as well; None if it can run none of them.

    To it, the value of a template is text: it cannot compare that with a number, and gets other conditions instead.
    """
    usable = [not any(isinstance(value, int) for condition in rule["conditions"]
                      for value in condition["args"].get("values", ())) for rule in rules]
    if not any(usable):
        return None
    return [rule if good else _rule(number, [NEVER[0](number)])
            for number, (rule, good) in enumerate(zip(rules, usable, strict=True))]


def plugin_data() -> dict[str, Any]:
    """Return the plugin data at the beginning of the rules."""
    return {"bench": {"rack": 7}}


def measured_by_reference(folder: Path, cases: list[dict[str, Any]]) -> list[dict[str, dict[str, float]]] | None:
    """Return the timings of each case by the reference service's engine; None if there is none.

    :param cases: see ``reference_engine.py``
    """
    venv = reference.environment()
    if venv is None:
        return None
    job = folder / "job.json"
    job.write_text(json.dumps({"inventory": inventory(), "plugin_data": plugin_data(), "cases": cases}))
    script = Path(__file__).with_name("reference_engine.py")
    output = subprocess.run([venv / "bin/python", script, job], check=True, stdout=subprocess.PIPE, cwd=folder,
                            stderr=subprocess.DEVNULL).stdout
    timings: list[dict[str, dict[str, float]]] = json.loads(output)
    return timings


def inventory() -> dict[str, Any]:
    """Return the inventory of a 40-core server with 8 NICs and 12 disks."""
    found: dict[str, Any] = loads.inventory(1)["inventory"]
    return found


def rules(kind: str, count: int) -> list[dict[str, Any]]:
    """Return ``count`` rules of a kind, as they are stored."""
    return [_rule(number, _conditions(kind, number)) for number in range(count)]


def hits(kind: str, count: int) -> int:
    """Return how many attributes ``count`` rules of a kind set."""
    return count if kind in ("match_set", "match_set_db", "loop_match") else 0


def _rule(number: int, conditions: list[_Condition]) -> dict[str, Any]:
    return {"uuid": str(uuid.uuid4()), "description": f"bench {number}", "priority": number % 100, "phase": "main",
            "sensitive": False, "conditions": conditions, "actions": _actions(number)}


def _actions(number: int) -> list[dict[str, Any]]:
    return [{"op": "set-attribute",
             "args": {"path": f"/extra/k{number}", "value": "{inventory[cpu][model_name]}"}}]


def _conditions(kind: str, number: int) -> list[_Condition]:
    other_maker = {"op": "eq", "args": {"values": [_MAKER, f"NoSuch {number}"]}}
    if kind == "nomatch":
        return [other_maker]
    if kind == "nomatch5":
        return [
            _IS_DELL,
            {"op": "!is-empty", "args": {"value": "{inventory[system_vendor][serial_number]}"}},
            {"op": "in-net", "args": {"address": "{inventory[bmc_address]}", "subnet": "10.0.0.0/8"}},
            {"op": "contains", "args": {"value": "{inventory[cpu][model_name]}", "regex": "Xeon"}},
            other_maker,
        ]
    if kind in ("match_set", "match_set_db"):
        return [_IS_DELL]
    regex = f"ib[0-9]+x{number}" if kind == "loop_regex" else "ens4f1"
    return [{"op": "matches", "loop": _NAMES, "multiple": "any", "args": {"value": "{item}", "regex": regex}}]
