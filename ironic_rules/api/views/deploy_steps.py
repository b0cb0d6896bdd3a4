"""Deploy steps and nodes that run them -> JSON."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ironic_rules.api import links
from ironic_rules.models import secrets
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.nodes import Node
from ironic_rules.steps.preview import Judgement, Preview
from ironic_rules.steps.warnings import StepWarning

#: Fields of a node in the list of those on which a template is enabled.
NODE_FIELDS = ("uuid", "name", "driver", "provision_state", "supported", "problems", "warnings", "links")
NODE_COLUMNS = ("uuid", "name", "driver", "provision_state")


def preview(told: Preview) -> JSONObject:
    """Return the steps that a deployment would run, in order, their problems, and the warnings about them."""
    return {"deploy_steps": _steps(told), "deploy_templates": list(told.templates), "problems": list(told.problems),
            "warnings": warnings(told.warnings), "complete": told.complete}


def clean_preview(told: Preview, automated: bool) -> JSONObject:
    """Return the steps that automated cleaning would run, in order, and whether it is on."""
    return {"clean_steps": _steps(told), "automated_clean": automated, "problems": list(told.problems),
            "complete": told.complete}


def _steps(told: Preview) -> list[JSONObject]:
    return [{**step.as_dict(), "args": secrets.mask(step.args), "source": step.source} for step in told.steps]


def warnings(found: Sequence[StepWarning]) -> list[JSONObject]:
    """Return warnings about steps."""
    return [warning.to_wire() for warning in found]


def node(base: str, row: Node, judged: Judgement, fields: Collection[str]) -> JSONObject:
    """Return one node with the reasons why it cannot run a template's steps, and the warnings about that.

    :param row: with ``NODE_COLUMNS``
    """
    values = {**{name: getattr(row, name) for name in NODE_COLUMNS}, "supported": not judged.problems,
              "problems": list(judged.problems), "warnings": warnings(judged.warnings),
              "links": links.resource(base, "nodes", row.uuid)}
    return {name: values[name] for name in NODE_FIELDS if name in fields or name == "links"}
