from __future__ import annotations

from pathlib import Path

import pytest

from ironic_rules.cmd import systemd

ROOT = Path(__file__).resolve().parents[3]
ARGUMENTS = ["--prefix", "/opt/ironic-rules"]


def write(root: Path, *arguments: str) -> int:
    return systemd.main(["--root", str(root), *(arguments or ARGUMENTS)])


def test_the_files_in_etc_are_what_the_command_writes(tmp_path):
    assert write(tmp_path) == 0

    written = {path.relative_to(tmp_path): path.read_text() for path in tmp_path.rglob("*") if path.is_file()}
    assert len(written) == 10
    assert {path: (ROOT / path).read_text() for path in written} == written


def test_a_second_run_changes_nothing(tmp_path, capsys):
    write(tmp_path)
    capsys.readouterr()

    assert write(tmp_path) == 0
    assert {line.rpartition(" ")[2] for line in capsys.readouterr().out.splitlines() if ": " in line} == {
        "unchanged", "kept"}


def test_another_installation_replaces_the_units(tmp_path):
    write(tmp_path)

    assert write(tmp_path, "--prefix", "/srv/inspection", "--dnsmasq", "/opt/dnsmasq") == 0
    folder = tmp_path / "etc" / "systemd" / "system"
    assert "\nExecStart=/srv/inspection/bin/ironic-rules-api\n" in (folder / "ironic-rules-api.service").read_text()
    assert "\nExecStart=/opt/dnsmasq --keep" in (folder / "ironic-inspection-dnsmasq.service").read_text()


@pytest.mark.parametrize("name", [
    "etc/systemd/system/ironic-rules-api.service", "etc/sysusers.d/ironic-rules.conf", "etc/logrotate.d/ironic-rules"])
@pytest.mark.parametrize(("change", "complaint"), [
    (lambda text: text + "# mine\n", "was changed"), (lambda text: "# mine\n", "was not written by")])
def test_what_a_person_wrote_is_not_replaced_and_nothing_else_is_written(tmp_path, capsys, name, change, complaint):
    write(tmp_path)
    file = tmp_path / name
    file.write_text(change(file.read_text()))
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}

    assert write(tmp_path, "--prefix", "/srv/inspection") == 2
    assert f"{file} " in (told := capsys.readouterr().err) and complaint in told
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_the_configuration_of_dnsmasq_is_the_operators(tmp_path):
    write(tmp_path)
    file = tmp_path / "etc" / "ironic-inspection-dnsmasq.conf"
    file.write_text("interface=eth7\n")

    assert write(tmp_path) == 0
    assert file.read_text() == "interface=eth7\n"


@pytest.mark.parametrize(("argument", "within"), [("--prefix", "/bin"), ("--dnsmasq", "")])
@pytest.mark.parametrize("path", ["opt/ironic", "/opt/with blank", "/opt/100%"])
def test_a_path_that_systemd_would_not_take_literally_is_refused(tmp_path, capsys, argument, within, path):
    assert write(tmp_path, *ARGUMENTS, argument, path) == 2
    assert f"{argument}: {path}{within} is not" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def installation(folder: Path) -> Path:
    folder.mkdir(parents=True)
    for name in systemd.COMMANDS:
        (folder / name).touch(mode=0o755)
    return folder


@pytest.mark.parametrize(("interpreter", "complaint"), [
    ("/root/.pyenv/versions/3.13.1/bin/python3.13", "services see nothing of /root"),
    ("/home/jane/python/bin/python3", "services see nothing of /home"),
    ("/nowhere/python3", "other users than its owner cannot read")])
def test_an_interpreter_that_services_cannot_run_is_refused(tmp_path, interpreter, complaint):
    found = list(systemd.unusable(Path("/usr/bin"), Path(interpreter)))

    assert any(complaint in text for text in found), found


def test_commands_that_services_do_not_see_are_refused(tmp_path):
    folder = installation(Path(tmp_path) / "venv" / "bin")

    found = list(systemd.unusable(folder, Path("/usr/bin/env").resolve()))
    assert found == [
        f"The commands are in {folder}, and services see nothing of /tmp: install the package into another folder, "
        "such as /opt/ironic-rules, with an interpreter that is in another folder, too."]


def test_missing_commands_are_named():
    assert next(iter(systemd.unusable(Path("/usr/share"), Path("/usr/bin/env").resolve()))) == (
        "/usr/share does not have ironic-rules, ironic-rules-api, ironic-rules-conductor, ironic-pxe-filter.")


def test_a_folder_that_cannot_be_written_is_told(tmp_path, capsys):
    (tmp_path / "etc").touch()

    assert write(tmp_path) == 2
    assert str(tmp_path / "etc") in capsys.readouterr().err
