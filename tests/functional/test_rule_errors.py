"""Values that a rule writes and that are refused later: the error names the rule, the action and the field."""

from __future__ import annotations

import pytest

from ironic_rules.hardware.agent.inspect import AgentInspect
from ironic_rules.inspection.hooks.machine import ArchitectureHook
from ironic_rules.models.inventories import InspectionData
from ironic_rules.rules import ACTIONS, compiler
from ironic_rules.rules.base import InspectionRuleActionBase
from ironic_rules.rules.signatures import Registry
from tests.functional.whole import running

RULES = "/v1/inspection_rules"
OTHER = {"op": "set-attribute", "args": {"path": "/extra/a", "value": {"list": [1]}}}
TAKEN = "taken"


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with running(tmp_path_factory.mktemp("errors")) as made:
        made.enroll(name=TAKEN)
        owner = made.enroll()
        reply = made.app.post_json("/v1/ports", {"node_uuid": owner, "address": "52:54:00:ff:00:01", "name": TAKEN})
        assert reply.status_int == 201, reply.text
        yield made


@pytest.fixture
def whole(service):
    yield service
    service.app.delete(RULES)


def rule(whole, *actions, **fields):
    reply = whole.app.post_json(RULES, {"actions": list(actions), **fields})
    assert reply.status_int == 201, reply.text
    return reply.json["uuid"]


def setting(path, value):
    return {"op": "set-attribute", "args": {"path": path, "value": value}}


def of_port(op, *args):
    return {"op": op, "args": ["{inventory[interfaces][0][mac_address]}", *args]}


def failing(whole, body=None):
    shown = whole.inspect(whole.enroll("manageable"), body or whole.machine()[1])
    assert shown["provision_state"] == "inspect failed"
    assert (shown["extra"], shown["driver"], shown["name"]) == ({}, "fake-hardware", None)
    return shown["last_error"]


REFUSED = [
    # Only when the rules have run: by the conductors, or by the database.
    (setting("/driver", "nosuch"), "/driver: No conductor supports the hardware type nosuch."),
    (setting("/conductor_group", "nosuch"),
     "/conductor_group: No conductor of the group nosuch supports the hardware type fake-hardware."),
    (setting("/power_interface", "nosuch"),
     "/power_interface: fake-hardware does not offer the power interface 'nosuch'. Valid: fake."),
    (setting("/name", "{inventory[hostname]}"), "/name: A node with name taken already exists."),
    (setting("{inventory[path]}", TAKEN), "/name: A node with name taken already exists."),
    ({"op": "set-attribute", "args": ["{item[key]}", "{item[value]}"], "loop": [
        {"key": "/owner", "value": "me"}, {"key": "/name", "value": TAKEN}]},
     "/name: A node with name taken already exists."),
    (of_port("set-port-attribute", "/name", "{inventory[hostname]}"), "/name: A port with name taken already exists."),
    # While the rule runs.
    (setting("/extra/a/list/3", 1), "/extra/a/list/3: the index is beyond the end of the list"),
    (setting("/extra/a/list/x", 1), "/extra/a/list/x: a list needs an index here"),
    (setting("/extra/a/list/0/b", 1), "/extra/a/list/0: neither an object nor a list"),
    ({"op": "extend-attribute", "args": ["/extra/a", 1]}, "/extra/a: not a list"),
    (of_port("extend-port-attribute", "/extra/pxe", 1), "/extra/pxe: not a list"),
    (of_port("set-port-attribute", "/extra/pxe/x", 1), "/extra/pxe: neither an object nor a list"),
    ({"op": "set-plugin-data", "args": ["site.racks.3", 1]}, "/site/racks/3: the index is beyond the end of the list"),
    ({"op": "extend-plugin-data", "args": ["/site", 1]}, "/site: not a list"),
    ({"op": "set-plugin-data", "args": ["{inventory[empty]}", 1]},
     "a path is a non-empty string, such as pci.devices or /pci/devices"),
    (setting("/{inventory[word]}", "{inventory[long]}"), "/resource_class: must be at most 80 characters"),
    (setting("/name", "{inventory[uuid]}"), "/name: must consist of letters, digits, '-', '.', '_' and '~', "
                                            "and not look like a UUID"),
    (setting("/name", "{inventory[long]}"), "/name: must be at most 255 characters"),
    (of_port("set-port-attribute", "/physical_network", "{inventory[long]}"),
     "/physical_network: must be at most 64 characters"),
]


@pytest.fixture
def body(whole):
    _, body = whole.machine()
    body["inventory"] |= {"hostname": TAKEN, "long": "x" * 256, "word": "resource_class", "path": "/name", "empty": "",
                          "uuid": "8b7ee0c6-1f5c-4c1f-8a3e-6f2d9c0a4b11"}
    return body


@pytest.mark.parametrize("sensitive", [False, True], ids=["plain", "sensitive"])
@pytest.mark.parametrize(("action", "reason"), REFUSED, ids=[reason[:40] for _, reason in REFUSED])
def test_an_error_names_the_rule_the_action_and_the_field(whole, body, action, reason, sensitive):
    rule(whole, OTHER, of_port("set-port-attribute", "/extra/pxe", 1), setting("/driver", "fake-hardware"),
         {"op": "set-plugin-data", "args": ["site.racks", []]}, priority=9)
    named = rule(whole, {"op": "set-plugin-data", "args": ["mine", 1]}, OTHER, action, sensitive=sensitive, priority=8)
    rule(whole, setting("/description", "later"), of_port("set-port-attribute", "/extra/b", 2), priority=7)

    shown = "details are withheld, the rule is sensitive" if sensitive else reason
    assert failing(whole, body) == f"Inspection failed: Inspection rule {named} failed at /actions/2: {shown} (IR-1027)"


def test_the_last_rule_and_action_that_wrote_the_field_are_named(whole, body):
    rule(whole, setting("/driver", "first"), priority=9)
    last = rule(whole, setting("/driver", "second"), setting("/extra/x", 1), setting("/driver", "third"),
                setting("/extra/y", 1), priority=8)
    rule(whole, setting("/extra/driver", "fourth"), priority=7)

    assert failing(whole, body) == (f"Inspection failed: Inspection rule {last} failed at /actions/2: "
                                    "/driver: No conductor supports the hardware type third. (IR-1027)")


def test_failures_have_one_cause_whatever_values_their_messages_have_until_another_error_comes(whole):
    named = rule(whole, {"op": "fail", "args": {"msg": "{inventory[hostname]} has {inventory[cpu][count]} CPUs"}},
                 name="enough-cpus", conditions=[{"op": "eq", "args": ["{inventory[word]}", "fail"]}])
    failed = []
    for hostname, count in (("one", 4), ("two", 8)):
        body = whole.machine()[1]
        body["inventory"] |= {"hostname": hostname, "word": "fail"}
        body["inventory"]["cpu"]["count"] = count
        node = whole.enroll("manageable")
        failed.append(node)
        error = whole.inspect(node, body)["last_error"]
        assert error == (f"Inspection failed: Inspection rule {named} (enough-cpus) failed at /actions/0: "
                         f"{hostname} has {count} CPUs (IR-1027)")

    def groups():
        return [group for group in whole.app.get("/v1/node_failures").json["node_failures"] if group["rule"] == named]

    group, = groups()
    assert (group["count"], group["name"], group["hook"], group["reason"]) == (
        2, "enough-cpus", None, "{inventory[hostname]} has {inventory[cpu][count]} CPUs")
    listed = whole.app.get(f"/v1/nodes?failure={group['failure']}").json["nodes"]
    assert [node["uuid"] for node in listed] == failed
    hour = whole.app.get("/v1/inspection_outcomes?hours=2").json["inspection_outcomes"]
    assert len(hour) == 2 and sum(each["failed"] for each in hour) >= 2
    # The cause belongs to the error: another inspection takes it away.
    body["inventory"]["word"] = "pass"
    whole.inspect(failed[0], body)
    assert [group["count"] for group in groups()] == [1]


def test_a_wrong_value_that_a_later_rule_corrects_is_no_error(whole, body):
    rule(whole, setting("/driver", "nosuch"), setting("/name", TAKEN), priority=9)
    rule(whole, setting("/driver", "faulty-hardware"), {"op": "del-attribute", "args": ["/name"]}, priority=8)

    shown = whole.inspect(whole.enroll("manageable"), body)

    assert (shown["driver"], shown["last_error"]) == ("faulty-hardware", None)


def test_of_a_driver_in_a_group_without_conductors_the_group_is_wrong(whole, body):
    group = rule(whole, setting("/conductor_group", "empty"), priority=9)
    rule(whole, setting("/driver", "faulty-hardware"), priority=8)

    assert failing(whole, body) == (
        f"Inspection failed: Inspection rule {group} failed at /actions/0: /conductor_group: "
        "No conductor of the group empty supports the hardware type faulty-hardware. (IR-1027)")


@pytest.mark.parametrize(("path", "error"), [("/driver", "DriverNotFound"), ("/name", "DuplicateNodeName")])
def test_a_value_that_a_sensitive_rule_has_made_is_not_shown(whole, body, caplog, path, error):
    rule(whole, {"op": "set-plugin-data", "args": ["made", TAKEN]}, sensitive=True, priority=9)
    named = rule(whole, setting(path, "{plugin_data[made]}"), priority=8)

    assert failing(whole, body) == (
        f"Inspection failed: Inspection rule {named} failed at /actions/0: {path}: {error}; "
        "details are withheld, a sensitive rule matched (IR-1027)")
    assert TAKEN not in caplog.text


class Careless(InspectionRuleActionBase):
    """Writes what no path of a rule could."""

    formatted_params = ["how"]

    def __call__(self, task, rule, how):
        if how == "port":
            task.add_port("52:54:00:FF:00:01")
        elif how == "object":
            task.node.extra["bad"] = object()
        else:
            task.node.owner = ["me"]


@pytest.fixture
def careless(monkeypatch):
    registry = Registry("action", ACTIONS._read)
    for operation in ACTIONS:
        registry.add(operation.name, type(operation.call))
    registry.add("careless", Careless)
    monkeypatch.setattr(compiler, "ACTIONS", registry)


@pytest.mark.parametrize(("how", "reason"), [
    ("port", "/address: A port with MAC address 52:54:00:ff:00:01 already exists."),
    ("object", "it left a value that cannot be stored: /extra/bad of the node is of type object"),
    ("list", "it left a value that cannot be stored: /owner of the node must be a string"),
])
def test_what_an_action_of_another_package_writes_is_its_rules_too(whole, careless, body, how, reason):
    rule(whole, setting("/extra/a", 1), of_port("set-port-attribute", "/extra/a", 1), priority=9)
    named = rule(whole, setting("/description", "x"), {"op": "careless", "args": [how]}, priority=8)
    rule(whole, of_port("set-port-attribute", "/extra/b", 1), priority=7)

    assert failing(whole, body) == (
        f"Inspection failed: Inspection rule {named} failed at /actions/1: {reason} (IR-1027)")


def test_what_a_hook_overwrites_is_not_the_rules(whole, body, monkeypatch):
    rule(whole, setting("/name", "good"), phase="preprocess")
    monkeypatch.setattr(ArchitectureHook, "__call__", lambda self, task, *data: setattr(task.node, "name", TAKEN))

    assert failing(whole, body) == (
        'Failed in state "inspecting": the result could not be saved: A node with name taken already exists. (IR-1019)')


def test_data_that_were_read_out_of_band_are_kept_when_a_rule_sets_an_unknown_driver(whole, body, monkeypatch):
    monkeypatch.setattr(AgentInspect, "inspect_hardware", lambda self, task: InspectionData(body["inventory"]))
    named = rule(whole, setting("/driver", "nosuch"))
    node = whole.enroll("manageable")

    shown = whole.provision(node, "inspect")

    assert (shown["provision_state"], shown["last_error"]) == (
        "inspect failed", f"Inspection failed: Inspection rule {named} failed at /actions/0: "
                          "/driver: No conductor supports the hardware type nosuch. (IR-1027)")
    stored = whole.app.get(f"/v1/nodes/{node}/inventory").json
    assert stored == {"inventory": body["inventory"], "plugin_data": {}}
