"""Building: what the machine must have, the cache, and builds that fail or are interrupted.

``mmdebstrap`` is a script here, which needs neither root nor an archive; the lab runs the real one.
"""

from __future__ import annotations

import contextlib
import io
import multiprocessing
import os
import secrets
import signal
import subprocess
import sys
import tarfile
import threading
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from ironic_rules.cmd import ramdisk
from ironic_rules.exceptions import ConfigurationError
from ironic_rules.ramdisk import build, programs
from ironic_rules.ramdisk.build import Builder
from ironic_rules.ramdisk.programs import Program
from ironic_rules.ramdisk.recipe import Recipe
from tests.functional.processes import wait_for
from tests.unit.ramdisk.images import kernel, needs_programs
from tests.walking import walking

#: A package of the agent, as a file: nothing is downloaded.
WHEEL = "agent-1-py3-none-any.whl"
STATUS = "Package: base\nVersion: 1-2\nDescription: x\n y: z\n\nPackage: other\nVersion: 3\n"


@pytest.fixture
def recipe(tmp_path):
    with zipfile.ZipFile(tmp_path / WHEEL, "w") as wheel:
        wheel.writestr("ironic_python_agent/__init__.py", "")
        wheel.writestr("agent-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: agent\nVersion: 1\n")
        wheel.writestr("agent-1.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("agent-1.dist-info/RECORD", "")
    return Recipe(requirements=f"{tmp_path / WHEEL}\n")


@pytest.fixture
def debian(tmp_path, monkeypatch):
    """Make mmdebstrap a script; return a function that sets its text."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setattr(build, "check_machine", lambda cache: None)
    with tarfile.open(tmp_path / "root.tar", "w") as archive:
        for name, data in (("./boot/vmlinuz-6", kernel()), ("./var/lib/dpkg/status", STATUS.encode()),
                           ("./etc/hostname", b"h\n"), ("./etc/ssh/ssh_host_rsa_key", b"secret")):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))

    def write(text):
        (folder / "mmdebstrap").write_text(f"#!/bin/sh\n{text}\n")
        (folder / "mmdebstrap").chmod(0o755)

    # The penultimate arguments: suite, file, three sources.
    write(f'while [ $# -gt 4 ]; do shift; done; cp {tmp_path}/root.tar "$1"')
    return write


@pytest.mark.slow
@needs_programs
def test_what_is_built_is_complete_and_taken_from_the_cache(recipe, debian, tmp_path):
    told = []
    builder = Builder(tmp_path / "cache", told.append)

    folder = builder.build(recipe)

    assert sorted(path.name for path in folder.iterdir()) == sorted(build.FILES)
    assert sorted(path.name for path in (tmp_path / "cache").iterdir()) == [
        recipe.digest(), f"{recipe.digest()}.log", "lock"]
    assert (folder / build.CONTENT).read_text().splitlines()[1:3] == ["base 1-2", "other 3"]
    unpacked = subprocess.run(["zstd", "-dc", str(folder / build.RAMDISK)], capture_output=True, check=True).stdout
    assert [unpacked.count(name) for name in (b"etc/hostname\0", b"vmlinuz", b"ssh_host")] == [1, 0, 0]
    before = (folder / build.ISO).read_bytes()
    debian("exit 1")
    assert builder.build(recipe) == folder
    assert told[-1].startswith("Nothing to build")
    with pytest.raises(ConfigurationError, match="mmdebstrap failed with status 1"):
        builder.build(recipe, again=True)
    is_same = (folder / build.ISO).read_bytes() == before
    assert is_same


def test_a_failed_build_tells_its_last_lines_and_leaves_only_the_log(recipe, debian, tmp_path):
    (tmp_path / "cache" / ".building-x" / "files").mkdir(parents=True)  # of a build that was killed
    for text, told in (("echo E: no such package; exit 100", "  E: no such package"),
                       ("echo cannot write: No space left on device >&2; exit 1", "because the disk is full"),
                       (f"truncate -s 20480 {tmp_path}/empty; while [ $# -gt 4 ]; do shift; done; "
                        f'mv {tmp_path}/empty "$1"', "contain no kernel")):
        debian(text)
        with pytest.raises(ConfigurationError, match=told):
            Builder(tmp_path / "cache", lambda line: None).build(recipe)
        assert sorted(path.name for path in (tmp_path / "cache").iterdir()) == [f"{recipe.digest()}.log", "lock"]


def test_an_interrupted_build_leaves_nothing_and_ends_its_programs(recipe, debian, tmp_path, monkeypatch, capsys):
    mark = hanging(debian, tmp_path)
    (tmp_path / "agent.txt").write_text(recipe.requirements)
    monkeypatch.setattr(sys, "argv", [ramdisk.PROG])
    previous = signal.getsignal(signal.SIGTERM)

    def interrupt():
        wait_for("the program", (tmp_path / "runs").exists)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=interrupt, daemon=True).start()
    try:
        status = ramdisk.main(["build", "--cache", f"{tmp_path}/cache", "--output", f"{tmp_path}/out",
                               "--agent-requirements", f"{tmp_path}/agent.txt"])
    finally:
        signal.signal(signal.SIGTERM, previous)

    assert status == 130
    assert "interrupted" in capsys.readouterr().err
    assert sorted(path.name for path in (tmp_path / "cache").iterdir()) == [f"{recipe.digest()}.log", "lock"]
    assert not (tmp_path / "out").exists()
    assert running_with(mark) == []


def hanging(debian, folder):
    """Let mmdebstrap mount a file system and hang, with a child, both without regard to signals; return their mark."""
    mark = f"300.{secrets.randbelow(10**9):09}"
    mounting = 'mkdir "$TMPDIR/root" && mount -t tmpfs tmpfs "$TMPDIR/root"; ' if os.geteuid() == 0 else ""
    debian(f"trap '' TERM INT HUP; {mounting}sleep {mark} & touch {folder}/runs; sleep {mark}")
    return mark


def running_with(mark):
    """Return the processes with an argument."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if f"\0{mark}\0".encode() in file.read_bytes():
                found.append(file.parent.name)
    return found


@pytest.mark.skipif(not programs._can_contain(), reason="namespaces are not permitted here")
def test_of_a_killed_build_no_process_and_no_mount_is_left(recipe, debian, tmp_path):
    mark, told = hanging(debian, tmp_path), []
    builder = Builder(tmp_path / "cache", told.append)
    process = multiprocessing.get_context("fork").Process(target=builder.build, args=(recipe,))
    process.start()
    wait_for("the program", (tmp_path / "runs").exists)
    assert len(running_with(mark)) >= 1
    process.kill()
    process.join()

    wait_for("the end of its programs", lambda: running_with(mark) == [])
    assert build._mounts_below(tmp_path) == []
    debian("echo E: no such package; exit 100")
    with pytest.raises(ConfigurationError, match="no such package"):
        builder.build(recipe)
    assert sorted(path.name for path in (tmp_path / "cache").iterdir()) == [f"{recipe.digest()}.log", "lock"]


@walking("name, value, text", [
    ("platform", SimpleNamespace(machine=lambda: "aarch64"), "This machine is aarch64, and the recipe makes ramdisks "
                                                             "for x86_64 only"),
    ("os", SimpleNamespace(geteuid=lambda: 1000), "needs root"),
    ("PROGRAMS", (Program("no-such-program", "some-package"),), "Missing on this machine: .*no-such-program.*apt-get "
                                                                "install .*some-package"),
    ("NEEDED", 10**18, "GB free, and a build needs 1000000000.0 GB"),
])
def test_a_machine_that_cannot_build_is_told_why(name, value, text, tmp_path):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "os", SimpleNamespace(geteuid=lambda: 0))
        if name == "NEEDED":
            patch.setattr(build, "PROGRAMS", ())
            patch.setattr(build.iso, "PROGRAMS", ())
        patch.setattr(build, name, value)
        with pytest.raises(ConfigurationError, match=text):
            build.check_machine(tmp_path)


def test_arguments_that_cannot_be_used_are_told(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", [ramdisk.PROG])
    (tmp_path / "kernel").write_bytes(b"x")
    monkeypatch.setattr(ramdisk.programs, "check", lambda wanted: None)

    for arguments, text in (
            (["build", "--ca-file", f"{tmp_path}/none"], "none: No such file or directory"),
            (["build", "--cache", f"{tmp_path}/kernel"], "kernel cannot be written: File exists"),
            (["build", "--package", "a b"], "a b is not the name of a package"),
            (["iso", "--kernel", f"{tmp_path}/kernel", "--ramdisk", f"{tmp_path}/kernel", "--output",
              f"{tmp_path}/o"], "it is not a Linux kernel")):
        assert ramdisk.main(arguments) == 2
        assert text in capsys.readouterr().err


def test_a_program_that_is_a_file_is_looked_for_where_it_belongs(tmp_path):
    with pytest.raises(ConfigurationError, match="grub-pc-bin"):
        programs.check([Program(f"{tmp_path}/boot_hybrid.img", "grub-pc-bin")])
    programs.check([Program(sys.executable, "python3"), Program("sh", "dash")])
