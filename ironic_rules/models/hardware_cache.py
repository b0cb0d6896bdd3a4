"""What a BMC reported last about its machine: BIOS settings and versions of firmware."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Protocol

from ironic_rules.models.json_values import JSON


@dataclass(frozen=True, slots=True)
class BIOSSetting:
    """A setting, and what the BMC's registry of attributes says about it; None: it does not say that.

    :ivar value: as text; None if the setting has no value
    :ivar attribute_type: ``Enumeration``, ``String``, ``Integer``, ``Boolean`` or ``Password``
    :ivar allowable_values: those of an enumeration
    """

    name: str
    value: str | None
    attribute_type: str | None = None
    allowable_values: tuple[str, ...] | None = None
    lower_bound: int | None = None
    max_length: int | None = None
    min_length: int | None = None
    read_only: bool | None = None
    reset_required: bool | None = None
    unique: bool | None = None
    upper_bound: int | None = None


@dataclass(frozen=True, slots=True)
class FirmwareComponent:
    """A component with firmware: ``bios``, ``bmc``, or ``nic:<name>``."""

    component: str
    current_version: str | None


class StoredSetting(Protocol):
    """A row of ``bios_settings``: a :class:`BIOSSetting` and when it was read first, and changed last."""

    name: str
    value: str | None
    attribute_type: str | None
    created_at: datetime.datetime
    updated_at: datetime.datetime | None


class StoredComponent(Protocol):
    """A row of ``firmware_components``.

    :ivar initial_version: the first one that was read
    :ivar last_version_flashed: the last one to which it was seen to change
    """

    component: str
    initial_version: str | None
    current_version: str | None
    last_version_flashed: str | None
    created_at: datetime.datetime
    updated_at: datetime.datetime | None


def as_text(value: JSON) -> str | None:
    """Return the value of a setting as text: BMCs report texts, numbers and booleans."""
    return None if value is None else str(value)
