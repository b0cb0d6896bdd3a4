"""Deploy steps and nodes that run them -> JSON."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from ironic_rules.api import links
from ironic_rules.models import secrets
from ironic_rules.models.nodes import Node
from ironic_rules.steps.preview import Preview

#: Fields of a node in the list of those on which a template is enabled.
NODE_FIELDS = ("uuid", "name", "driver", "provision_state", "supported", "problems", "links")
NODE_COLUMNS = ("uuid", "name", "driver", "provision_state")


def preview(told: Preview) -> dict[str, Any]:
    """Return the steps that a deployment would run, in order, and their problems."""
    return {"deploy_steps": [{**step.as_dict(), "args": secrets.mask(step.args), "source": step.source}
                             for step in told.steps],
            "deploy_templates": list(told.templates), "problems": list(told.problems), "complete": told.complete}


def node(row: Node, problems: Sequence[str], fields: Collection[str]) -> dict[str, Any]:
    """Return one node with the reasons why it cannot run a template's steps.

    :param row: with ``NODE_COLUMNS``
    """
    values = {**{name: getattr(row, name) for name in NODE_COLUMNS}, "supported": not problems,
              "problems": list(problems), "links": links.resource("nodes", row.uuid)}
    return {name: values[name] for name in NODE_FIELDS if name in fields or name == "links"}
