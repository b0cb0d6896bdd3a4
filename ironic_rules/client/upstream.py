"""python-ironicclient's commands that ours extend; placeholders if it is not installed.

``openstack`` imports every command of every package each time it starts. If these imports failed, users without the
extra ``client`` would see errors about bare metal before the output of every other command.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from osc_lib import exceptions
from osc_lib.command import command

MISSING = "This command needs python-ironicclient; in the folder of the checkout, run: pip install '.[client]'"


class _Missing(command.Command):
    """Not available: python-ironicclient is not installed."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        raise exceptions.CommandError(MISSING)

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        raise exceptions.CommandError(MISSING)


CreateRule: Any = _Missing
CreateTemplate: Any = _Missing
DeleteRule: Any = _Missing
ListNodes: Any = _Missing
ListRules: Any = _Missing
SetRule: Any = _Missing
ShowRule: Any = _Missing
UnsetRule: Any = _Missing
#: The class by which a connection lists nodes.
NodeManager: Any = object
#: The class by which a connection creates and changes rules.
RuleManager: Any = object
#: Columns of ``list --long``.
DETAILS: tuple[str, ...] = ()
#: Fields of nodes that it knows.
NODE_FIELDS: tuple[str, ...] = ()
#: The exception that its calls raise.
ClientException: type[Exception] = exceptions.ClientException

try:
    from ironicclient import exc
    from ironicclient.common import utils
    from ironicclient.osc.v1 import baremetal_deploy_template, baremetal_node
    from ironicclient.osc.v1 import baremetal_inspection_rule as commands
    from ironicclient.v1 import inspection_rule, node, resource_fields
except ImportError:
    pass
else:
    CreateRule = commands.CreateBaremetalInspectionRule
    CreateTemplate = baremetal_deploy_template.CreateBaremetalDeployTemplate
    DeleteRule = commands.DeleteBaremetalInspectionRule
    ListNodes = baremetal_node.ListBaremetalNode
    ListRules = commands.ListBaremetalInspectionRule
    SetRule = commands.SetBaremetalInspectionRule
    ShowRule = commands.ShowBaremetalInspectionRule
    UnsetRule = commands.UnsetBaremetalInspectionRule
    NodeManager = node.NodeManager
    RuleManager = inspection_rule.InspectionRuleManager
    DETAILS = tuple(resource_fields.INSPECTION_RULE_DETAILED_RESOURCE.fields)
    NODE_FIELDS = tuple(resource_fields.NODE_DETAILED_RESOURCE.fields)
    ClientException = exc.ClientException


def json_argument(argument: str | None, noun: str) -> Any:
    """Return the value of an argument: JSON, the path of a file with JSON or YAML, or ``-`` for standard input.

    :returns: None if there is no argument
    :raises CommandError: it is none of these
    """
    try:
        return utils.handle_json_arg(argument, noun)
    except ClientException as error:
        raise exceptions.CommandError(str(error)) from error


def pairs(arguments: Sequence[str]) -> dict[str, Any]:
    """Return what arguments of the form ``key=value`` say; each value is JSON, or else a text.

    :raises CommandError: one of them has no ``=``
    """
    try:
        return dict(utils.key_value_pairs_to_dict(list(arguments)))
    except ClientException as error:
        raise exceptions.CommandError(str(error)) from error
