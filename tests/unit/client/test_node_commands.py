from __future__ import annotations

from types import SimpleNamespace

from ironicclient.osc.v1 import baremetal_node as upstream
from ironicclient.v1.node import NodeManager

from ironic_rules.client import node_commands as ours
from tests.unit.client.test_extended_commands import options
from tests.walking import walking


class Api:
    """Has python-ironicclient's ``json_request``; records what was requested."""

    def __init__(self) -> None:
        self.urls: list[str] = []

    def json_request(self, method, url, **request):
        self.urls.append(url)
        return None, {"nodes": []}


def run(*arguments: str) -> list[str]:
    """Run the command; return the URLs that it requested."""
    api = Api()
    client = SimpleNamespace(node=NodeManager(api))
    command = ours.ListNodes(SimpleNamespace(client_manager=SimpleNamespace(baremetal=client), NAME="openstack"), None)
    before = client.node
    _, rows = command.take_action(command.get_parser("openstack").parse_args(arguments))
    assert (list(rows), client.node) == ([], before)
    return api.urls


def test_every_option_of_python_ironicclient_is_still_there():
    assert {text: action.dest for text, action in options(upstream.ListBaremetalNode).items()}.items() <= {
        text: action.dest for text, action in options(ours.ListNodes).items()}.items()


@walking("arguments, urls", [
    ([], ["/v1/nodes"]),
    (["--auto-discovered"], ["/v1/nodes?auto_discovered=true"]),
    (["--auto-discovered", "--provision-state", "enroll"],
     ["/v1/nodes/?provision_state=enroll&auto_discovered=true"]),
    (["--auto-discovered", "--long"], ["/v1/nodes/detail?auto_discovered=true"]),
    (["--provision-state", "enroll"], ["/v1/nodes/?provision_state=enroll"]),
])
def test_m36_the_filter_is_asked_for_with_everything_else(arguments, urls):
    assert run(*arguments) == urls
