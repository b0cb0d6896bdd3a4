"""Schemas of the replies: JSON schemas by route, as the description of the API in OpenAPI contains them.

Fields of resources come from the tables of ``models``. No field is required where a request may name the ``fields``
that it wants, or where a version of the API has fewer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ironic_rules.models.documents import JSONObject
from ironic_rules.models.facts import FACT
from ironic_rules.models.fields import Field, Fields, Type
from ironic_rules.models.nodes import INTERFACES, NODE, SUB_RESOURCES
from ironic_rules.models.ports import PORT, PORT_GROUP
from ironic_rules.models.resources import (
    ALLOCATION,
    CHASSIS,
    OPERATION,
    RUNBOOK,
    VOLUME_CONNECTOR,
    VOLUME_TARGET,
)
from ironic_rules.models.rules import LEGACY_RULE, RULE
from ironic_rules.models.steps import DEPLOY_TEMPLATE
from ironic_rules.models.webhooks import WEBHOOK

ANY: Final[JSONObject] = {}
TEXT: Final[JSONObject] = {"type": "string"}
TEXT_OR_NULL: Final[JSONObject] = {"type": ["string", "null"]}
INTEGER: Final[JSONObject] = {"type": "integer"}
NUMBER: Final[JSONObject] = {"type": "number"}
BOOLEAN: Final[JSONObject] = {"type": "boolean"}
OBJECT: Final[JSONObject] = {"type": "object"}
_TYPES = {Type.STRING: "string", Type.TIME: "string", Type.INTEGER: "integer", Type.BOOLEAN: "boolean",
          Type.OBJECT: "object", Type.LIST: "array"}


def record(required: Iterable[str] = (), /, **fields: JSONObject) -> JSONObject:
    """Return the schema of an object with these fields and no others."""
    return {"type": "object", "properties": fields, "required": list(required), "additionalProperties": False}


def whole(**fields: JSONObject) -> JSONObject:
    """Return the schema of an object that always has all of these fields."""
    return record(fields, **fields)


def array(of: JSONObject) -> JSONObject:
    """Return the schema of a list."""
    return {"type": "array", "items": of}


def _ref(name: str) -> JSONObject:
    return {"$ref": f"#/components/schemas/{name}"}


LINKS: Final = array(record(("href", "rel"), href=TEXT, rel=TEXT, type=TEXT))
TEXTS: Final = array(TEXT)


def _field(entry: Field) -> JSONObject:
    if entry.type is Type.ANY:
        return ANY
    kind = _TYPES[entry.type]
    return {"type": [kind, "null"] if entry.nullable else kind}


def resource(table: Fields, **replaced: JSONObject) -> JSONObject:
    """Return the schema of a resource, from the table of its fields; ``others`` are those that its rows do not have."""
    shown = {name: _field(entry) for name, entry in table.items() if entry.shown}
    computed = dict.fromkeys(table.shown - shown.keys(), LINKS)
    return record(**{**shown, **computed, **replaced})


def page(name: str, of: JSONObject, **fields: JSONObject) -> JSONObject:
    """Return the schema of a page of a list; ``next`` is the URL of the following page."""
    return record((name,), **{name: array(of)}, next=TEXT, **fields)


_WARNINGS = array(record(("pointer", "text"), pointer=TEXT, text=TEXT, nearest=TEXT_OR_NULL, kind=TEXT))
_STEP = record(("interface", "step"), interface=TEXT, step=TEXT, args=ANY, priority=INTEGER, source=TEXT, order=INTEGER)
_FLAVOR = {
    "OS-FLV-DISABLED:disabled": BOOLEAN, "OS-FLV-EXT-DATA:ephemeral": INTEGER, "id": TEXT, "links": LINKS, "name": TEXT,
    "description": TEXT_OR_NULL, "disk": INTEGER, "extra_specs": OBJECT, "os-flavor-access:is_public": BOOLEAN,
    "ram": INTEGER, "rxtx_factor": NUMBER, "swap": {"type": ["integer", "string"]}, "vcpus": INTEGER}
_STATISTICS = record(
    (), uuid=TEXT, name=TEXT_OR_NULL, links=LINKS, built_in=BOOLEAN, enabled=BOOLEAN, sensitive=BOOLEAN, phase=TEXT,
    considered=INTEGER, evaluated=INTEGER, matched=INTEGER, failed=INTEGER, nodes_changed=INTEGER,
    last_matched_at=TEXT_OR_NULL, last_node=TEXT_OR_NULL)
_CHANGED_RULE = record(("name", "uuid"), name=TEXT_OR_NULL, uuid=TEXT_OR_NULL, description=TEXT_OR_NULL,
                       pointer=TEXT_OR_NULL, patch=array(OBJECT))
_RULE_SET = record(
    (), bundle=TEXT_OR_NULL, dry_run=BOOLEAN, revision=INTEGER, warnings=_WARNINGS,
    **{name: array(_CHANGED_RULE) for name in ("changed", "created", "removed", "replaced", "unchanged")})
_TERM = whole(name=TEXT, text=TEXT, example=TEXT, arguments=array(
    whole(name=TEXT, text=TEXT, required=BOOLEAN, is_list=BOOLEAN, values={"type": ["array", "null"]})))
_VERSION = record(("id", "links", "status"), id=TEXT, links=LINKS, status=TEXT, min_version=TEXT, version=TEXT,
                  updated=TEXT, **{"media-types": array(OBJECT)})
_INVENTORY_VERSION = record((), version=INTEGER, status=TEXT, created_at=TEXT, updated_at=TEXT_OR_NULL,
                            request_id=TEXT_OR_NULL)

#: The schemas that several replies refer to, by name.
SCHEMAS: Final[dict[str, JSONObject]] = {
    "Allocation": resource(ALLOCATION),
    "Chassis": resource(CHASSIS),
    "Conductor": record((), hostname=TEXT, conductor_group=TEXT, alive=BOOLEAN, drivers=TEXTS, links=LINKS,
                        created_at=TEXT, updated_at=TEXT_OR_NULL),
    "DeployTemplate": resource(DEPLOY_TEMPLATE, steps=array(_STEP), warnings=_WARNINGS),
    "Driver": record(
        ("name",), name=TEXT, type=TEXT, hosts=TEXTS, links=LINKS, properties=LINKS,
        **{f"default_{kind}_interface": TEXT_OR_NULL for kind in INTERFACES},
        **{f"enabled_{kind}_interfaces": {"type": ["array", "null"]} for kind in INTERFACES}),
    "Error": record(("error_message",), error_message={"type": "string", "description": (
        "JSON text: faultcode (Client or Server), faultstring, debuginfo, message_id; for input with problems at "
        "several places problems, a list of objects with pointer and text")}, error=whole(message=TEXT)),
    "NovaError": {"type": "object", "description": "one member, e.g. itemNotFound, with code and message",
                  "additionalProperties": whole(code=INTEGER, message=TEXT), "minProperties": 1, "maxProperties": 1},
    "ExtraSpec": record(
        ("name",), name=TEXT, namespace=TEXT_OR_NULL, description=TEXT, status=TEXT, value=OBJECT,
        parameters=array(OBJECT), drivers=TEXTS, requires=TEXTS, see_also=TEXT_OR_NULL, origin=TEXT_OR_NULL,
        advice=TEXT_OR_NULL, removed=TEXT_OR_NULL, replaced_by=TEXT_OR_NULL),
    "DeadLetter": record(
        ("event", "type"), event=TEXT, type=TEXT, subject=TEXT, level=TEXT, created_at=TEXT, attempts=INTEGER,
        error=TEXT_OR_NULL, content=TEXT),
    "Webhook": resource(WEBHOOK, secret=TEXT),
    "Fact": resource(FACT, problems={"type": ["array", "integer"]}, value=ANY, operation=TEXT_OR_NULL),
    "FactValues": whole(
        fact=TEXT, type=TEXT_OR_NULL, unit=TEXT_OR_NULL, is_list=BOOLEAN, nodes=INTEGER, absent=INTEGER,
        values=array(whole(value=ANY, nodes=INTEGER)), others={"type": ["integer", "null"]}, ranges=array(OBJECT)),
    "Flavor": record((), **_FLAVOR),
    "HistoryEntry": record(
        ("links",), uuid=TEXT, created_at=TEXT, severity=TEXT_OR_NULL, event=TEXT_OR_NULL, event_type=TEXT_OR_NULL,
        conductor=TEXT_OR_NULL, user=TEXT_OR_NULL, request_id=TEXT_OR_NULL, inspection=TEXT, links=LINKS),
    "Inspection": record(
        ("links",), uuid=TEXT, created_at=TEXT, started_at=TEXT_OR_NULL, kind=TEXT, outcome=TEXT, user=TEXT_OR_NULL,
        source=TEXT_OR_NULL, conductor=TEXT_OR_NULL, request_id=TEXT_OR_NULL,
        inventory_id={"type": ["integer", "null"]}, seconds={"type": ["object", "null"]},
        rules={"type": ["array", "null"]}, messages={"type": ["array", "null"]}, failure=ANY, links=LINKS),
    "InspectionRule": resource(RULE, valid=BOOLEAN, problems={"type": ["array", "null"]}, warnings=_WARNINGS,
                               actions={"type": ["array", "null"]}, conditions={"type": ["array", "null"]}),
    "JournalEntry": record(
        ("links",), uuid=TEXT, created_at=TEXT, seen_at=TEXT, times=INTEGER, reason=TEXT, detail=TEXT_OR_NULL,
        source=TEXT_OR_NULL, node_uuid=TEXT_OR_NULL, macs=TEXTS, bmc_addresses=TEXTS, nodes=array(OBJECT),
        report=ANY, links=LINKS),
    "LegacyRule": resource(LEGACY_RULE),
    "Node": resource(NODE, provision_state=TEXT_OR_NULL, traits=TEXTS, conductor=TEXT_OR_NULL, facts=OBJECT,
                     **dict.fromkeys(SUB_RESOURCES, LINKS)),
    # Below 1.2 the state of an available node is null.
    "NodeStates": record((), **{name: _field(NODE[name]) for name in NODE.where(lambda entry: entry.state)} | {
        "provision_state": TEXT_OR_NULL}),
    "Operation": resource(
        OPERATION, errors=array(OBJECT),
        progress=whole(total=INTEGER, done=INTEGER, changed=INTEGER, failed=INTEGER, left=INTEGER)),
    "Port": resource(PORT),
    "PortGroup": resource(PORT_GROUP),
    "Runbook": resource(RUNBOOK, steps=array(_STEP)),
    "Statistics": _STATISTICS,
    "VolumeConnector": resource(VOLUME_CONNECTOR),
    "VolumeTarget": resource(VOLUME_TARGET),
}
_TRAITS = whole(traits=TEXTS)
_CONNECTORS, _TARGETS = page("connectors", _ref("VolumeConnector")), page("targets", _ref("VolumeTarget"))
_FLAVORS, _SPECS = page("flavors", _ref("Flavor"), flavors_links=LINKS), record(
    ("extra_specs",), extra_specs=OBJECT, warnings=_WARNINGS)
_ONE_FLAVOR = whole(flavor=_ref("Flavor"))


def _collection(path: str, name: str, item: str) -> dict[str, JSONObject]:
    """Return the replies of a collection and of its items."""
    item_path = f"{path}/{{}}"
    return {f"GET {path}": page(name, _ref(item)), f"GET {item_path}": _ref(item), f"POST {path}": _ref(item),
            f"PATCH {item_path}": _ref(item)}


def _flavors(path: str) -> dict[str, JSONObject]:
    """Return the replies about flavors under one of their two addresses."""
    specs = f"{path}/{{}}/os-extra_specs"
    return {f"GET {path}": _FLAVORS, f"GET {path}/detail": _FLAVORS, f"POST {path}": _ONE_FLAVOR,
            f"GET {path}/{{}}": _ONE_FLAVOR, f"PUT {path}/{{}}": _ONE_FLAVOR, f"GET {specs}": _SPECS,
            f"POST {specs}": _SPECS, f"GET {specs}/{{}}": OBJECT, f"PUT {specs}/{{}}": OBJECT}


#: Method and path, with ``{}`` for each ident -> schema of the reply. A route that is missing here has no body.
REPLIES: Final[dict[str, JSONObject]] = {
    "GET /": whole(name=TEXT, description=TEXT, default_version=_VERSION, versions=array(_VERSION)),
    "GET /v1": {"type": "object", "additionalProperties": LINKS, "properties": {
        "id": TEXT, "links": LINKS, "media_types": OBJECT, "version": _VERSION}},
    **dict.fromkeys(("GET /v1/openapi.json", "GET /healthcheck"), OBJECT), "GET /metrics": TEXT,
    "GET /healthcheck/live": whole(status=TEXT), "GET /compute": whole(versions=array(_VERSION)),
    "GET /compute/v2.1": whole(version=_VERSION), **_flavors("/v1/flavors"), **_flavors("/compute/v2.1/flavors"),
    **_collection("/v1/allocations", "allocations", "Allocation"),
    **_collection("/v1/chassis", "chassis", "Chassis"),
    **_collection("/v1/nodes", "nodes", "Node"),
    **_collection("/v1/ports", "ports", "Port"),
    **_collection("/v1/portgroups", "portgroups", "PortGroup"),
    **_collection("/v1/runbooks", "runbooks", "Runbook"),
    **_collection("/v1/deploy-templates", "deploy-templates", "DeployTemplate"),
    **_collection("/v1/deploy_templates", "deploy_templates", "DeployTemplate"),
    **_collection("/v1/volume/connectors", "connectors", "VolumeConnector"),
    **_collection("/v1/volume/targets", "targets", "VolumeTarget"),
    **_collection("/v1/inspection_rules", "inspection_rules", "InspectionRule"),
    "GET /v1/rules": page("rules", _ref("LegacyRule")), "GET /v1/rules/{}": _ref("LegacyRule"),
    "GET /v1/chassis/detail": page("chassis", _ref("Chassis")),
    **{f"GET /v1/chassis/{{}}/nodes{detail}": page("nodes", _ref("Node")) for detail in ("", "/detail")},
    "GET /v1/nodes/detail": page("nodes", _ref("Node")), "GET /v1/ports/detail": page("ports", _ref("Port")),
    "GET /v1/portgroups/detail": page("portgroups", _ref("PortGroup")),
    **{f"GET /v1/{of}/{{}}/ports{detail}": page("ports", _ref("Port"))
       for of in ("nodes", "portgroups") for detail in ("", "/detail")},
    **{f"GET /v1/nodes/{{}}/portgroups{detail}": page("portgroups", _ref("PortGroup")) for detail in ("", "/detail")},
    "POST /v1/nodes/search": page("nodes", _ref("Node")), "GET /v1/search": whole(q=TEXT, results=array(OBJECT)),
    "GET /v1/nodes/{}/facts": whole(facts=OBJECT, problems=OBJECT),
    **_collection("/v1/webhooks", "webhooks", "Webhook"),
    "POST /v1/webhooks/{}/redeliver": whole(events=INTEGER),
    "GET /v1/webhooks/{}/dead_letters": page("dead_letters", _ref("DeadLetter")),
    "GET /v1/webhooks/{}/dead_letters/{}": _ref("DeadLetter"),
    **_collection("/v1/facts", "facts", "Fact"), "PUT /v1/facts": OBJECT,
    "GET /v1/facts/values": OBJECT, "GET /v1/facts/{}/values": _ref("FactValues"),
    "GET /v1/facts/vocabulary": whole(names=array(OBJECT), operators=array(OBJECT), words=TEXTS),
    "GET /v1/fact_changes": page("fact_changes", OBJECT), "POST /v1/inspection_rules/conditions": OBJECT,
    "GET /v1/shards": whole(shards=array(whole(name=TEXT_OR_NULL, count=INTEGER))),
    "GET /v1/node_states": whole(node_states=array(whole(provision_state=TEXT, count=INTEGER))),
    "GET /v1/node_failures": whole(groups=INTEGER, node_failures=array(
        record((), failure=TEXT, reason=TEXT, provision_state=TEXT, count=INTEGER, rule=TEXT_OR_NULL, hook=TEXT_OR_NULL,
               name=TEXT_OR_NULL))),
    "GET /v1/inspection_outcomes": whole(inspection_outcomes=array(OBJECT)),
    "GET /v1/runbooks/{}/traits": _TRAITS, "GET /v1/nodes/{}/traits": _TRAITS,
    "GET /v1/nodes/{}/trait_origins": whole(trait_origins=array(
        whole(trait=TEXT, rule=ANY, inspection=TEXT_OR_NULL, given_at=TEXT_OR_NULL))),
    "POST /v1/nodes/reapply": _ref("Operation"), "POST /v1/nodes/{}/inventory/reapply": OBJECT,
    "GET /v1/nodes/{}/allocation": _ref("Allocation"),
    "GET /v1/nodes/{}/bios": page("bios", OBJECT), "GET /v1/nodes/{}/bios/{}": OBJECT,
    "GET /v1/nodes/{}/firmware": page("firmware", OBJECT),
    "GET /v1/nodes/{}/clean_steps": whole(automated_clean=BOOLEAN, clean_steps=array(_STEP), complete=BOOLEAN,
                                          problems=TEXTS),
    "GET /v1/nodes/{}/deploy_steps": whole(complete=BOOLEAN, deploy_steps=array(_STEP), deploy_templates=TEXTS,
                                           problems=TEXTS, warnings=_WARNINGS),
    "GET /v1/nodes/{}/history": page("history", _ref("HistoryEntry")),
    "GET /v1/nodes/{}/history/{}": _ref("HistoryEntry"),
    "GET /v1/nodes/{}/inspection_journal": page("inspection_journal", _ref("JournalEntry")),
    "GET /v1/inspection_journal": page("inspection_journal", _ref("JournalEntry")),
    "GET /v1/inspection_journal/{}": _ref("JournalEntry"), "POST /v1/inspection_journal/{}/enroll": _ref("Node"),
    "GET /v1/shared_macs": page("shared_macs", OBJECT),
    "GET /v1/nodes/{}/inspections": page("inspections", _ref("Inspection")),
    "GET /v1/nodes/{}/inspections/{}": _ref("Inspection"),
    "GET /v1/nodes/{}/inventory": record(("inventory", "plugin_data"), inventory=OBJECT, plugin_data=OBJECT,
                                         status=TEXT, warnings=array(OBJECT)),
    "GET /v1/nodes/{}/inventory/versions": page("versions", _INVENTORY_VERSION),
    "GET /v1/nodes/{}/inventory/diff": {"type": "object", "required": ["from", "to"], "properties": {
        "from": _INVENTORY_VERSION, "to": _INVENTORY_VERSION}},
    "GET /v1/nodes/{}/legacy_values": page("legacy_values", OBJECT),
    "GET /v1/nodes/{}/management/boot_device": record((), boot_device=TEXT_OR_NULL,
                                                      persistent={"type": ["boolean", "null"]}),
    "GET /v1/nodes/{}/management/boot_device/supported": whole(supported_boot_devices=TEXTS),
    "GET /v1/nodes/{}/management/indicators": whole(indicators=array(OBJECT)),
    "GET /v1/nodes/{}/management/indicators/{}": whole(state=TEXT_OR_NULL),
    "GET /v1/nodes/{}/states": _ref("NodeStates"),
    "GET /v1/nodes/{}/states/console": whole(console_enabled=BOOLEAN, console_info={"type": ["object", "null"]}),
    "GET /v1/nodes/{}/validate": {"type": "object", "additionalProperties": record(
        ("result",), result={"type": ["boolean", "null"]}, reason=TEXT, warnings=_WARNINGS)},
    "GET /v1/nodes/{}/vifs": whole(vifs=array(whole(id=TEXT))),
    "GET /v1/nodes/{}/vmedia": array(OBJECT),
    "GET /v1/nodes/{}/vendor_passthru/methods": OBJECT,
    "GET /v1/drivers/{}/vendor_passthru/methods": OBJECT,
    **{f"{method} /v1/{of}/{{}}/vendor_passthru{name}": ANY for of in ("nodes", "drivers") for name in ("", "/{}")
       for method in ("GET", "POST", "PUT", "PATCH", "DELETE")},
    "GET /v1/nodes/{}/volume": whole(connectors=LINKS, links=LINKS, targets=LINKS),
    "GET /v1/volume": whole(connectors=LINKS, links=LINKS, targets=LINKS),
    "GET /v1/nodes/{}/volume/connectors": _CONNECTORS, "GET /v1/nodes/{}/volume/targets": _TARGETS,
    "GET /v1/drivers": page("drivers", _ref("Driver")), "GET /v1/drivers/{}": _ref("Driver"),
    "GET /v1/drivers/{}/properties": {"type": "object", "additionalProperties": TEXT},
    "GET /v1/drivers/{}/raid/logical_disk_properties": {"type": "object", "additionalProperties": TEXT},
    "GET /v1/conductors": page("conductors", _ref("Conductor")), "GET /v1/conductors/{}": _ref("Conductor"),
    **{f"GET /v1/deploy{mark}templates/{{}}/nodes": page("nodes", OBJECT) for mark in "-_"},
    "PUT /v1/inspection_rules": _RULE_SET, "POST /v1/inspection_rules/revisions/{}/rollback": _RULE_SET,
    "GET /v1/inspection_rules/revisions": page("revisions", record(
        ("revision",), revision=INTEGER, created_at=TEXT, summary=TEXT, user=TEXT_OR_NULL, links=LINKS)),
    "GET /v1/inspection_rules/revisions/{}": whole(
        revision=INTEGER, created_at=TEXT, summary=TEXT, user=TEXT_OR_NULL, links=LINKS,
        rules=array(_ref("InspectionRule"))),
    "POST /v1/inspection_rules/dry_run": OBJECT, "GET /v1/flavors/{}/explanation": OBJECT,
    "POST /v1/inspection_rules/matches": whole(
        rule=TEXT, total={"type": ["integer", "null"]}, marker=TEXT_OR_NULL,
        nodes=array(whole(uuid=TEXT, name=TEXT_OR_NULL, verdict=TEXT, reason=TEXT_OR_NULL))),
    "GET /v1/inspection_rules/statistics": page("statistics", _ref("Statistics")),
    "GET /v1/inspection_rules/{}/statistics": _ref("Statistics"),
    "GET /v1/inspection_rules/vocabulary": whole(
        actions=array(_TERM), operators=array(_TERM), conversions=array(whole(name=TEXT, text=TEXT, example=TEXT)),
        fields=TEXTS, multiple=TEXTS, paths=TEXTS, phases=TEXTS, roots=TEXTS),
    "GET /v1/inspection_rules/samples": whole(samples=array(whole(name=TEXT, report=OBJECT))),
    "GET /v1/inspection_rules/conflicts": page("conflicts", OBJECT),
    "GET /v1/lookup": whole(config=OBJECT, node=OBJECT),
    "POST /v1/continue_inspection": record((), uuid=TEXT, config=OBJECT, node=OBJECT),
    "PUT /v1/rules/{}": _ref("LegacyRule"), "POST /v1/rules": OBJECT,
    "DELETE /v1/rules": _ref("Operation"), "DELETE /v1/rules/{}": _ref("Operation"),
    "POST /v1/operations": OBJECT,
    "GET /v1/operations": page("operations", _ref("Operation")), "GET /v1/operations/{}": _ref("Operation"),
    "GET /v1/operations/{}/nodes": page("nodes", OBJECT), "GET /v1/operations/{}/groups": whole(groups=array(OBJECT)),
    "GET /v1/extra_specs": page("extra_specs", _ref("ExtraSpec"), plugin_warnings=array(ANY)),
    "GET /v1/extra_specs/{}": _ref("ExtraSpec"),
    "POST /v1/extra_specs/validate": whole(valid=BOOLEAN, problems=array(OBJECT), warnings=array(OBJECT)),
    "GET /v1/image_properties": page("image_properties", OBJECT, plugin_warnings=array(ANY)),
}
#: Media types of replies that are no JSON.
MEDIA_TYPES: Final = {"GET /metrics": "text/plain"}
#: Replies to requests that failed but are not errors: the same key, and the status.
FAILURES: Final = {("GET /healthcheck", 503): OBJECT}
