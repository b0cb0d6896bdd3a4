"""``extra-hardware``: convert the data of the tool hardware-detect to a format that rules can read."""

from __future__ import annotations

import re
from typing import Any

from ironic_rules.inspection.hooks.base import InspectionHook, warn
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.task import Task
from ironic_rules.text import enumeration

#: Digits with a leading zero are not a number but a serial number, and longer ones do not fit into 64 bits.
_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,17}")


class ExtraHardwareHook(InspectionHook):
    """Converts ``plugin_data.data``, a list of ``[a, b, c, value]``, to ``extra``: ``{a: {b: {c: value}}}``.

    ``data`` is removed. Numbers are unchanged, and a text that is an integer becomes a number; of several values for
    the same keys the last one is used. Other entries are left out, with a warning. The ramdisk must run the collector
    ``extra-hardware``; a report without ``data``, or whose ``data`` is not a list, changes nothing and causes a
    warning.
    """

    def __call__(self, task: Task, inventory: JSONObject, plugin_data: JSONObject) -> None:
        data = plugin_data.get("data")
        if not isinstance(data, list):
            reason = "is missing; the ramdisk's collector extra-hardware sends it" if data is None else "is not a list"
            warn(task, f"there is no extra hardware information: data {reason}")
            return
        extra: dict[str, dict[str, JSONObject]] = {}
        malformed: list[str] = []
        for index, entry in enumerate(data):
            if not _is_entry(entry):
                malformed.append(f"/data/{index}")
                continue
            first, second, third, value = entry
            extra.setdefault(first, {}).setdefault(second, {})[third] = _number(value)
        if malformed:
            warn(task, f"malformed extra hardware information is ignored: {enumeration(malformed)}")
        plugin_data["extra"] = extra
        del plugin_data["data"]


def _is_entry(entry: object) -> bool:
    return (isinstance(entry, list) and len(entry) == 4 and all(isinstance(key, str) for key in entry[:3])
            and not isinstance(entry[3], (list, dict)))


def _number(value: Any) -> Any:
    return int(value) if isinstance(value, str) and _NUMBER.fullmatch(value) else value
