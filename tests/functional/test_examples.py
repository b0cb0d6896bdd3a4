"""The example rules of the user guide in the running service: accepted as printed, and applied to a node."""

from __future__ import annotations

import pytest

from ironic_rules import samples
from tests.functional.whole import fault, running
from tests.unit.test_examples import FILES, rules_of


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with running(tmp_path_factory.mktemp("whole")) as service:
        yield service


@pytest.fixture
def whole(service):
    yield service
    service.app.delete("/v1/inspection_rules")


def load(whole, stem):
    for rule in rules_of(stem):
        reply = whole.app.post_json("/v1/inspection_rules", rule)
        assert reply.status_int == 201, reply.text


def inspected(whole, sample, **fields):
    """Inspect a new node with the report of a sample machine; return the node and delete it, for its MAC addresses."""
    node = whole.enroll("manageable", **fields)
    shown = whole.inspect(node, samples.inventory(sample))
    whole.app.delete(f"/v1/nodes/{node}")
    return shown


@pytest.mark.parametrize("stem", [path.stem for path in FILES])
def test_the_service_accepts_every_example(whole, stem):
    load(whole, stem)

    assert len(whole.app.get("/v1/inspection_rules").json["inspection_rules"]) == len(rules_of(stem))


def test_the_typo_of_the_design_document_is_rejected_with_its_column(whole):
    first, _ = rules_of("discovered")
    args = first["conditions"][1]["args"]
    assert args == {"value": "{plugin_data[bmc_address]}"}
    args["value"] = "{plugin_data[bmc_address}"

    reply = whole.app.post_json("/v1/inspection_rules", first)

    assert reply.status_int == 400
    assert "/conditions/1/args/value: column 25: ']' is missing" in fault(reply)


def test_the_accelerator_example_reads_what_the_ramdisk_sends_besides_the_inventory(whole):
    load(whole, "accelerator")

    node = inspected(whole, "dell-r660")

    assert (node["last_error"], node["traits"]) == (None, ["CUSTOM_CONNECTX_6"])


def test_the_credentials_example_works_and_shows_nothing_of_itself(whole):
    load(whole, "credentials")

    node = inspected(whole, "hpe-dl380-gen11")
    rule, = whole.app.get("/v1/inspection_rules?detail=true").json["inspection_rules"]

    assert node["driver_info"] == {
        "redfish_address": "https://192.0.2.162", "redfish_username": "inspector", "redfish_password": "******"}
    assert (rule["conditions"], rule["actions"]) == (None, None)


def test_one_rule_of_the_models_example_gives_each_model_its_trait_and_name(whole):
    load(whole, "models")

    nodes = [inspected(whole, sample) for sample in ("dell-r660", "hpe-dl380-gen11", "ipv6-only-bmc")]

    assert [(node["last_error"], node["traits"], node["name"]) for node in nodes] == [
        (None, ["CUSTOM_R660"], "dell-inc-4ht81x3"), (None, ["CUSTOM_DL380"], "hpe-cz24310q7f"),
        (None, ["CUSTOM_SR635"], "lenovo-j304f7kb")]


def test_the_scope_example_puts_nodes_where_the_filter_finds_them(whole):
    load(whole, "scope")
    lab, other = whole.enroll("manageable"), whole.enroll("manageable")

    for node, sample in ((lab, "hpe-dl380-gen11"), (other, "dell-r660")):
        assert whole.inspect(node, samples.inventory(sample))["last_error"] is None

    found = whole.app.get("/v1/nodes?inspection_scope=lab&fields=uuid,inspection_scope,automated_clean").json["nodes"]
    assert [{**node, "links": None} for node in found] == [
        {"uuid": lab, "inspection_scope": "lab", "automated_clean": False, "links": None}]
    assert whole.show(other)["inspection_scope"] is None
    for node in (lab, other):
        whole.app.delete(f"/v1/nodes/{node}")


def test_the_early_example_answers_as_if_the_machine_were_unknown(whole):
    load(whole, "bmc-network")
    node = whole.enroll("manageable")
    whole.provision(node, "inspect")
    body = samples.inventory("dell-r660")
    body["inventory"]["bmc_address"] = "203.0.113.9"

    refused = whole.callback(node, body)

    assert refused.status_int == 404
    assert "203.0.113.9" not in refused.text
    assert whole.show(node)["provision_state"] == "inspect wait"
    assert whole.callback(node, samples.inventory("dell-r660")).status_int == 200
    whole.at_rest(node)
    assert whole.show(node)["provision_state"] == "manageable"
    whole.app.delete(f"/v1/nodes/{node}")


@pytest.fixture(scope="module")
def discovering(tmp_path_factory):
    """A service that enrolls unknown machines."""
    with running(tmp_path_factory.mktemp("discovering"),
                 "[auto_discovery]\nenabled = true\ndriver = fake-hardware\n") as service:
        yield service


@pytest.fixture(autouse=True)
def _no_rules_remain(request):
    yield
    if "discovering" in request.fixturenames:
        request.getfixturevalue("discovering").app.delete("/v1/inspection_rules")


def found(whole, body):
    """Let an unknown machine send its report; return its node."""
    reply = whole.app.post_json("/v1/continue_inspection", body, headers={"X-OpenStack-Ironic-API-Version": "1.1"})
    assert reply.status_int == 200, reply.text
    whole.at_rest(reply.json["uuid"])
    return whole.show(reply.json["uuid"])


@pytest.mark.parametrize("sample", ["dell-r660", "hpe-dl380-gen11", "vm-qemu-bios"])
def test_the_samples_do_not_break_the_inspection_of_a_discovered_machine(discovering, sample):
    for rule in samples.rules():
        assert discovering.app.post_json("/v1/inspection_rules", rule).status_int == 201
    node = found(discovering, samples.inventory(sample))

    assert (node["provision_state"], node["last_error"]) == ("enroll", None)


def test_later_inspections_keep_what_an_operator_has_changed_of_a_discovered_machine(discovering):
    first, _ = rules_of("discovered")
    assert first["actions"][0]["args"] == {"path": "/driver", "value": "ipmi"}
    del first["actions"][0]  # there is no BMC
    assert discovering.app.post_json("/v1/inspection_rules", first).status_int == 201
    body = samples.inventory("extra-hardware-r730")
    body["inventory"]["bmc_address"] = "192.0.2.77"
    shown = found(discovering, body)
    node = shown["uuid"]
    assert (shown["last_error"], shown["driver_info"]["ipmi_address"]) == (None, "192.0.2.77")

    changed = [{"op": "replace", "path": "/driver_info/ipmi_username", "value": "mine"}]
    assert discovering.app.patch_json(f"/v1/nodes/{node}", changed).status_int == 200
    discovering.provision(node, "manage")
    shown = discovering.inspect(node, body)

    assert (shown["provision_state"], shown["driver_info"]["ipmi_username"]) == ("manageable", "mine")
