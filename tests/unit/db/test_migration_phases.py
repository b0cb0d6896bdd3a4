"""Each migration says whether processes of the release before can use the database after it, and that is so."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from alembic.script import ScriptDirectory

from ironic_rules.db import migration

FILES = sorted((migration._SCRIPTS / "versions").glob("[0-9a-f]*_*.py"))
#: Statements that a release without knowledge of them would notice.
REMOVING = {"drop_table", "drop_column", "drop_constraint", "rename_table", "alter_column"}


def calls(file: Path) -> list[ast.Call]:
    tree = ast.parse(file.read_text())
    upgrade = next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "upgrade")
    return [node for node in ast.walk(upgrade) if isinstance(node, ast.Call)]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_migration_says_its_phase(file: Path) -> None:
    phases = [node.value.value for node in ast.parse(file.read_text()).body if isinstance(node, ast.Assign)
              and node.targets[0].id == "phase"]  # type: ignore[attr-defined]
    assert phases in ([migration.EXPAND], [migration.CONTRACT]), f'{file.name}: set phase = "expand" or "contract"'


@pytest.mark.parametrize("file", [file for file in FILES if 'phase = "expand"' in file.read_text()],
                         ids=lambda file: file.stem)
def test_an_expansion_removes_nothing_and_needs_no_value_of_the_release_before(file: Path) -> None:
    for call in calls(file):
        name = getattr(call.func, "attr", "")
        assert name not in REMOVING, f"{file.name}: {name} is for a contraction"
        if name == "add_column":
            column = next(each for each in call.args if isinstance(each, ast.Call))
            given = {each.arg: ast.unparse(each.value) for each in column.keywords}
            assert given.get("nullable") != "False" or "server_default" in given, (
                f"{file.name}: the release before inserts rows without {ast.unparse(column)}")


def test_the_order_that_is_read_from_the_files_is_that_of_alembic() -> None:
    scripts = list(ScriptDirectory(str(migration._SCRIPTS)).walk_revisions())[::-1]
    assert [tuple(each) for each in migration._chain()] == [
        (script.revision, script.module.phase) for script in scripts]
    assert scripts[-1].revision == migration.HEAD
