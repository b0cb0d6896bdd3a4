"""Every route, with a request that fits what the fixture ``stocked`` has stored."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from ironic_rules.api.routes import walk_routes
from ironic_rules.api.v1 import RootController

NODE = "44444444-4444-4444-8444-444444444444"
PORT = "55555555-5555-4555-8555-555555555555"
PORTGROUP = "66666666-6666-4666-8666-666666666666"
RULE = "77777777-7777-4777-8777-777777777777"
CHASSIS = "99999999-9999-4999-8999-999999999999"
ALLOCATION = "cccccccc-cccc-4ccc-8ccc-cccccccccccc"
RUNBOOK = "dddddddd-dddd-4ddd-8ddd-dddddddddddd"
CONNECTOR = "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa"
TARGET = "bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb"
TEMPLATE = "88888888-8888-4888-8888-888888888888"
#: The fixture stores one rule, which makes this revision.
REVISION = "1"
MAC = "52:54:00:aa:00:01"
FLAVOR = "flavor-1"
EXTRA_SPEC = "resources:CUSTOM_GOLD"

_IDENTS = {"node": NODE, "ident": NODE, "port": PORT, "portgroup": PORTGROUP, "uuid": RULE, "template": TEMPLATE,
           "chassis": CHASSIS, "allocation": ALLOCATION, "runbook": RUNBOOK, "connector": CONNECTOR, "target": TARGET,
           "trait": "CUSTOM_A", "vif": "vif-1", "event": NODE, "inspection": NODE, "entry": NODE,
           "hostname": "conductor-1", "driver": "fake-hardware", "revision": REVISION, "flavor": FLAVOR,
           "key": EXTRA_SPEC, "indicator": "led@system", "setting": "BootMode", "method": "send_raw",
           "name": "hw:cpu_policy", "address": MAC}
STEP = {"interface": "bios", "step": "apply_configuration", "args": {"settings": []}, "priority": 150}
RUNBOOK_STEP = {"interface": "deploy", "step": "erase_devices", "args": {}, "order": 1}
_PATCH = [{"op": "add", "path": "/extra/a", "value": 1}]
_LEGACY_RULE = {"conditions": [], "actions": [{"action": "set-attribute", "path": "/extra/a", "value": 1}]}
_BODIES: dict[tuple[str, str], Any] = {
    ("POST", "/v1/nodes"): {"driver": "fake-hardware"},
    ("PATCH", "/v1/nodes/{node}"): _PATCH,
    ("POST", "/v1/chassis"): {"description": "x"},
    ("PATCH", "/v1/chassis/{chassis}"): _PATCH,
    ("POST", "/v1/volume/connectors"): {"node_uuid": NODE, "type": "iqn", "connector_id": "x"},
    ("PATCH", "/v1/volume/connectors/{connector}"): _PATCH,
    ("POST", "/v1/volume/targets"): {"node_uuid": NODE, "volume_type": "iscsi", "boot_index": 1, "volume_id": "x"},
    ("PATCH", "/v1/volume/targets/{target}"): _PATCH,
    ("POST", "/v1/runbooks"): {"name": "CUSTOM_C", "steps": [RUNBOOK_STEP]},
    ("PATCH", "/v1/runbooks/{runbook}"): _PATCH,
    ("PUT", "/v1/runbooks/{ident}/traits"): {"traits": ["CUSTOM_B"]},
    ("POST", "/v1/allocations"): {"resource_class": "gold"},
    ("PATCH", "/v1/allocations/{allocation}"): _PATCH,
    ("POST", "/v1/ports"): {"address": "52:54:00:aa:00:09", "node_uuid": NODE},
    ("PATCH", "/v1/ports/{port}"): _PATCH,
    ("POST", "/v1/portgroups"): {"node_uuid": NODE},
    ("PATCH", "/v1/portgroups/{portgroup}"): _PATCH,
    ("POST", "/v1/inspection_rules"): {"actions": [{"op": "log", "args": {"msg": "x"}}]},
    ("PUT", "/v1/inspection_rules"): {"rules": [{"actions": [{"op": "log", "args": {"msg": "x"}}]}], "prune": True},
    ("POST", "/v1/inspection_rules/dry_run"): {
        "node": NODE, "report": {"inventory": {"interfaces": [{"mac_address": MAC}]}}},
    ("POST", "/v1/rules"): _LEGACY_RULE,
    ("PUT", "/v1/rules/{uuid}"): _LEGACY_RULE,
    ("PATCH", "/v1/inspection_rules/{uuid}"): [{"op": "add", "path": "/priority", "value": 1}],
    **{("POST", f"/v1/deploy{mark}templates"): {"name": "CUSTOM_B", "steps": [STEP]} for mark in "-_"},
    **{("PATCH", f"/v1/deploy{mark}templates/{{template}}"): _PATCH for mark in "-_"},
    ("POST", "/v1/heartbeat/{node}"): {"callback_url": "http://192.0.2.5:9999", "agent_token": "x"},
    ("POST", "/v1/continue_inspection"): {"inventory": {"interfaces": [{"mac_address": MAC}]}},
    ("PUT", "/v1/nodes/{ident}/states/provision"): {"target": "abort"},
    ("PUT", "/v1/nodes/{ident}/states/power"): {"target": "power on"},
    ("PUT", "/v1/nodes/{ident}/states/boot_mode"): {"target": "uefi"},
    ("PUT", "/v1/nodes/{ident}/states/secure_boot"): {"target": True},
    **{(method, f"/v1/{of}/{{ident}}/vendor_passthru/{{method}}"): {"raw_bytes": "0x00"} for of in ("nodes", "drivers")
       for method in ("POST", "PUT", "PATCH", "DELETE")},
    ("PUT", "/v1/nodes/{ident}/states/raid"): {"logical_disks": [{"size_gb": 10, "raid_level": "1"}]},
    ("PUT", "/v1/nodes/{ident}/states/console"): {"enabled": True},
    ("POST", "/v1/nodes/{ident}/vmedia"): {"device_type": "cdrom", "image_url": "http://192.0.2.1/a.iso"},
    ("PUT", "/v1/nodes/{ident}/management/indicators/{indicator}"): {"state": "ON"},
    ("PUT", "/v1/nodes/{ident}/management/boot_device"): {"boot_device": "pxe"},
    ("PUT", "/v1/nodes/{ident}/maintenance"): {"reason": "x"},
    ("PUT", "/v1/nodes/{ident}/traits"): {"traits": ["CUSTOM_B"]},
    ("POST", "/v1/nodes/{ident}/vifs"): {"id": "vif-2"},
    ("POST", "/v1/extra_specs/validate"): {"extra_specs": {EXTRA_SPEC: "1"}},
    **{(method, path + below): body for path in ("/v1/flavors", "/compute/v2.1/flavors") for method, below, body in (
        ("POST", "", {"flavor": {"name": "new", "ram": 1, "vcpus": 1, "disk": 1}}),
        ("PUT", "/{flavor}", {"flavor": {"description": "x"}}),
        ("POST", "/{ident}/os-extra_specs", {"extra_specs": {EXTRA_SPEC: "1"}}),
        ("PUT", "/{ident}/os-extra_specs/{key}", {EXTRA_SPEC: "1"}))},
}


class Known(NamedTuple):
    """A route: its method, its path as a pattern, its path here, and the body that it takes (None: none)."""

    method: str
    pattern: str
    path: str
    body: Any

    def __str__(self) -> str:
        return f"{self.method} {self.pattern}"

    def path_with(self, place: int, ident: str) -> str:
        """Return the path with another identifier at ``place``, counted from 0."""
        parts = re.split(r"\{\w+\}", self.pattern)
        idents = [ident if number == place else given for number, given in enumerate(_idents(self.pattern))]
        return parts[0] + "".join(given + rest for given, rest in zip(idents, parts[1:], strict=True))


def _idents(pattern: str) -> list[str]:
    # Legacy rules and operations have the UUID of the inspection rule.
    of_item = {"/v1/portgroups": PORTGROUP, "/v1/chassis": CHASSIS, "/v1/runbooks": RUNBOOK,
               "/v1/drivers": "fake-hardware", "/v1/deploy-templates": TEMPLATE,
               "/v1/inspection_rules/revisions": REVISION,
               "/v1/flavors": FLAVOR, "/compute/v2.1/flavors": FLAVOR,
               "/v1/deploy_templates": TEMPLATE, "/v1/inspection_rules": RULE}.get(pattern.partition("/{")[0], NODE)
    return [of_item if name == "ident" else _IDENTS[name] for name in re.findall(r"\{(\w+)\}", pattern)]


def _known(method: str, pattern: str) -> Known:
    unfilled = Known(method, pattern, "", _BODIES.get((method, pattern)))
    return unfilled._replace(path=unfilled.path_with(-1, ""))


#: The walk yields a route with an optional argument only once, with the argument.
_WITHOUT_TRAIT = [(method, f"/v1/{name}/{{ident}}/traits") for name in ("nodes", "runbooks")
                  for method in ("PUT", "DELETE")]
ROUTES = [_known(method, pattern) for method, pattern in (
    *((route.method, route.path) for route in walk_routes(RootController())), *_WITHOUT_TRAIT)]
WRITING = [route for route in ROUTES if route.method != "GET"]
TAKING_A_BODY = [route for route in WRITING if route.body is not None]
WITH_IDENTS = [(route, place) for route in ROUTES for place in range(route.pattern.count("{"))]
