"""Two releases on one schema: it is expanded, rows are changed in batches, and it is contracted in the end."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from ironic_rules.cmd import dbsync
from ironic_rules.db import conductors, migration, processes
from ironic_rules.exceptions import ConfigurationError
from tests.functional import databases

EXPANSION, CONTRACTION = "0a11ee0dc0de", "0c0de0dead00"
OLD = migration.HEAD
EXPANDING = f'''import sqlalchemy as sa
from alembic import op

revision = "{EXPANSION}"
down_revision = "{OLD}"
phase = "expand"


def upgrade():
    op.add_column("chassis", sa.Column("place", sa.String(255)))


def migrate(conn, limit):
    ids = conn.scalars(sa.text(f"SELECT id FROM chassis WHERE place IS NULL LIMIT {{limit}}")).all()
    for each in ids:
        conn.execute(sa.text("UPDATE chassis SET place = description WHERE id = :id"), {{"id": each}})
    return len(ids)
'''
CONTRACTING = f'''from alembic import op

revision = "{CONTRACTION}"
down_revision = "{EXPANSION}"
phase = "contract"


def upgrade():
    with op.batch_alter_table("chassis") as batch:
        batch.drop_column("description")
'''


class NextRelease:
    """Has one migration of each phase more."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder = shutil.copytree(migration._SCRIPTS, folder / "migrations")
        self._monkeypatch = monkeypatch
        for revision, text in ((EXPANSION, EXPANDING), (CONTRACTION, CONTRACTING)):
            (self._folder / "versions" / f"{revision}_next.py").write_text(text)

    def installed(self) -> pytest.MonkeyPatch:
        """Let the code of this process be that of the next release, until the result is undone."""
        patched = pytest.MonkeyPatch()
        patched.setattr(migration, "_SCRIPTS", self._folder)
        patched.setattr(migration, "HEAD", CONTRACTION)
        return patched


@pytest.fixture
def following(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> NextRelease:
    return NextRelease(tmp_path, monkeypatch)


@pytest.fixture(params=["sqlite", pytest.param("mysql", marks=pytest.mark.servers),
                        pytest.param("postgresql", marks=pytest.mark.servers)])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    with databases.migrated_database(request.param) as made:
        yield made


def report(url: str, name: str, revision: str) -> None:
    with databases.engine(url) as engine, engine.begin() as conn:
        processes.report(conn, name, "api", name, "0.1.0", revision)


def columns(url: str) -> set[str]:
    with databases.engine(url) as engine:
        return {column["name"] for column in sa.inspect(engine).get_columns("chassis")}


def test_releases_share_the_expanded_schema_until_only_the_new_one_runs(url, following):
    with databases.engine(url) as engine:
        with engine.begin() as conn:
            conn.execute(sa.text("INSERT INTO chassis (uuid, description, extra, created_at) VALUES "
                                 "('u1', 'rack 1', '{}', '2026-01-01'), ('u2', 'rack 2', '{}', '2026-01-01')"))
        report(url, "old-api", OLD)
        new = following.installed()
        try:
            migration.upgrade(url, phase=migration.EXPAND)
            expanded, at_expansion = columns(url), migration.version(engine)
            usable_by_new = migration.is_current(engine)
            report(url, "new-api", CONTRACTION)
            changed = migration.migrate(url, batch=1)
            with pytest.raises(ConfigurationError, match=r"api on old-api \(release 0.1.0\)"):
                migration.upgrade(url, phase=migration.CONTRACT)
            with pytest.raises(ConfigurationError, match="Nothing was changed"):
                migration.upgrade(url)
            waiting = migration.contractions(engine)
        finally:
            new.undo()
        usable_by_old = migration.is_current(engine)
        with engine.begin() as conn:
            processes.forget(conn, "old-api")
        new = following.installed()
        try:
            migration.upgrade(url, phase=migration.CONTRACT)
            contracted = migration.version(engine)
        finally:
            new.undo()
        with pytest.raises(ConfigurationError, match="of a newer version"):
            migration.is_current(engine)
        with engine.connect() as conn:
            places = list(conn.scalars(sa.text("SELECT place FROM chassis ORDER BY id")))

    assert (at_expansion, contracted) == (EXPANSION, CONTRACTION)
    assert {"place", "description"} <= expanded
    assert (usable_by_new, usable_by_old) == (True, True)
    assert changed == 2 and places == ["rack 1", "rack 2"]
    assert waiting == ([CONTRACTION], ["api on old-api (release 0.1.0)"])
    assert "description" not in columns(url)


def test_a_conductor_that_reports_no_revision_holds_a_contraction_up(url, following):
    database = databases.open_database(url)
    database.write(lambda conn: conductors.register(conn, "old-1", "", {}, "run"))
    database.dispose()
    new = following.installed()
    try:
        migration.upgrade(url, phase=migration.EXPAND)
        with pytest.raises(ConfigurationError, match=r"conductor on old-1 \(release not known\)"):
            migration.upgrade(url, phase=migration.CONTRACT)
        # The conductor has been dead for a minute.
        migration.upgrade(url, phase=migration.CONTRACT, timeout_s=0)
    finally:
        new.undo()


def test_a_service_that_upgrades_by_itself_leaves_out_what_is_too_early(tmp_path, following):
    with databases.migrated_database("sqlite") as url, databases.engine(url) as engine:
        report(url, "filter", OLD)
        new = following.installed()
        try:
            with pytest.raises(ConfigurationError, match="to be expanded first"):
                migration.upgrade(url, phase=migration.CONTRACT)
            migration.upgrade(url, patient=True)
            assert (migration.version(engine), migration.is_current(engine)) == (EXPANSION, True)
            migration.upgrade(url, timeout_s=0, patient=True)
            assert migration.version(engine) == CONTRACTION
        finally:
            new.undo()


def test_the_command_has_the_phases(tmp_path, following, capsys):
    with databases.migrated_database("sqlite") as url:
        file = tmp_path / "service.conf"
        file.write_text(f"[database]\nconnection = {url}\n")
        report(url, "old-api", OLD)
        new = following.installed()
        try:
            told = []
            for arguments in (["upgrade", "--expand"], ["migrate", "--batch", "7"], ["upgrade", "--contract"]):
                status = dbsync.main(["--config-file", str(file), *arguments])
                told.append((status, "".join(capsys.readouterr())))
        finally:
            new.undo()

    assert [status for status, _ in told] == [0, 0, 2]
    assert f"The database is at revision {EXPANSION}." in told[0][1]
    assert "'ironic-rules-dbsync upgrade --contract'" in told[0][1]
    assert told[1][1] == "0 rows were changed.\n"
    assert "api on old-api" in told[2][1]


def test_a_process_is_reported_until_it_ends():
    with databases.migrated_database("sqlite") as url:
        database = databases.open_database(url)
        presence = processes.Presence(database, "conductor", "host-1", "0.1.0", OLD, 0.01)
        presence.start()
        with database.reader() as conn:
            alive = processes.written_for(conn, [OLD], 60)
        presence.stop()
        with database.reader() as conn:
            gone = processes.written_for(conn, [OLD], 60)
        database.dispose()

    assert (alive, gone) == (["conductor on host-1 (release 0.1.0)"], [])
