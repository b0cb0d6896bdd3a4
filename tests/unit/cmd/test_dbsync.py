from __future__ import annotations

import pytest

from ironic_rules.cmd import dbsync, status
from ironic_rules.db import migration


@pytest.fixture
def config(tmp_path):
    file = tmp_path / "service.conf"
    file.write_text(f"[database]\nconnection = sqlite:///{tmp_path}/database\n")
    return ["--config-file", str(file)]


def test_upgrade_creates_the_tables_and_version_tells_the_revision(config, capsys):
    assert dbsync.main([*config, "version"]) == 0
    assert "no schema yet" in capsys.readouterr().out

    assert dbsync.main([*config, "upgrade"]) == 0
    assert dbsync.main([*config, "version"]) == 0
    assert capsys.readouterr().out.splitlines() == [f"The database is at revision {migration.HEAD}.", migration.HEAD]


def test_the_database_of_one_process_is_found_in_its_state_folder(tmp_path, capsys):
    (tmp_path / "empty.conf").write_text("")
    (tmp_path / "made.conf").write_text(f"[database]\nconnection = sqlite:///{tmp_path}/ironic-rules.sqlite\n")
    assert dbsync.main(["--config-file", str(tmp_path / "made.conf"), "upgrade"]) == 0
    capsys.readouterr()

    beside = ["--config-file", str(tmp_path / "empty.conf"), "--state-dir", str(tmp_path)]
    assert dbsync.main([*beside, "version"]) == 0
    assert capsys.readouterr().out.split() == [migration.HEAD]
    assert status.main([*beside, "upgrade", "check", "--json"]) == 0
    assert f"revision {migration.HEAD}" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["upgrade", "stamp"])
def test_an_unknown_revision_is_told_in_one_line(config, capsys, command):
    assert dbsync.main([*config, command, "nonsense"]) == 2
    line, = capsys.readouterr().err.splitlines()
    assert "'nonsense'" in line


def test_a_database_of_a_later_version_is_told(config, capsys, tmp_path):
    assert dbsync.main([*config, "upgrade"]) == 0
    with migration._engine(f"sqlite:///{tmp_path}/database") as engine, engine.begin() as connection:
        connection.execute(migration._TABLE.update().values(version_num="from_tomorrow"))

    assert dbsync.main([*config, "upgrade"]) == 2
    told = capsys.readouterr().err
    assert "The database is at revision from_tomorrow" in told
    assert migration.HEAD in told


def test_a_database_with_tables_is_not_stamped_as_one_without(config, capsys):
    assert dbsync.main([*config, "stamp", "base"]) == 0
    assert dbsync.main([*config, "upgrade"]) == 0
    capsys.readouterr()

    assert dbsync.main([*config, "stamp", "base"]) == 2
    assert "base is the revision of one without them" in capsys.readouterr().err
    assert dbsync.main([*config, "version"]) == 0
    assert capsys.readouterr().out.strip() == migration.HEAD


def test_a_wrong_argument_is_told_as_it_was_typed(config, capsys):
    with pytest.raises(SystemExit) as caught:
        dbsync.main([*config, "--timeout", "-1", "version"])

    assert caught.value.code == 2
    assert capsys.readouterr().err.startswith("argument --timeout: ")


def test_without_a_connection_nothing_is_done(tmp_path, capsys):
    (tmp_path / "empty.conf").touch()
    assert dbsync.main(["--config-file", str(tmp_path / "empty.conf"), "upgrade"]) == 2
    assert "[database]connection is not set" in capsys.readouterr().err
