"""Asks Nova's own classes what they make of nodes, flavors and properties of images, in the environment of Nova.

Nothing is connected to: the driver describes the node, the resource tracker's and the scheduler's classes take it from
there. Usage::

    python nova_scheduler.py < REQUEST     # JSON to the output

REQUEST is ``{"hosts": [[node, extra specs]...], "requests": [extra specs...], "images": [[name, value]...]}``, where a
node is its ``uuid`` and ``properties``. The output has, under the same names, whether the filter of capabilities lets
the node pass, the amounts of resources, and whether the property is accepted.
"""

from __future__ import annotations

import os

# Before anything of Nova is imported: threads, no eventlet.
os.environ["OS_NOVA_DISABLE_EVENTLET_PATCHING"] = "true"

import json
import sys
from types import SimpleNamespace
from typing import Any

import nova.conf
from nova import objects
from nova.compute import stats
from nova.objects import image_meta
from nova.scheduler import host_manager, utils
from nova.scheduler.filters import compute_capabilities_filter
from nova.virt.ironic import driver as ironic_driver


def flavor_of(extra_specs: dict[str, str]) -> objects.Flavor:
    """Return a flavor with 2 VCPUs, 1024 MiB of memory and 17 GiB of disks."""
    return objects.Flavor(id=1, name="bm", flavorid="bm", memory_mb=1024, vcpus=2, root_gb=10, ephemeral_gb=5,
                          swap=1025, extra_specs=extra_specs)


def host_of(node: dict[str, Any]) -> host_manager.HostState:
    """Return the state of the host that a node becomes."""
    driver = ironic_driver.IronicDriver.__new__(ironic_driver.IronicDriver)
    told = driver._node_resource(SimpleNamespace(
        id=node["uuid"], properties=node["properties"], resource_class="gold"))
    kept = stats.Stats()
    kept["failed_builds"] = 0
    kept.digest_stats(told["stats"])
    compute = objects.ComputeNode(
        stats=kept, free_disk_gb=0, free_ram_mb=0, cpu_allocation_ratio=0.0, ram_allocation_ratio=0.0,
        disk_allocation_ratio=0.0, metrics="[]", pci_device_pools=None, host_ip="192.0.2.1", updated_at=None)
    # The resource tracker writes an empty text where the driver knows no processor.
    compute.update_from_virt_driver({**told, "cpu_info": told["cpu_info"] or ""})
    host = host_manager.HostState("compute-1", node["uuid"], "11111111-1111-4111-8111-111111111111")
    host.update(compute=compute, service={}, aggregates=[], inst_dict={})
    return host


def passes(node: dict[str, Any], extra_specs: dict[str, str]) -> bool:
    try:
        return bool(compute_capabilities_filter.ComputeCapabilitiesFilter().host_passes(
            host_of(node), SimpleNamespace(flavor=flavor_of(extra_specs))))
    except (ValueError, IndexError):
        # The scheduler ends the request: the node is not selected.
        return False


def amounts(extra_specs: dict[str, str]) -> dict[str, int]:
    request = objects.RequestSpec(
        flavor=flavor_of(extra_specs), image=None, requested_resources=[], is_bfv=False,
        request_level_params=objects.RequestLevelParams())
    return dict(utils.ResourceRequest.from_request_spec(request).merged_resources())


def accepts(name: str, value: str) -> bool:
    try:
        image_meta.ImageMetaProps.from_dict({name: value})
    except ValueError:
        return False
    return True


def main() -> None:
    nova.conf.CONF([], project="nova", default_config_files=[], default_config_dirs=[])
    objects.register_all()
    request = json.load(sys.stdin)
    json.dump({"hosts": [passes(*case) for case in request["hosts"]],
               "requests": [amounts(case) for case in request["requests"]],
               "images": [accepts(*case) for case in request["images"]]}, sys.stdout)


if __name__ == "__main__":
    main()
