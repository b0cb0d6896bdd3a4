"""Values of BIOS settings: requested ones as the BMC represents them, compared by type. No side effects.

Requests often have the text ``"1"`` where a BMC has the number 1, and a BMC may refuse a value of the wrong type, or
accept it and report the right one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ironic_rules.exceptions import InvalidParameterValue
from ironic_rules.models.documents import JSON, JSONObject
from ironic_rules.text import printable

_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


def converted(settings: Mapping[str, JSON], present: Mapping[str, JSON]) -> JSONObject:
    """Return requested settings with values of the types that the BMC reports now.

    :param present: the settings that the BMC reports; all of ``settings`` are among them
    :raises InvalidParameterValue: a value cannot have that type
    """
    return {name: _as_type(name, value, present[name]) for name, value in settings.items()}


def differing(settings: Mapping[str, Any], present: Mapping[str, Any]) -> list[str]:
    """Return the names of the settings that the BMC does not report with the requested value, whatever its type."""
    return sorted(name for name, value in settings.items()
                  if name not in present or not _is_same(value, present[name]))


def _is_same(wanted: Any, reported: Any) -> bool:
    try:
        wanted = _as_type("", wanted, reported)
    except InvalidParameterValue:
        return False
    return bool(wanted == reported) and isinstance(wanted, bool) == isinstance(reported, bool)


def _as_type(name: str, value: Any, reported: Any) -> Any:
    """Return a value with the type of the one that is reported; null has no type."""
    if value is None or reported is None or type(value) is type(reported):
        return value
    if isinstance(reported, bool):
        known = _BOOLEANS.get(str(value).lower())
        if known is None:
            raise _wrong(name, "true or false")
        return known
    if _is_number(reported):
        try:
            if isinstance(value, bool):
                raise ValueError(name)
            number = float(value)
            return int(number) if number.is_integer() and isinstance(reported, int) else number
        except (OverflowError, ValueError):
            raise _wrong(name, "a number") from None
    if isinstance(reported, str):
        if isinstance(value, bool):
            raise _wrong(name, "a text")
        return f"{value:g}" if isinstance(value, float) else str(value)
    return value


def _is_number(value: JSON) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _wrong(name: str, what: str) -> InvalidParameterValue:
    return InvalidParameterValue(f"The BIOS setting {printable(name)} must be {what}, as the BMC reports it.")
