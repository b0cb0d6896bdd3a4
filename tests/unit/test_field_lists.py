"""A field of a resource is in one list, the table of its fields; each additional list is named here with its reason."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import ironic_rules
from ironic_rules.models.nodes import NODE
from ironic_rules.models.ports import PORT, PORT_GROUP
from ironic_rules.models.resources import ALLOCATION, CHASSIS, RUNBOOK, VOLUME_CONNECTOR, VOLUME_TARGET
from ironic_rules.models.rules import RULE
from ironic_rules.models.steps import DEPLOY_TEMPLATE

PACKAGE = Path(ironic_rules.__file__).parent
TABLES = {"node": NODE, "chassis": CHASSIS, "port": PORT, "port group": PORT_GROUP, "rule": RULE,
          "template": DEPLOY_TEMPLATE, "connector": VOLUME_CONNECTOR, "target": VOLUME_TARGET,
          "allocation": ALLOCATION, "runbook": RUNBOOK}
_TIMES_SEEN = Counter(name for table in TABLES.values() for name in table)
#: The fields of each resource that no other one has.
ITS_OWN = {resource: {name for name in table if _TIMES_SEEN[name] == 1} for resource, table in TABLES.items()}
#: Number of fields of a single resource from which a collection is a list of its fields.
MANY = 3

#: module and resource of each additional list: its reason.
REASONS = {
    ("api/examples.py", "target"): "an example of a request",
    ("api/v1/ports.py", "port"): "what the network knows of a port, and only unused nodes may change",
    ("api/v1/rule_facts.py", "rule"): "by what a rule is recognized, and what tells what it writes",
    ("api/views/rules.py", "rule"): "the fields by which a rule is recognized among its numbers",
    **{("models/events.py", resource): "the payloads of Ironic's notifications, with the fields of one release of it"
       for resource in ("node", "port", "target")},
    ("db/outbox.py", "node"): "what the service itself writes, which the audit log does not show",
    ("db/fact_values.py", "node"): "the fields that have an index, and few values for many nodes",
    ("db/tables.py", "node"): "the columns that have an index of this kind",
    ("client/extended_commands.py", "rule"): "the options of one command",
    ("client/rule_commands.py",
     "rule"): "the fields of an exported rule with their defaults; the client has no part of "
                                        "the service",
    ("cmd/import_cloud.py", "node"): "the fields for which --replace may give another value",
    ("conductor/restoring.py", "node"): "what work that was begun has left on a node",
    ("conductor/state_machine.py", "node"): "what a transition writes",
    ("db/allocations.py", "node"): "what a node gets that is given to an allocation",
    ("db/nodes.py", "node"): "what a lock consists of",
    ("db/node_queries.py", "node"): "what interfaces read in a poll; all fields of 1,000 nodes would take too long",
    ("hardware/agent/in_band.py", "node"): "what the ramdisk is told, as ironic-python-agent reads it",
    ("importing/kinds.py", "node"): "what an import takes over besides what clients may write, or compares with care",
    ("importing/plan.py", "node"): "the fields whose values may be replaced, which the command names, too",
    ("inspection/discovery.py", "node"): "what discovery sets",
    ("inspection/enrolment.py", "node"): "what the wait for a report consists of",
    ("legacy/compiler.py", "rule"): "the fields that a rule has without its optional ones",
    ("models/nodes.py", "node"): "what the cause of a failure consists of",
    ("policies/nodes.py", "node"): "the fields that have policies of their own, in Ironic",
    ("rules/built_in.py", "rule"): "the fields that earlier versions did not have, for the UUIDs that these derived",
    ("rules/rule_fields.py", "rule"): "a check of its own for each field of a rule that a user writes",
    ("rules/reference.py", "rule"): "as rules/rule_fields.py, for the API reference",
}


def literals(tree: ast.AST) -> Iterator[set[str]]:
    """Yield the texts of every collection of ``MANY`` and more, and the keys of every such dictionary."""
    for found in ast.walk(tree):
        items = found.keys if isinstance(found, ast.Dict) else getattr(found, "elts", ())
        if len(items) >= MANY:
            yield {item.value for item in items if isinstance(item, ast.Constant) and isinstance(item.value, str)}


def second_lists() -> Iterator[tuple[str, str]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        module = path.relative_to(PACKAGE).as_posix()
        for texts in literals(ast.parse(path.read_text(encoding="utf-8"))):
            yield from ((module, resource) for resource, names in ITS_OWN.items() if len(texts & names) >= MANY)


def test_every_second_list_of_fields_has_a_reason():
    assert set(second_lists()) == set(REASONS)
