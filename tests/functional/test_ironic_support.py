"""Nothing is accepted in silence: every field, setting and verb of the API on each hardware type, over HTTP.

What each of them does is in ``doc/source/admin/ironic-support.yaml``, of which the documentation has a page.
"""

from __future__ import annotations

import json

import pytest

from ironic_rules.exceptions import BMCError
from ironic_rules.hardware.ipmi.interfaces import IPMIHardware
from ironic_rules.hardware.ipmi.tool import IPMIInterface
from ironic_rules.hardware.redfish.driver_info import RedfishHardware
from ironic_rules.models import secrets, states
from ironic_rules.models.nodes import NODE
from ironic_rules.models.ports import PORT, PORT_GROUP
from tests.functional.hardware.bmcs import web_server
from tests.functional.whole import fault, running
from tests.unit.doc_extensions import extension

SUPPORT = extension("ironic_support")
TABLES = dict(SUPPORT.tables())
TYPES = SUPPORT.TYPES
#: No BMC answers there.
DRIVER_INFO = {"fake-hardware": {}, "ipmi": {"ipmi_address": "127.0.0.1", "ipmi_port": 1},
               "redfish": {"redfish_address": "http://127.0.0.1:1"}}
CONFIG = """\
[DEFAULT]
enabled_bios_interfaces = fake,redfish,no-bios
enabled_inspect_interfaces = agent,redfish,no-inspect
enabled_management_interfaces = fake,noop,ipmitool,redfish
enabled_power_interfaces = fake,ipmitool,redfish
enabled_raid_interfaces = fake,redfish,no-raid
[redfish]
connection_attempts = 1
[ipmi]
command_retry_timeout = 1
min_command_interval = 0
[deploy]
image_url_denied_networks =
"""
IN_NODES = ("node", "driver_info", "instance_info", "properties")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("support")
    (folder / "system.raw").write_bytes(b"an image")
    types = {"redfish": RedfishHardware, "ipmi": IPMIHardware}
    with web_server(folder) as url, running(folder, CONFIG, types) as service:
        service.url = url
        yield service


def enrolled(whole, hardware_type, state="available"):
    return whole.enroll(
        state, driver=hardware_type, deploy_interface="direct", driver_info=DRIVER_INFO[hardware_type],
        instance_info={"image_source": f"{whole.url}/system.raw", "image_checksum": "d" * 64})


def example_of(entry, hardware_type):
    """Return the value to send, of which some have one for each hardware type."""
    example = entry["example"]
    return example[hardware_type] if isinstance(example, dict) and hardware_type in example else example


def sent(whole, path, place, name, value):
    """Set a field, or a setting in a field of that name; return the reply."""
    where = f"/{name}" if place in ("node", "port", "portgroup") else f"/{place}/{name}"
    op = "remove" if value is None else "add"
    return whole.app.patch_json(path, [{"op": op, "path": where, **({} if value is None else {"value": value})}])


def problem(whole, node, place, entry, expected, value):
    """Return how an entry differs from what the table says of it; None if it does not."""
    reply = sent(whole, f"/v1/nodes/{node}", place, entry["name"], value)
    if reply.status_int != (400 if expected == "refused" else 200):
        return f"{reply.status_int} {reply.text}"
    if expected == "refused":
        return None if entry["says"] in fault(reply) else reply.text
    shown = reply.json if place == "node" else reply.json[place]
    if shown.get(entry["name"]) not in (value, secrets.MASK):
        return f"shown as {shown.get(entry['name'])}"
    validated = whole.app.get(f"/v1/nodes/{node}/validate").json
    if expected != "later":
        return validated["deploy"].get("reason") if place != "node" else None
    answer = whole.ask(node, "active")
    if answer.status_int != 400 or entry["says"] not in fault(answer):
        return f"active: {answer.status_int} {answer.text}"
    return None if any(entry["says"] in kind.get("reason", "") for kind in validated.values()) else str(validated)


@pytest.mark.parametrize("hardware_type", TYPES)
def test_every_field_and_setting_of_a_node_is_done_or_refused(whole, hardware_type):
    node = enrolled(whole, hardware_type)
    fields = {"driver_info", "instance_info", "properties",
              *(entry["name"] for entry in TABLES["node"] if "example" in entry)}
    before = {name: getattr(whole.row(node), name) for name in {*fields, "provision_state"}}
    found = []
    for place in IN_NODES:
        for entry in TABLES[place]:
            if "example" in entry:
                whole.put(node, provision_state=entry.get("in", "available"))
                value, expected = example_of(entry, hardware_type), SUPPORT.outcome(entry, hardware_type)
                if text := problem(whole, node, place, entry, expected, value):
                    found.append(f"{place}/{entry['name']} = {value!r} is not {expected}: {text}")
                whole.put(node, **before)

    assert found == []
    assert whole.row(node).provision_state == "available"


@pytest.mark.parametrize("place", ["port", "portgroup"])
def test_every_field_of_a_port_is_stored(whole, place):
    node = enrolled(whole, "fake-hardware", "manageable")
    made = whole.app.post_json(f"/v1/{place}s", {"node_uuid": node, "address": "52:54:00:be:ef:77"})
    assert made.status_int == 201, made.text
    found = []
    for entry in TABLES[place]:
        if "example" in entry:
            reply = sent(whole, f"/v1/{place}s/{made.json['uuid']}", place, entry["name"], entry["example"])
            if reply.status_int != 200 or reply.json[entry["name"]] != entry["example"]:
                found.append(f"{entry['name']}: {reply.text}")

    assert found == []


@pytest.fixture
def silent_bmcs(monkeypatch):
    """Let ipmitool, which would try for seconds, have no answer at once."""
    def silent(interface, task, *command):
        raise BMCError(node=task.node.uuid, reason="no answer")

    monkeypatch.setattr(IPMIInterface, "ipmitool", silent)


@pytest.mark.usefixtures("silent_bmcs")
@pytest.mark.parametrize("hardware_type", TYPES)
def test_every_verb_is_done_or_refused(whole, hardware_type):
    found = []
    for entry in TABLES["provision"]:
        node = enrolled(whole, hardware_type, entry["from"])
        reply = whole.ask(node, entry["name"], **entry.get("arguments", {}))
        expected = SUPPORT.outcome(entry, hardware_type)
        if reply.status_int != {"done": 202, "refused": 400}[expected]:
            found.append(f"{entry['name']} is not {expected}: {reply.text}")
        elif expected == "refused" and entry["says"] not in fault(reply):
            found.append(f"{entry['name']}: {reply.text}")
        row = whole.at_rest(node)
        if expected == "refused" and row.provision_state != entry["from"]:
            found.append(f"{entry['name']} is refused, but the node is {row.provision_state}")

    assert found == []


@pytest.mark.usefixtures("silent_bmcs")
@pytest.mark.parametrize("hardware_type", TYPES)
def test_every_operation_of_a_machine_is_done_or_refused(whole, hardware_type):
    found = []
    for entry in TABLES["requests"]:
        node = enrolled(whole, hardware_type, "manageable")
        reply = whole.app.request(
            f"/v1/nodes/{node}/{entry['path']}", method=entry["method"],
            body=json.dumps(entry["body"]).encode() if "body" in entry else b"",
            headers={"Content-Type": "application/json"})
        if SUPPORT.outcome(entry, hardware_type) == "refused":
            is_right = reply.status_int in (400, 404) and entry["says"] in fault(reply)
        else:  # without a BMC the operation fails, but with the BMC's error
            is_right = reply.status_int in (202, 204) or (reply.status_int == 502 and hardware_type != "fake-hardware")
        if not is_right:
            found.append(f"{entry['name']}: {reply.status_int} {reply.text}")
        row = whole.at_rest(node)
        if row.provision_state != "manageable" or row.console_enabled != (
                entry["name"] == "states/console" and hardware_type == "fake-hardware"):
            found.append(f"{entry['name']}: {row.provision_state}, console {row.console_enabled}")

    assert found == []


#: Keys that Ironic's interfaces for these hardware types read from driver_info: ipmitool.py, redfish/utils.py,
#: redfish/boot.py, agent.py, pxe_base.py, pxe_utils.py, deploy_utils.py and network/common.py.
DRIVER_INFO_OF_IRONIC = """
    ipmi_address ipmi_bridging ipmi_cipher_suite ipmi_disable_boot_timeout ipmi_force_boot_device ipmi_hex_kg_key
    ipmi_local_address ipmi_password ipmi_port ipmi_priv_level ipmi_protocol_version ipmi_target_address
    ipmi_target_channel ipmi_terminal_port ipmi_transit_address ipmi_transit_channel ipmi_username
    redfish_address redfish_auth_type redfish_deploy_iso redfish_password redfish_rescue_iso redfish_system_id
    redfish_username redfish_verify_ca
    bootloader bootloader_by_arch config_via_floppy config_via_removable deploy_iso deploy_kernel
    deploy_kernel_by_arch deploy_ramdisk deploy_ramdisk_by_arch external_http_url force_persistent_boot_device
    kernel_append_params pxe_template rescue_iso rescue_kernel rescue_kernel_by_arch rescue_ramdisk
    rescue_ramdisk_by_arch vmedia_transport_protocol
    agent_verify_ca deploy_forces_oob_reboot fast_track image_download_source image_http_proxy image_https_proxy
    image_no_proxy cleaning_network inspection_network provisioning_network rescuing_network servicing_network
"""


def test_no_setting_of_ironics_drivers_is_missing():
    listed = {entry["name"] for entry in TABLES["driver_info"]}

    assert set(DRIVER_INFO_OF_IRONIC.split()) - listed == set()
    # Other listed keys are misspelled.
    assert listed - set(DRIVER_INFO_OF_IRONIC.split()) == {"ipmi_brigding", "redfish_systemid"}


def test_no_field_and_no_verb_is_missing():
    listed = {place: {entry["name"] for entry in entries} for place, entries in TABLES.items()}

    assert listed["node"] == set(NODE.patchable)
    assert listed["port"] == set(PORT.patchable)
    assert listed["portgroup"] == set(PORT_GROUP.patchable)
    assert listed["provision"] == set(states.VERB_VERSIONS)
    assert set(TABLES) == set(SUPPORT.PLACES)
    outcomes = {SUPPORT.outcome(entry, kind) for entries in TABLES.values() for entry in entries for kind in TYPES}
    assert outcomes <= {"done", "stored", "refused", "later", "not read"}
