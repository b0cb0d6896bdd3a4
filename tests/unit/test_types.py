"""Checks by the type checker: rows, drafts and forms of a resource have its fields, and no others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MISSPELT = """
import sqlalchemy as sa

from ironic_rules.db import nodes, ports
from ironic_rules.models.draft import NodeDraft
from ironic_rules.models.rules import Rule
from ironic_rules.models.nodes import Node

def row(conn: sa.Connection) -> str | None:
    return nodes.get(conn, "node-1").resource_clas

def port(conn: sa.Connection) -> object:
    return [port.adress for port in ports.for_node(conn, 1)]

def draft(node: NodeDraft) -> None:
    node.resource_clas = "large"

def form(node: Node) -> object:
    return node.driver_inof

def record(rule: Rule) -> object:
    return rule.sensible
"""


@pytest.mark.slow
def test_a_misspelt_field_does_not_pass_the_type_check(tmp_path):
    module = tmp_path / "misspelled.py"
    module.write_text(MISSPELT, encoding="utf-8")
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), "--follow-imports=silent",
         "--cache-dir", str(tmp_path / "cache"), str(module)],
        cwd=ROOT, capture_output=True, text=True, check=False)
    errors = [line for line in checked.stdout.splitlines() if ": error:" in line]
    names = ("resource_clas", "adress", "resource_clas", "driver_inof", "sensible")
    assert len(errors) == len(names), checked.stdout + checked.stderr
    for error, name in zip(errors, names, strict=True):
        assert f'"{name}"' in error and "[attr-defined]" in error
