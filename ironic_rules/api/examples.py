"""Examples of requests, one for each route with a body, and of the identifiers in paths.

The description of the API contains them, and tests send them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ironic_rules.models.documents import JSONObject

NODE = "44444444-4444-4444-8444-444444444444"
PORT = "55555555-5555-4555-8555-555555555555"
PORTGROUP = "66666666-6666-4666-8666-666666666666"
RULE = "77777777-7777-4777-8777-777777777777"
CHASSIS = "99999999-9999-4999-8999-999999999999"
ALLOCATION = "cccccccc-cccc-4ccc-8ccc-cccccccccccc"
RUNBOOK = "dddddddd-dddd-4ddd-8ddd-dddddddddddd"
CONNECTOR = "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa"
WEBHOOK = "eeeeeeee-eeee-4eee-8eee-eeeeeeeeeeee"
TARGET = "bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb"
TEMPLATE = "88888888-8888-4888-8888-888888888888"
REVISION = "1"
MAC = "52:54:00:aa:00:01"
FLAVOR = "flavor-1"
FACT = "rack"
EXTRA_SPEC = "resources:CUSTOM_GOLD"

STEP: Final[JSONObject] = {"interface": "bios", "step": "apply_configuration", "args": {"settings": []},
                           "priority": 150}
RUNBOOK_STEP: Final[JSONObject] = {"interface": "deploy", "step": "erase_devices", "args": {}, "order": 1}
_PATCH = [{"op": "add", "path": "/extra/a", "value": 1}]
_LEGACY_RULE = {"conditions": [], "actions": [{"action": "set-attribute", "path": "/extra/a", "value": 1}]}
#: Method and path, with ``{}`` for each ident -> body of a request that fits.
BODIES: Final[Mapping[str, object]] = {
    "POST /v1/nodes": {"driver": "fake-hardware"},
    "PATCH /v1/nodes/{}": _PATCH,
    "POST /v1/chassis": {"description": "x"},
    "PATCH /v1/chassis/{}": _PATCH,
    "POST /v1/volume/connectors": {"node_uuid": NODE, "type": "iqn", "connector_id": "x"},
    "PATCH /v1/volume/connectors/{}": _PATCH,
    "POST /v1/volume/targets": {"node_uuid": NODE, "volume_type": "iscsi", "boot_index": 1, "volume_id": "x"},
    "PATCH /v1/volume/targets/{}": _PATCH,
    "POST /v1/webhooks": {"url": "https://receiver.example.com/events", "events": ["baremetal.node.*"]},
    "PATCH /v1/webhooks/{}": [{"op": "replace", "path": "/enabled", "value": False}],
    "POST /v1/webhooks/{}/redeliver": {"events": [NODE]},
    "POST /v1/runbooks": {"name": "CUSTOM_C", "steps": [RUNBOOK_STEP]},
    "PATCH /v1/runbooks/{}": _PATCH,
    "PUT /v1/runbooks/{}/traits": {"traits": ["CUSTOM_B"]},
    "POST /v1/allocations": {"resource_class": "gold"},
    "PATCH /v1/allocations/{}": _PATCH,
    "POST /v1/ports": {"address": "52:54:00:aa:00:09", "node_uuid": NODE},
    "PATCH /v1/ports/{}": _PATCH,
    "POST /v1/portgroups": {"node_uuid": NODE},
    "PATCH /v1/portgroups/{}": _PATCH,
    "POST /v1/inspection_rules": {"actions": [{"op": "log", "args": {"msg": "x"}}]},
    "PUT /v1/inspection_rules": {"rules": [{"actions": [{"op": "log", "args": {"msg": "x"}}]}], "prune": True},
    "POST /v1/inspection_rules/dry_run": {
        "node": NODE, "report": {"inventory": {"interfaces": [{"mac_address": MAC}]}}},
    "POST /v1/inspection_rules/matches": {"rule": {"actions": [{"op": "log", "args": {"msg": "x"}}]}, "limit": 1},
    "POST /v1/inspection_rules/conditions": {"where": "maintenance = true"},
    "POST /v1/nodes/search": {"where": "maintenance = true"},
    "POST /v1/operations": {"action": "inspect", "nodes": {"provision_state": "manageable"}, "dry_run": True},
    "POST /v1/facts": {"name": "row", "value": "{inventory[hostname]}"},
    "PUT /v1/facts": {"facts": [{"name": "row", "value": "{inventory[hostname]}"}]},
    "PATCH /v1/facts/{}": [{"op": "add", "path": "/unit", "value": "x"}],
    "POST /v1/rules": _LEGACY_RULE,
    "PUT /v1/rules/{}": _LEGACY_RULE,
    "PATCH /v1/inspection_rules/{}": [{"op": "add", "path": "/priority", "value": 1}],
    **{f"POST /v1/deploy{mark}templates": {"name": "CUSTOM_B", "steps": [STEP]} for mark in "-_"},
    **{f"PATCH /v1/deploy{mark}templates/{{}}": _PATCH for mark in "-_"},
    "POST /v1/heartbeat/{}": {"callback_url": "http://192.0.2.5:9999", "agent_token": "x"},
    "POST /v1/continue_inspection": {"inventory": {"interfaces": [{"mac_address": MAC}]}},
    "PUT /v1/nodes/{}/states/provision": {"target": "abort"},
    "PUT /v1/nodes/{}/states/power": {"target": "power on"},
    "PUT /v1/nodes/{}/states/boot_mode": {"target": "uefi"},
    "PUT /v1/nodes/{}/states/secure_boot": {"target": True},
    **{f"{method} /v1/{of}/{{}}/vendor_passthru/{{}}": {"raw_bytes": "0x00"} for of in ("nodes", "drivers")
       for method in ("POST", "PUT", "PATCH", "DELETE")},
    "PUT /v1/nodes/{}/states/raid": {"logical_disks": [{"size_gb": 10, "raid_level": "1"}]},
    "PUT /v1/nodes/{}/states/console": {"enabled": True},
    "POST /v1/nodes/{}/vmedia": {"device_type": "cdrom", "image_url": "http://192.0.2.1/a.iso"},
    "PUT /v1/nodes/{}/management/indicators/{}": {"state": "ON"},
    "PUT /v1/nodes/{}/management/boot_device": {"boot_device": "pxe"},
    "PUT /v1/nodes/{}/maintenance": {"reason": "x"},
    "PUT /v1/nodes/{}/traits": {"traits": ["CUSTOM_B"]},
    "POST /v1/nodes/{}/vifs": {"id": "vif-2"},
    "POST /v1/extra_specs/validate": {"extra_specs": {EXTRA_SPEC: "1"}},
    **{f"{method} {path}{below}": body for path in ("/v1/flavors", "/compute/v2.1/flavors") for method, below, body in (
        ("POST", "", {"flavor": {"name": "new", "ram": 1, "vcpus": 1, "disk": 1}}),
        ("PUT", "/{}", {"flavor": {"description": "x"}}),
        ("POST", "/{}/os-extra_specs", {"extra_specs": {EXTRA_SPEC: "1"}}),
        ("PUT", "/{}/os-extra_specs/{}", {EXTRA_SPEC: "1"}))},
}

_BY_NAME: Final = {
    "node": NODE, "port": PORT, "portgroup": PORTGROUP, "uuid": RULE, "template": TEMPLATE, "chassis": CHASSIS,
    "allocation": ALLOCATION, "runbook": RUNBOOK, "connector": CONNECTOR, "target": TARGET, "trait": "CUSTOM_A",
    "vif": "vif-1", "event": NODE, "inspection": NODE, "entry": NODE, "hostname": "conductor-1",
    "driver": "fake-hardware", "webhook": WEBHOOK, "revision": REVISION, "flavor": FLAVOR, "fact": FACT,
    "key": EXTRA_SPEC, "indicator": "led@system",
    "setting": "BootMode", "method": "send_raw", "name": "hw:cpu_policy", "address": MAC, "operation": RULE,
    "rule": RULE,
}


def ident(name: str) -> str:
    """Return an example of an identifier in a path, by the name that the route gives it."""
    return _BY_NAME[name]
