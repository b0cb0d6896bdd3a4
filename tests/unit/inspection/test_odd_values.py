"""Every kind of odd value in every place of recorded reports: none is refused, and no hook fails."""

from __future__ import annotations

import copy
import json
import os
import random
from collections.abc import Iterator
from functools import cache
from typing import Any

from ironic_rules import samples
from ironic_rules.api import body
from ironic_rules.exceptions import HookFailed
from ironic_rules.inspection import payload
from ironic_rules.inspection.hook_settings import HookSettings
from ironic_rules.inspection.pipeline import Pipeline
from ironic_rules.models import inventories
from ironic_rules.models.inventories import InspectionData
from tests import matrices
from tests.unit.inspection import test_hook_vectors as vectors
from tests.unit.inspection.tasks import make_task
from tests.walking import walking

#: Texts that firmware, agents and collectors send for a value, as JSON text or nearly so; ``None``: nothing.
KINDS: dict[str, bytes | None] = {
    "absent": None, "null": b"null", "empty": b'""', "not available": b'"N/A"', "number": b"5", "zero": b"0",
    "text of a number": b'"65536"', "whole fraction": b"65536.0", "fraction": b"0.5", "negative": b"-1",
    "64 bits": b"18446744073709551615", "77 bits": b"99999999999999999999999", "NaN": b"NaN",
    "infinity": b"-Infinity", "float overflow": b"1e999", "true": b"true", "text of true": b'"yes"', "list": b'["a"]',
    "empty list": b"[]", "list of all": b'[null, 5, "a", [], {}, NaN]', "object": b'{"a": {"b": [1]}}',
    "empty object": b"{}", "duplicate keys": b'{"a": 1, "a": {"a": 2, "a": 3}}', "not UTF-8": b'"\xff\xfeHPE\xa9"',
    "lone surrogate": b'"\\ud800"', "NUL": b'"a\\u0000"', "raw control": b'"a\tb"', "long": b'"' + b"x" * 5000 + b'"',
    "EUI-64": b'"00:11:22:ff:fe:33:44:55"', "other MAC": b'"5254.0010.0001"', "address": b'"192.0.2.1"',
    "zone": b'"fe80::1%eno1/64"', "host name": b'"bmc01.example.com"', "brackets": b'"{a[b]}"',
}
MARK = "the place of the odd value"
#: Hooks whose purpose such values make impossible, with the place that they name.
UNSERVED = {"architecture": ("/cpu is missing", "/cpu/architecture is missing"),
            "memory": ("/memory is missing", "/memory/physical_mb is missing"),
            "ramdisk-error": ("the ramdisk reported",)}
NAMES = sorted(vectors.HOOKS)
HOOKS = [(name, next(iter(vectors.loader.load([*vectors.CLASSES[name].dependencies, name], HookSettings(
    pci_device_alias=['{"vendor_id": "10de", "product_id": "20b2", "name": "a100"}'], cpu_capabilities={"vmx": "vt"},
    physical_network_cidr_map=["192.0.2.0/24:provider"]), vectors.CLASSES)[-1:]))[1]) for name in NAMES]


def places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield all places of a report; of lists, those of the first element, which stands for all."""
    if place:
        yield place
    items = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*place, key))


@cache
def reports() -> dict[str, Any]:
    return {name: samples.inventory(name) for name in samples.inventory_names()}


def cases() -> list[Any]:
    """Return each place of each report, with one kind, the same one each time, or with all of them."""
    one = random.Random(39)
    return [(name, place, [*KINDS] if os.environ.get(matrices.OPTION) else [one.choice([*KINDS])])
            for name, report in reports().items() for place in places(report) if place != ("inventory",)]


def text_of(report: Any, place: tuple[Any, ...], kind: str) -> bytes:
    """Return a report with a value of the kind in the place."""
    changed = copy.deepcopy(report)
    holder = changed
    for step in place[:-1]:
        holder = holder[step]
    value = KINDS[kind]
    if value is None:
        del holder[place[-1]]
        return json.dumps(changed).encode()
    holder[place[-1]] = MARK
    return json.dumps(changed).encode().replace(f'"{MARK}"'.encode(), value)


def run(data: InspectionData) -> list[tuple[str, str]]:
    """Run each hook, with those that it depends on; return why which ones fail."""
    failures = []
    for name, hook in HOOKS:
        settings = HookSettings()
        before = [(each, dict(HOOKS)[each]) for each in hook.dependencies]
        task = make_task({"properties": {"root_device": {"size": ">= 1"}}} if name == "root-device" else {},
                         [{"address": "52:54:00:00:00:01"}])
        task.begin_inspection(set(), lambda: data.inventory)
        try:
            outcome = Pipeline([*before, (name, hook)], settings).run(task, data.inventory, data.plugin_data)
        except HookFailed as error:
            failures.append((name, str(error)))
        else:
            assert outcome.plugin_data.get(inventories.WARNINGS) == data.plugin_data.get(inventories.WARNINGS)
    return failures


@walking("name, place, kinds", cases())
def test_an_odd_value_costs_only_itself(name: str, place: tuple[Any, ...], kinds: list[str]) -> None:
    for kind in kinds:
        check(name, place, kind)


def check(name: str, place: tuple[Any, ...], kind: str) -> None:
    value, oddities = body.parse_report(text_of(reports()[name], place, kind), 100)
    sent = payload.split(value, oddities)
    data = sent.to_store()
    inventories.shipped_catalogue().new(data.inventory)
    inventories.difference(InspectionData(reports()[name]["inventory"]), data)
    for hook, reason in run(data):
        texts = UNSERVED.get(hook, ())
        if hook == "root-device" and (place[1:2] == ("disks",) or not reports()[name]["inventory"]["disks"]):
            texts = ("/disks is missing", "fits the root device hints")
        assert any(text in reason for text in texts), (kind, hook, reason)
    for warning in sent.warnings:
        assert payload.summary([warning])


def test_what_was_refused_before_is_accepted_and_named() -> None:
    sent = payload.split(*body.parse_report(
        b'{"inventory": {"interfaces": [{"mac_address": "00:11:22:ff:fe:33:44:55"}, {"mac_address": '
        b'"52:54:00:10:00:01"}], "bmc_address": "N/A", "cpu": {"count": NaN}}, "data": [["a", "b", "c", Infinity]]}',
        10))
    assert sent.macs == ("52:54:00:10:00:01",)
    assert [(each["path"], each["used"]) for each in sent.warnings] == [
        ("/data/0/3", None), ("/inventory/cpu/count", None), ("/inventory/interfaces/0/mac_address", None),
        ("/inventory/bmc_address", None)]
    assert sent.received["cpu"] == {"count": "NaN"}
