from __future__ import annotations

import json

import pytest
from osc_lib import exceptions

from ironic_rules.client import inspection_commands
from tests.unit.client.openstack_app import Connection, refusal, run
from tests.walking import walking

ENTRY = {**dict.fromkeys(inspection_commands._SHOWN), "uuid": "e1", "seen_at": "now", "times": 3,
         "reason": "wrong state",
         "source": "192.0.2.7", "macs": ["a", "b"], "bmc_addresses": [],
         "nodes": [{"node": "n1", "provision_state": "manageable"}]}


def test_entries_are_listed_with_all_pages_and_filters():
    def answer(method, url, body):
        return {"inspection_journal": [ENTRY]} if "marker" in url else {
            "inspection_journal": [ENTRY], "next": "http://elsewhere/v1/inspection_journal?marker=e1"}

    service = Connection(answer)

    status, printed = run(inspection_commands.ListEntries, service, "--mac", "52:54:00:00:00:01", "--reason",
                          "wrong state",
                          "-f", "json")

    assert status == 0
    assert [(row["uuid"], row["macs"], row["nodes"]) for row in json.loads(printed)] == [
        ("e1", ["a", "b"], ENTRY["nodes"])] * 2
    query = "mac=52%3A54%3A00%3A00%3A00%3A01&reason=wrong+state"
    assert [request[1] for request in service.requests] == [
        f"/v1/inspection_journal?{query}", f"/v1/inspection_journal?{query}&marker=e1"]


def test_a_table_has_nodes_with_their_states():
    service = Connection(lambda *request: {"inspection_journal": [ENTRY]})

    status, printed = run(inspection_commands.ListEntries, service, "--node", "a b", "--limit", "1")

    assert (status, "n1 (manageable)" in printed) == (0, True)
    assert service.requests[0][1] == "/v1/nodes/a%20b/inspection_journal?limit=1"


@walking("arguments", [
    ("--limit", "-1"), ("--node", "n", "--mac", "m"), ("--node", "n", "--address", "a")])
def test_filters_that_do_not_fit_are_refused(arguments):
    with pytest.raises(exceptions.CommandError):
        run(inspection_commands.ListEntries, Connection(lambda *request: {}), *arguments)


def test_an_entry_is_shown():
    service = Connection(lambda *request: ENTRY)

    status, printed = run(inspection_commands.ShowEntry, service, "e/1", "-f", "json")

    assert (status, json.loads(printed)["times"]) == (0, 3)
    assert service.requests == [("GET", "/v1/inspection_journal/e%2F1", None)]


def test_a_machine_is_enrolled_with_what_is_given():
    node = {"uuid": "n1", "name": "rack-7", "driver": "ipmi", "provision_state": "inspect wait", "driver_info": {}}
    service = Connection(lambda *request: node)

    status, printed = run(
        inspection_commands.EnrollMachine, service, "e1", "--driver", "ipmi", "--name", "rack-7", "--driver-info",
        "ipmi_address=192.0.2.1", "--driver-info", "ipmi_port=623", "--property", "rack=seven", "-f", "value")

    assert (status, printed.split("\n")[:4]) == (0, ["n1", "rack-7", "ipmi", "inspect wait"])
    assert service.requests == [("POST", "/v1/inspection_journal/e1/enroll", {
        "driver": "ipmi", "name": "rack-7", "driver_info": {"ipmi_address": "192.0.2.1", "ipmi_port": 623},
        "properties": {"rack": "seven"}})]


def test_what_the_service_or_the_form_refuses_is_an_error():
    def refused(*request):
        raise refusal("its addresses are those of node n1", 409)

    with pytest.raises(exceptions.CommandError, match="node n1"):
        run(inspection_commands.EnrollMachine, Connection(refused), "e1", "--driver", "ipmi")
    with pytest.raises(exceptions.CommandError, match="noequals"):
        run(inspection_commands.EnrollMachine, Connection(refused), "e1", "--driver", "ipmi", "--extra", "noequals")
