from __future__ import annotations

import pytest
from osc_lib import exceptions

from ironic_rules.client import node_commands
from tests.unit.client.openstack_app import Connection, refusal, run
from tests.walking import walking

STEP = {"interface": "raid", "step": "create_configuration", "priority": 10, "args": {"a": 1}, "source": "template X"}
PREVIEW = {"deploy_steps": [STEP], "deploy_templates": ["X"], "problems": []}


def node(number, **fields):
    return {"uuid": f"u{number}", "name": None, "driver": "d", "supported": True, "problems": [], **fields}


def test_the_steps_of_a_node_are_listed_with_where_they_come_from():
    service = Connection(lambda *request: PREVIEW)

    status, printed = run(node_commands.ListDeploySteps, service, "a/b", "-f", "value")

    assert (status, printed.strip()) == (0, '10 raid create_configuration {"a": 1} template X')
    assert service.requests == [("GET", "/v1/nodes/a%2Fb/deploy_steps", None)]


def test_traits_can_be_given_in_the_place_of_the_instances():
    service = Connection(lambda *request: PREVIEW)

    run(node_commands.ListDeploySteps, service, "n", "--trait", "CUSTOM_A", "--trait", "CUSTOM_B")

    assert service.requests[0][1] == "/v1/nodes/n/deploy_steps?traits=CUSTOM_A%2CCUSTOM_B"


def test_problems_are_printed_and_make_the_status_1(capsys):
    status, printed = run(node_commands.ListDeploySteps,
                          Connection(lambda *request: {**PREVIEW, "problems": ["no such step"]}), "n")

    assert (status, capsys.readouterr().err) == (1, "no such step\n")
    assert "create_configuration" in printed


def test_the_nodes_of_a_template_are_listed_over_all_pages():
    pages = {"/v1/deploy_templates/X/nodes?": {"nodes": [node(1)], "next": "http://there/?limit=1&marker=u1"},
             "/v1/deploy_templates/X/nodes?marker=u1": {"nodes": [
                 node(2, supported=False, problems=["no step", "no argument"])]}}
    service = Connection(lambda method, url, body: pages[url])

    status, printed = run(node_commands.ListTemplateNodes, service, "X", "--limit", "0", "-f", "value")

    assert (status, printed.splitlines()) == (0, ["u1 None d True ", "u2 None d False no step; no argument"])


def test_a_negative_limit_is_refused():
    with pytest.raises(exceptions.CommandError, match="non-negative"):
        run(node_commands.ListTemplateNodes, Connection(lambda *request: None), "X", "--limit", "-1")


@walking("command", [node_commands.ListDeploySteps, node_commands.ListTemplateNodes])
def test_a_refusal_gives_the_reason_of_the_service(command):
    def refuse(*request):
        raise refusal("not there", 404)

    with pytest.raises(exceptions.CommandError, match="not there"):
        run(command, Connection(refuse), "X")
