"""Extra specs that select a host or limit an instance, by namespace.

===================================  =====================================================================
``aggregate_instance_extra_specs``   required metadata of the host's aggregates
``quota``                            limits and shares of what an instance uses
``trait``                            traits that a host must have, or must not have
``resources``                        amounts of resources that an instance takes
``capabilities``                     capabilities of a host or a bare-metal node
none                                 extra specs without a namespace
===================================  =====================================================================

Extra specs of older releases of Nova are listed too, so that an old flavor gets an answer.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any

from ironic_rules.extra_specs.validators import ExtraSpecValidator

#: A comparison, or a text that is compared as it is.
COMPARISON = {
    "type": str,
    "description": "A text that must be equal; or an operator and what it compares with, such as ``<in> gpu``, ``<or> "
                   "a <or> b``, ``s== x`` or ``>= 4``.",
    "format": "scheduler-operators",
}

AGGREGATES_SPECS = [
    ExtraSpecValidator(
        name="aggregate_instance_extra_specs:{key}",
        description="Only hosts in an aggregate whose metadata have this key, with a value that fits. The scheduler "
                    "must have the filter ``AggregateInstanceExtraSpecsFilter``.",
        parameters=[{"name": "key", "description": "The key in the aggregate's metadata.", "type": str}],
        value=COMPARISON,
        refinable=True,
    ),
]


NO_NAMESPACE_SPECS = [
    ExtraSpecValidator(
        name="group_policy",
        description="Whether numbered groups of resources and traits must come from different providers "
                    "(``isolate``), or may come from one (``none``). Needed as soon as a flavor has more than one "
                    "such group.",
        value={"type": str, "description": "The policy.", "enum": ["isolate", "none"]},
        requires=["resources{group}:CUSTOM_{resource}"],
    ),
    ExtraSpecValidator(
        name="hide_hypervisor_id",
        description="Keeps the hypervisor's signature from the guest.",
        value={"type": bool, "description": "Whether it is hidden."},
        deprecated=True,
        replaced_by="hw:hide_hypervisor_id",
        drivers=["libvirt"],
        see_also="img_hide_hypervisor_id",
    ),
    ExtraSpecValidator(
        name="cpu_arch",
        description="The architecture of a bare-metal node, as flavors named it before there were resource classes.",
        value={"type": str, "description": "An architecture, such as ``x86_64``."},
        deprecated=True,
        replaced_by="capabilities:cpu_arch",
        advice="Where nodes of another architecture have another resource class, neither is needed.",
        drivers=["ironic"],
    ),
]


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


def _libvirt(name: str, description: str, value: Mapping[str, object], unit: str, **more: Any) -> ExtraSpecValidator:
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
        yield _libvirt(f"disk_{key}_bytes_sec", f"The maximum rate at which the guest can {words} on its disks.",
                       _NOT_NEGATIVE, "Bytes per second.")
        yield _libvirt(f"disk_{key}_iops_sec", f"The maximum frequency at which the guest can {words} on its disks.",
                       _NOT_NEGATIVE, "Operations per second.")


def _network() -> Iterator[ExtraSpecValidator]:
    for key, words in {"inbound": "to", "outbound": "from"}.items():
        yield _libvirt(f"vif_{key}_average", f"The average traffic {words} the guest.", _NOT_NEGATIVE,
                       "KiB per second.")
        yield _libvirt(f"vif_{key}_peak", f"The fastest traffic {words} the guest while it is less than its burst.",
                       _NOT_NEGATIVE, "KiB per second.", requires=[f"quota:vif_{key}_average"])
        yield _libvirt(f"vif_{key}_burst", f"The amount of traffic {words} the guest at the speed of its peak.",
                       _NOT_NEGATIVE, "KiB.", requires=[f"quota:vif_{key}_average"])


def _vmware() -> Iterator[ExtraSpecValidator]:
    for key, (words, unit) in _SHARED.items():
        prefix, drivers = f"quota:{key}", ["vmware"]
        yield ExtraSpecValidator(f"{prefix}_limit", f"The most {words} that the instance can use; 0: no limit.",
                                 {**_NOT_NEGATIVE, "description": f"Limit, {unit}."}, drivers=drivers)
        yield ExtraSpecValidator(f"{prefix}_reservation", f"The amount of {words} that the instance has for certain.",
                                 {**_ANY, "description": f"Reservation, {unit}."}, drivers=drivers)
        yield ExtraSpecValidator(f"{prefix}_shares_level", f"The instance's weight when {words} is scarce.",
                                 {"type": str, "description": "A weight, or ``custom`` for a number of shares.",
                                  "enum": ["custom", "high", "normal", "low"]}, drivers=drivers)
        yield ExtraSpecValidator(f"{prefix}_shares_share", f"The instance's number of shares when {words} is scarce.",
                                 {**_NOT_NEGATIVE, "description": "Shares, which have no unit."}, drivers=drivers,
                                 requires=[f"{prefix}_shares_level"])


QUOTA_SPECS = [*_cpu(), *_disk(), *_network(), *_vmware()]


GROUP = {
    "name": "group",
    "description": "The request group, which one provider has to satisfy as a whole; empty for the unnumbered group.",
    "pattern": "(?:[a-zA-Z0-9_-]{1,64})?",
}
_VALUE = {
    "type": str,
    "description": "Whether the host must have the trait, or must not.",
    "enum": ["required", "forbidden"],
}


@functools.cache
def standard_traits() -> frozenset[str]:
    """Return the names of standard traits."""
    # Most of the time that importing this package would take, and many programs need no trait.
    import os_traits
    return frozenset(os_traits.get_traits())


TRAITS_SPECS = [
    ExtraSpecValidator(
        name="trait{group}:CUSTOM_{trait}",
        description="Require or forbid a custom trait. The required traits of a bare-metal flavor also select deploy "
                    "templates: those whose name is one of them.",
        parameters=[GROUP,
                    {"name": "trait", "description": "The name of the trait after ``CUSTOM_``.",
                     "pattern": "[A-Z0-9_]+"}],
        value=_VALUE,
        see_also="trait:CUSTOM_{trait}",
    ),
    ExtraSpecValidator(
        name="trait{group}:{trait}",
        description="Require or forbid a standard trait.",
        parameters=[GROUP,
                    {"name": "trait", "description": "The name of a trait of os-traits.", "enum": standard_traits}],
        value=_VALUE,
        see_also="trait:{trait}",
    ),
]


@functools.cache
def standard_classes() -> frozenset[str]:
    """Return the names of standard resource classes."""
    import os_resource_classes
    return frozenset(os_resource_classes.STANDARDS)


RESOURCES_SPECS = [
    ExtraSpecValidator(
        name="resources{group}:CUSTOM_{resource}",
        description="Take an amount of a custom resource class. For bare metal the class is that of the node, as in "
                    "``resources:CUSTOM_BAREMETAL_GOLD=1``, and the amount is 1: a node has one of its class.",
        parameters=[GROUP,
                    {"name": "resource", "description": "The name of the class after ``CUSTOM_``.",
                     "pattern": "[A-Z0-9_]+"}],
        value={"type": int, "description": "The amount; 1 for a bare-metal node."},
    ),
    ExtraSpecValidator(
        name="resources{group}:{resource}",
        description="Take an amount of a standard resource class, instead of what the flavor's fields say. Bare-metal "
                    "flavors have 0 for ``VCPU``, ``MEMORY_MB`` and ``DISK_GB``, as nodes provide none of them to "
                    "Placement.",
        parameters=[GROUP, {"name": "resource", "description": "The name of a class of os-resource-classes.",
                            "enum": standard_classes}],
        value={"type": int, "description": "The amount; 0 leaves out what the flavor's field says."},
    ),
]


_FILTER = {
    "name": "filter",
    "description": "The path to a part of it, each step after a colon; empty for all of it.",
    "pattern": r"(?::\w+)*",
}
#: Attributes that every compute host reports to the scheduler, with their descriptions.
_HOST = {
    "aggregates": "the aggregates that the host is in",
    "cell_uuid": "the UUID of the host's cell",
    "cpu_allocation_ratio": "how many virtual CPUs there may be for each host CPU",
    "current_workload": "the number of operations that the host is busy with",
    "disk_allocation_ratio": "how much virtual disk there may be for each GiB of disk",
    "disk_available_least": "the free disk space in GiB, if all virtual disks were full",
    "disk_mb_used": "the used disk space in MiB",
    "failed_builds": "the number of builds that failed since the last one that did not",
    "free_disk_gb": "the free disk space in GiB",
    "free_disk_mb": "the free disk space in MiB",
    "free_ram_mb": "the free memory in MiB",
    "host": "the name of the compute service's host",
    "host_ip": "the host's address",
    "hypervisor_hostname": "the hypervisor's name for the host; for bare metal the node's UUID",
    "hypervisor_type": "the kind of hypervisor; for bare metal ``ironic``",
    "hypervisor_version": "the version of the hypervisor, as a number",
    "id": "the number of the host in the database",
    "local_gb": "the disk space in GiB",
    "local_gb_used": "the used disk space in GiB",
    "mapped": "whether the host is mapped to a cell",
    "memory_mb": "the memory in MiB",
    "memory_mb_used": "the used memory in MiB",
    "num_instances": "the number of instances",
    "num_io_ops": "the number of instances that are being built, resized or copied",
    "ram_allocation_ratio": "how much virtual memory there may be for each MiB of memory",
    "running_vms": "the number of running instances",
    "service_id": "the number of the compute service",
    "total_usable_disk_gb": "the disk space in GiB that instances can use",
    "total_usable_ram_mb": "the memory in MiB that instances can use",
    "updated": "the time of the host's last report",
    "uuid": "the UUID of the host",
    "vcpus": "the number of CPUs",
    "vcpus_total": "the number of CPUs that instances can use",
    "vcpus_used": "the number of virtual CPUs in use",
}
#: The same for what has parts.
_HOST_WITH_PARTS = {
    "cpu_info": "the model, features and topology of its CPUs",
    "instances": "its instances",
    "limits": "how much of its resources may be used",
    "metrics": "the measurements of its monitors",
    "nodename": "the hypervisor's name for the host",
    "numa_topology": "its NUMA nodes",
    "pci_device_pools": "its PCI devices",
    "pci_stats": "the counts of its PCI devices",
    "stats": "the counts of its instances by state and project",
    "supported_hv_specs": "the instances that it can run",
    "supported_instances": "the instances that it can run, each with an architecture, hypervisor and mode",
}


def _host() -> Iterator[ExtraSpecValidator]:
    text = "Only hosts with a fitting value for {}. The scheduler must have the filter ``ComputeCapabilitiesFilter``."
    for name, words in _HOST.items():
        yield ExtraSpecValidator(f"capabilities:{name}", text.format(words), COMPARISON)
    for name, words in _HOST_WITH_PARTS.items():
        yield ExtraSpecValidator(f"capabilities:{name}{{filter}}", text.format(words), COMPARISON, [_FILTER])


CAPABILITIES_SPECS = [
    *_host(),
    ExtraSpecValidator(
        name="capabilities:{name}",
        description="Only bare-metal nodes whose ``properties/capabilities`` have this name with a fitting value, "
                    "such as ``capabilities:boot_mode=uefi``. The request also goes to "
                    "``instance_info/capabilities``, where the deployment reads it. Nova's own API refuses it in "
                    "strict mode.",
        parameters=[{"name": "name", "description": "The name of the capability.",
                     "pattern": "[A-Za-z0-9_.-]+(?::[A-Za-z0-9_.-]+)*"}],
        value=COMPARISON,
        drivers=["ironic"],
        refinable=True,
    ),
]


_TEXT = {"type": str, "description": "Any; it has no effect."}
_POWERVM = "Nova 26.0.0"
_HYPER_V = "Nova 29.0.0"
_LONG_AGO = "a release of Nova before 21.0.0"


def _hyper_v(name: str, noun: str) -> ExtraSpecValidator:
    return ExtraSpecValidator(f"os:{name}", f"{noun} of instances on Hyper-V with RemoteFX.", _TEXT, removed=_HYPER_V,
                              advice="It was for Hyper-V, whose driver was removed as well; nothing takes its place.")


REMOVED_SPECS = [
    ExtraSpecValidator(
        name="powervm:{name}",
        description="The partition of an instance on PowerVM.",
        parameters=[{"name": "name", "description": "A property of the partition.", "pattern": "[a-z_]+"}],
        value=_TEXT,
        removed=_POWERVM,
        advice="It was for PowerVM, whose driver was removed as well; nothing takes its place.",
        drivers=["powervm"],
    ),
    ExtraSpecValidator(
        name="hw_watchdog_action",
        description="The action when the guest no longer answers its watchdog.",
        value=_TEXT,
        removed=_LONG_AGO,
        replaced_by="hw:watchdog_action",
        drivers=["libvirt"],
        see_also="hw_watchdog_action",
    ),
    _hyper_v("monitors", "The number of monitors"),
    _hyper_v("resolution", "The resolution of the monitors"),
    _hyper_v("vram", "The video memory"),
    ExtraSpecValidator(
        name="baremetal:{image}_id",
        description="The image with which a bare-metal node was deployed.",
        parameters=[{"name": "image", "description": "The image.", "pattern": "deploy_kernel|deploy_ramdisk"}],
        value=_TEXT,
        removed=_LONG_AGO,
        advice="Set driver_info/deploy_kernel and driver_info/deploy_ramdisk of the nodes instead.",
        drivers=["ironic"],
    ),
]
