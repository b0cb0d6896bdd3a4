"""Limits and shares of what an instance uses: ``quota:NAME``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ironic_rules.extra_specs.validators import ExtraSpecValidator

_ANY: Mapping[str, Any] = {"type": int}
_NOT_NEGATIVE: Mapping[str, Any] = {"type": int, "min": 0}
#: The resources that VMware shares: the words for them, and their unit.
_SHARED = {
    "cpu": ("CPU", "MHz"),
    "memory": ("memory", "MiB"),
    "disk_io": ("disk access", "operations per second"),
    "vif": ("network", "Mbit per second"),
}
_DISK = {"read": "read", "write": "write", "total": "read and write"}


def _libvirt(name: str, description: str, value: Mapping[str, Any], unit: str, **more: Any) -> ExtraSpecValidator:
    return ExtraSpecValidator(f"quota:{name}", description, {**value, "description": unit}, drivers=["libvirt"], **more)


def _cpu() -> Iterator[ExtraSpecValidator]:
    yield _libvirt("cpu_period", "The interval of ``quota:cpu_quota``, from 1,000 to 1,000,000; 0 for none.",
                   _NOT_NEGATIVE, "Microseconds.")
    yield _libvirt("cpu_quota", "The CPU time that each virtual CPU can use in each period. Negative: no limit.", _ANY,
                   "Microseconds.", requires=["quota:cpu_period"])
    yield _libvirt("cpu_shares", "The instance's weight when CPUs are scarce: twice the shares get twice the time.",
                   _NOT_NEGATIVE, "Shares, which have no unit.")


def _disk() -> Iterator[ExtraSpecValidator]:
    for key, words in _DISK.items():
        yield _libvirt(f"disk_{key}_bytes_sec", f"How much the guest can {words} on its disks.", _NOT_NEGATIVE,
                       "Bytes per second.")
        yield _libvirt(f"disk_{key}_iops_sec", f"How often the guest can {words} on its disks.", _NOT_NEGATIVE,
                       "Operations per second.")


def _network() -> Iterator[ExtraSpecValidator]:
    for key, words in {"inbound": "to", "outbound": "from"}.items():
        yield _libvirt(f"vif_{key}_average", f"The average traffic {words} the guest.", _NOT_NEGATIVE,
                       "KiB per second.")
        yield _libvirt(f"vif_{key}_peak", f"The fastest traffic {words} the guest while it is less than its burst.",
                       _NOT_NEGATIVE, "KiB per second.", requires=[f"quota:vif_{key}_average"])
        yield _libvirt(f"vif_{key}_burst", f"How much traffic {words} the guest can have the speed of its peak.",
                       _NOT_NEGATIVE, "KiB.", requires=[f"quota:vif_{key}_average"])


def _vmware() -> Iterator[ExtraSpecValidator]:
    for key, (words, unit) in _SHARED.items():
        prefix, drivers = f"quota:{key}", ["vmware"]
        yield ExtraSpecValidator(f"{prefix}_limit", f"The most {words} that the instance can use; 0: no limit.",
                                 {**_NOT_NEGATIVE, "description": f"Limit, {unit}."}, drivers=drivers)
        yield ExtraSpecValidator(f"{prefix}_reservation", f"How much {words} the instance has for certain.",
                                 {**_ANY, "description": f"Reservation, {unit}."}, drivers=drivers)
        yield ExtraSpecValidator(f"{prefix}_shares_level", f"The instance's weight when {words} is scarce.",
                                 {"type": str, "description": "A weight, or ``custom`` for a number of shares.",
                                  "enum": ["custom", "high", "normal", "low"]}, drivers=drivers)
        yield ExtraSpecValidator(f"{prefix}_shares_share", f"The instance's number of shares when {words} is scarce.",
                                 {**_NOT_NEGATIVE, "description": "Shares, which have no unit."}, drivers=drivers,
                                 requires=[f"{prefix}_shares_level"])


EXTRA_SPECS = [*_cpu(), *_disk(), *_network(), *_vmware()]
