from __future__ import annotations

import importlib
import sys

import pytest
from osc_lib.exceptions import CommandError

from tests.unit.client import openstack_app


@pytest.fixture
def commands(monkeypatch):
    """Import of our commands without python-ironicclient."""
    monkeypatch.setitem(sys.modules, "ironicclient", None)
    for name in [name for name in sys.modules if name.startswith(("ironic_rules.client", "ironicclient."))]:
        monkeypatch.delitem(sys.modules, name)
    return importlib.import_module("ironic_rules.client.extended_commands")


@pytest.mark.parametrize("command", ["CreateRule", "SetRule", "UnsetRule", "ListRules"])
def test_without_python_ironicclient_a_command_says_what_is_missing(commands, command):
    with pytest.raises(CommandError, match=r"pip install '\.\[client\]'"):
        getattr(commands, command)(openstack_app.app(None), None).get_parser("openstack")


def test_without_python_ironicclient_the_list_of_nodes_says_what_is_missing(commands):
    with pytest.raises(CommandError, match=r"pip install '\.\[client\]'"):
        importlib.import_module("ironic_rules.client.node_commands").ListNodes(
            openstack_app.app(None), None).get_parser("openstack")


@pytest.mark.parametrize("arguments", [["--all"], ["u"]])
def test_without_python_ironicclient_deleting_says_what_is_missing(commands, arguments):
    with pytest.raises(CommandError, match=r"pip install '\.\[client\]'"):
        openstack_app.run(commands.DeleteRule, None, *arguments)
