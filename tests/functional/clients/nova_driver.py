"""Runs Nova's ironic virt driver as nova-compute does. It is a separate process, in the environment of Nova.

The driver, its patcher and its connection to the bare-metal service are Nova's. The other services of
Nova are replaced by data: an instance, a flavor and an image as Nova's objects, which are not in Nova's database.
Usage::

    python nova_driver.py ENDPOINT < REQUEST     # JSON to the output

REQUEST is ``{"actions": [...], "instance": {...}}``; see ACTIONS, and :func:`instance_of` for the instance. The output
has one entry per action: ``{"result": ...}`` or ``{"error": class, "text": ...}``.
"""

from __future__ import annotations

import os

# Before anything of Nova is imported: threads, no eventlet.
os.environ["OS_NOVA_DISABLE_EVENTLET_PATCHING"] = "true"

import json
import sys
from typing import Any

import nova.conf
from nova import context, exception, objects
from nova.compute import provider_tree
from nova.network import model as network_model
from nova.virt.ironic import driver as ironic_driver
from openstack import exceptions as sdk_exceptions

CONF = nova.conf.CONF


class Instance(objects.Instance):
    """An instance that is in no database: it can be neither refreshed nor saved."""

    def refresh(self, *arguments: Any, **named: Any) -> None:
        pass

    def save(self, *arguments: Any, **named: Any) -> None:
        pass


def instance_of(given: dict[str, Any]) -> objects.Instance:
    """Return an instance.

    :param given: ``uuid``, ``node`` (the UUID of the bare-metal node), ``image`` (UUID), and of its flavor
        ``extra_specs``; ``vif`` (UUID) if it is in a network
    """
    flavor = objects.Flavor(
        id=1, name="bare-metal", flavorid="bm", memory_mb=1024, vcpus=2, root_gb=10, ephemeral_gb=0, swap=0,
        rxtx_factor=1.0, is_public=True, disabled=False, extra_specs=given["extra_specs"], projects=[])
    return Instance(
        uuid=given["uuid"], node=given["node"], host="compute-1", image_ref=given["image"], flavor=flavor,
        display_name="mirror", hostname="mirror", user_id="user", project_id="project", config_drive="",
        system_metadata={"image_min_disk": "1"}, metadata={}, vm_state="building", task_state="spawning",
        ephemeral_key_uuid=None)


class Compute:
    """The possible actions of a request, each a method."""

    def __init__(self, given: dict[str, Any]) -> None:
        self._driver = ironic_driver.IronicDriver(None)
        self._context = context.get_admin_context()
        self._instance = instance_of(given)
        self._image = objects.ImageMeta(id=given["image"], name="image", properties=objects.ImageMetaProps())
        self._network = network_model.NetworkInfo([network_model.VIF(id=given["vif"])] if "vif" in given else [])

    def prepare(self) -> None:
        self._driver.prepare_for_spawn(self._instance)

    def networks(self) -> None:
        self._driver.prepare_networks_before_block_device_mapping(self._instance, self._network)

    def spawn(self) -> None:
        self._driver.spawn(self._context, self._instance, self._image, [], None, {}, network_info=self._network)

    def clean_up(self) -> None:
        self._driver.failed_spawn_cleanup(self._instance)

    def destroy(self) -> None:
        self._driver.destroy(self._context, self._instance, self._network)

    def rebuild(self) -> None:
        self._instance.task_state = "rebuild_spawning"
        self._driver.rebuild(self._context, self._instance, self._image, [], None, {}, [], lambda *a, **k: None,
                             lambda *a, **k: None, network_info=self._network)

    def power(self) -> int:
        return int(self._driver.get_info(self._instance, use_cache=False).state)

    def resources(self) -> dict[str, Any]:
        """Return what is reported to Placement about the instance's node."""
        node = self._instance.node
        self._driver.get_available_nodes(refresh=True)
        tree = provider_tree.ProviderTree()
        tree.new_root(node, node)
        self._driver.update_provider_tree(tree, node)
        found = tree.data(node)
        return {"traits": sorted(found.traits), "inventory": found.inventory}


ACTIONS = ("prepare", "networks", "spawn", "clean_up", "destroy", "rebuild", "power", "resources")


def main(endpoint: str) -> None:
    CONF([], project="nova", default_config_files=[], default_config_dirs=[])
    # Nova's database has no other nova-compute, and no instance.
    ironic_driver.servicegroup.API = lambda: None
    objects.ServiceList.get_all_computes_by_hv_type = lambda *_: []
    objects.InstanceList.get_uuids_by_host = lambda *_: []
    CONF.set_override("auth_type", "none", group="ironic")
    CONF.set_override("endpoint_override", endpoint, group="ironic")
    CONF.set_override("api_retry_interval", 0.1, group="ironic")
    objects.register_all()
    request = json.load(sys.stdin)
    compute = Compute(request["instance"])
    results: list[dict[str, Any]] = []
    for action in request["actions"]:
        if action not in ACTIONS:
            raise ValueError(f"no such action: {action}")
        try:
            results.append({"result": getattr(compute, action)()})
        except (exception.NovaException, sdk_exceptions.SDKException) as exc:
            results.append({"error": type(exc).__name__, "text": str(exc)})
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
