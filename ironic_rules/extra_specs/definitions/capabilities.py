"""What a host or a bare-metal node can do: ``capabilities:NAME``."""

from __future__ import annotations

from collections.abc import Iterator

from ironic_rules.extra_specs.definitions.aggregates import COMPARISON
from ironic_rules.extra_specs.validators import ExtraSpecValidator

_FILTER = {
    "name": "filter",
    "description": "The path to a part of it, each step after a colon; empty for all of it.",
    "pattern": r"(?::\w+)*",
}
#: What every compute host tells the scheduler, by the words that describe it.
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


EXTRA_SPECS = [
    *_host(),
    ExtraSpecValidator(
        name="capabilities:{name}",
        description="Only bare-metal nodes whose ``properties/capabilities`` have this name with a fitting value, "
                    "such as ``capabilities:boot_mode=uefi``. What a flavor requests also goes to "
                    "``instance_info/capabilities``, where the deployment reads it. Nova's own API refuses it in "
                    "strict mode.",
        parameters=[{"name": "name", "description": "The name of the capability.",
                     "pattern": "[A-Za-z0-9_.-]+(?::[A-Za-z0-9_.-]+)*"}],
        value=COMPARISON,
        drivers=["ironic"],
        refinable=True,
    ),
]
