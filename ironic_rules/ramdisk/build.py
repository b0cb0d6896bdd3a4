"""Building the ramdisk: Debian by mmdebstrap, the agent by pip, then the kernel, the initramfs and the ISO image.

A build is kept in a cache, under the digest of its recipe. A folder of the cache is complete or does not exist: the
files are made elsewhere, and the folder gets its name at the end.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, cast

from ironic_rules.exceptions import ConfigurationError
from ironic_rules.ramdisk import cpio, iso, programs
from ironic_rules.ramdisk.programs import Program
from ironic_rules.ramdisk.recipe import AGENT, ARCHITECTURE, EXCLUDED, INCLUDED, MACHINE, Recipe

KERNEL, RAMDISK, ISO, CONTENT = "vmlinuz", "initrd", "ipa.iso", "content.txt"
FILES = (KERNEL, RAMDISK, ISO, CONTENT)
PROGRAMS = (Program("mmdebstrap", "mmdebstrap"), Program("zstd", "zstd"), Program("apt-get", "apt"))
#: Bytes that a build needs for a time. Seen: 1.9 GB.
NEEDED = 2_500_000_000
_TEMPORARY = ".building-"
#: Level of zstd. A higher level takes much longer and makes the ramdisk hardly smaller.
_LEVEL = 9
_PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64")
#: Beginnings of paths that are of no use in a ramdisk, or that each machine must have of its own: keys and names.
_DROPPED = ("/boot/", "/var/cache/", "/var/log/", "/var/lib/apt/", "/var/lib/dpkg/info/", "/tmp/", "/run/", "/proc/",
            "/sys/", "/usr/lib/udev/hwdb.d/", f"{AGENT}/ironic_python_agent/tests/",
            "/etc/ssh/ssh_host_", "/etc/nvme/host")


class Builder:
    """Builds ramdisks into a cache.

    :param cache: its folder
    :param tell: gets a line about each step
    """

    def __init__(self, cache: Path, tell: Callable[[str], None]) -> None:
        self._cache = cache
        self._tell = tell

    def build(self, recipe: Recipe, *, again: bool = False) -> Path:
        """Return the folder with ``FILES``, from the cache if they are there.

        :param again: build them even then, with the versions that Debian has today
        :raises ConfigurationError: this machine cannot build it, or a step fails
        """
        folder = self._cache / recipe.digest()
        with self._locked():
            self._remove_left()
            if not again and is_complete(folder):
                self._tell(f"Nothing to build: {folder} has this recipe's ramdisk.")
                return folder
            check_machine(self._cache)
            with tempfile.TemporaryDirectory(dir=self._cache, prefix=_TEMPORARY) as name:
                work = Path(name)
                self._make(recipe, work, self._cache / f"{folder.name}.log")
                new = work / "files"
                old = work / "old"
                if folder.exists():
                    os.rename(folder, old)
                os.rename(new, folder)
        return folder

    def _make(self, recipe: Recipe, work: Path, log: Path) -> None:
        log.unlink(missing_ok=True)
        files, environment = work / "files", {"SOURCE_DATE_EPOCH": str(recipe.epoch), "TMPDIR": str(work),
                                              "PYTHONHASHSEED": "0", "INITRD": "No"}
        files.mkdir(mode=0o755)
        with self._step("Packages of the agent"):
            self._agent(recipe, work, environment, log)
        with self._step(f"Debian {recipe.suite} from {recipe.mirror}"):
            programs.run(self._debian(recipe, work), environment, log=log, is_contained=True)
        with self._step("Kernel and ramdisk"), tarfile.open(work / "root.tar") as archive:
            _kernel(archive, files / KERNEL)
            _ramdisk(archive, files / RAMDISK, recipe)
            (files / CONTENT).write_text(_content(archive, recipe), encoding="utf-8")
        (work / "root.tar").unlink()
        with self._step("ISO image"):
            iso.make_iso(files / KERNEL, files / RAMDISK, files / ISO, work, recipe.epoch)

    def _agent(self, recipe: Recipe, work: Path, environment: dict[str, str], log: Path) -> None:
        """Write ``own.tar``: packages of the agent, and the recipe's files."""
        (work / "requirements.txt").write_text(recipe.requirements, encoding="utf-8")
        abi = f"cp{recipe.python.replace('.', '')}"
        programs.run([
            sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--no-deps",
            "--no-compile", "--only-binary=:all:", "--implementation=cp", f"--python-version={recipe.python}",
            f"--abi={abi}", "--abi=abi3", "--abi=none", *(f"--platform={name}" for name in _PLATFORMS),
            f"--target={work / 'agent'}", "-r", str(work / "requirements.txt")], environment, log=log)
        shutil.rmtree(work / "agent" / "bin", ignore_errors=True)  # of the Python of this machine
        with tarfile.open(work / "own.tar", "w", format=tarfile.GNU_FORMAT) as archive:
            def add(path: str, mode: int, *, size: int = 0, target: str | None = None,
                    content: BinaryIO | None = None, kind: bytes = tarfile.REGTYPE) -> None:
                member = tarfile.TarInfo("." + path)
                member.mode, member.mtime, member.size, member.type = mode, recipe.epoch, size, kind
                member.linkname = target or ""
                archive.addfile(member, content)

            own = recipe.files()
            folders = {str(parent) for path in own for parent in Path(path).parents} - {"/"}
            for path in sorted(folders | {"/etc/ironic-python-agent.d", "/etc/ipa-rescue-config"}):
                add(path, 0o700 if path.startswith(("/root", "/etc/ipa-rescue")) else 0o755, kind=tarfile.DIRTYPE)
            for path, file in sorted(own.items()):
                if file.target is not None:
                    add(path, 0o777, target=file.target, kind=tarfile.SYMTYPE)
                else:
                    with tempfile.TemporaryFile(dir=work) as content:
                        content.write(file.content)
                        content.seek(0)
                        add(path, file.mode, size=len(file.content), content=content)
            for source in sorted((work / "agent").rglob("*")):
                path = f"{AGENT}/{source.relative_to(work / 'agent')}"
                if source.is_dir():
                    add(path, 0o755, kind=tarfile.DIRTYPE)
                else:
                    with source.open("rb") as file_content:
                        add(path, 0o644, size=source.stat().st_size, content=file_content)
        shutil.rmtree(work / "agent")

    def _debian(self, recipe: Recipe, work: Path) -> list[str]:
        """Return the command that writes ``root.tar``."""
        compiled = 'PYTHONHASHSEED=0 chroot "$1" python3 -m compileall -q --invalidation-mode=unchecked-hash'
        return [
            "mmdebstrap", "--mode=root", "--variant=essential", f"--architectures={ARCHITECTURE}",
            '--aptopt=APT::Install-Recommends "false"', '--aptopt=Acquire::Retries "3"',
            *(f"--dpkgopt=path-exclude={path}" for path in EXCLUDED),
            *(f"--dpkgopt=path-include={path}" for path in INCLUDED),
            f"--include={','.join(recipe.all_packages())}", f"--customize-hook=tar-in {work / 'own.tar'} /",
            *(['--customize-hook=chroot "$1" update-ca-certificates'] if recipe.certificates else []),
            f"--customize-hook={compiled} {AGENT} || test -d \"$1{AGENT}/ironic_python_agent/__pycache__\"",
            recipe.suite, str(work / "root.tar"), *recipe.sources()]

    @contextlib.contextmanager
    def _step(self, name: str) -> Iterator[None]:
        self._tell(f"{name} ...")
        begin = time.monotonic()
        yield
        self._tell(f"{name}: {time.monotonic() - begin:.0f} s")

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Wait until no other process builds in this cache."""
        try:
            self._cache.mkdir(parents=True, exist_ok=True)
            lock = (self._cache / "lock").open("a")
        except OSError as exc:
            raise ConfigurationError(f"The cache {self._cache} cannot be written: {exc.strerror}.") from exc
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self._tell("Waiting for another build in this cache ...")
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _remove_left(self) -> None:
        """Remove the files of a build that was killed."""
        for path in self._cache.glob(f"{_TEMPORARY}*"):
            # mmdebstrap mounts file systems of the machine below it, of which nothing must be removed.
            for mounted in reversed(_mounts_below(path)):
                subprocess.run(["umount", mounted], check=False)
            if mounts := _mounts_below(path):
                raise ConfigurationError(f"An interrupted build has left mounts, which cannot be ended: "
                                         f"{', '.join(mounts)}")
            shutil.rmtree(path)


def _mounts_below(folder: Path) -> list[str]:
    """Return the mount points below a folder, in the order in which they were mounted."""
    points = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()]
    return [point for point in points if point.startswith(f"{folder}/")]


def is_complete(folder: Path) -> bool:
    """Return whether a folder has all files."""
    return all((folder / name).is_file() for name in FILES)


def check_machine(cache: Path) -> None:
    """Check that this machine can build.

    :raises ConfigurationError: it cannot, with what it needs
    """
    if platform.machine() != MACHINE:
        raise ConfigurationError(f"This machine is {platform.machine()}, and the recipe makes ramdisks for {MACHINE} "
                                 "only: build it on such a machine.")
    if os.geteuid() != 0:
        raise ConfigurationError("Building needs root, for device nodes and the owners of files: use sudo.")
    programs.check((*PROGRAMS, *iso.PROGRAMS))
    if subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True, check=False).returncode:
        raise ConfigurationError(f"{sys.executable} has no pip, which installs the agent: {sys.executable} -m "
                                 "ensurepip, or apt-get install python3-pip")
    check_space(cache, NEEDED)


def check_space(folder: Path, needed: int) -> None:
    """Check that a file system has room.

    :param needed: in bytes
    :raises ConfigurationError: it has not
    """
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise ConfigurationError(f"{folder} has {free / 1e9:.1f} GB free, and a build needs {needed / 1e9:.1f} GB for "
                                 "a time: make room, or choose another folder with --cache.")


def _kernel(archive: tarfile.TarFile, out: Path) -> None:
    kernels = sorted((member for member in archive if cpio.absolute(member.name).startswith("/boot/vmlinuz-")),
                     key=lambda member: member.name)
    if not kernels:
        raise ConfigurationError("The packages contain no kernel.")
    content = archive.extractfile(kernels[-1])
    assert content is not None
    with out.open("wb") as file:
        shutil.copyfileobj(content, file)


def _ramdisk(archive: tarfile.TarFile, out: Path, recipe: Recipe) -> None:
    command = ["zstd", "-q", f"-{_LEVEL}", "-T0", "-o", str(out)]
    with programs.held_interruptions() as release, subprocess.Popen(
            command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            release()
            with contextlib.suppress(BrokenPipeError), cast(BinaryIO, process.stdin) as stream:
                cpio.from_tar(archive, stream, recipe.epoch, lambda path: not path.startswith(_DROPPED))
            assert process.stderr is not None
            errors = process.stderr.read().decode(errors="replace")
        except BaseException:  # an interruption, too: the program must not outlive this process
            process.terminate()
            raise
    if process.returncode:
        raise ConfigurationError(programs.failure("zstd", process.returncode, errors))


def _content(archive: tarfile.TarFile, recipe: Recipe) -> str:
    """Return a list of what is in the ramdisk: packages of Debian, and of the agent, with their versions."""
    status = archive.extractfile("./var/lib/dpkg/status")
    assert status is not None
    packages = []
    for paragraph in status.read().decode().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in paragraph.splitlines() if ": " in line and line[0] != " ")
        if "Package" in fields:
            packages.append(f"{fields['Package']} {fields['Version']}")
    return "\n".join([f"# Recipe {recipe.digest()}, Debian {recipe.suite}", *sorted(packages), "",
                      *recipe.requirements.splitlines(), ""])
