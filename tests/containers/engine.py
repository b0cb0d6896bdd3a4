"""Podman and buildah as tests use them: with storage of their own, and on machines that have no registry of images."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = ROOT / "etc" / "container"
#: Built, or named by the variable, which leaves the images on the machine: for those who work on the tests.
IMAGE, SERVERS = "localhost/ironic-rules:latest", "localhost/ironic-rules-servers:latest"
BUILT = os.environ.get("IRONIC_RULES_TEST_IMAGES_ARE_BUILT") == "1"
_PROGRAMS = ("podman", "buildah", "runc", "mmdebstrap")
#: Files and folders by which this machine reaches its package indexes: builds may need them, images do not have them.
_REACH = ("/etc/pip.conf", "/etc/xdg/pip", "/etc/ssl/certs/ca-certificates.crt")


def missing() -> str | None:
    """Return why containers cannot run here, or None."""
    if os.geteuid() != 0:
        return "it needs root"
    if absent := [name for name in _PROGRAMS if shutil.which(name) is None]:
        return f"not installed: {', '.join(absent)}"
    return None


class Engine:
    """Runs podman and buildah.

    :param environment: variables that give them their settings
    """

    def __init__(self, environment: dict[str, str]) -> None:
        self.environment = {**os.environ, **environment}

    def run(self, *command: str | Path, check: bool = True, timeout_s: float = 600,
            cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run a command; with ``check``, fail with what it printed."""
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False, cwd=cwd,
                              env=self.environment)
        assert not check or done.returncode == 0, f"{command}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
        return done

    def build(self, file: str, tag: str, base: str, *arguments: str) -> None:
        """Build an image as the page on containers says."""
        reach = [path for path in _REACH if os.path.exists(path)]
        volumes = [f"{path}:{path}:ro" for path in reach]
        self.run("buildah", "build", "--isolation", "chroot", "--format", "docker", "--ignorefile", FILES / "ignore",
                 "-f", FILES / file, "--build-arg", f"BASE={base}", *arguments,
                 *(part for volume in volumes for part in ("-v", volume)), "-t", tag, ROOT)

    @contextmanager
    def container(self, *arguments: str, options: Sequence[str] = (), image: str = IMAGE) -> Iterator[Container]:
        """Run a container with a read-only file system and without privileges, and remove it at the end."""
        name = self.run("podman", "run", "-d", "--read-only", "--tmpfs", "/tmp", "--cap-drop", "all",
                        "--security-opt", "no-new-privileges", *options, image, *arguments).stdout.strip()
        try:
            yield Container(self, name)
        finally:
            self.run("podman", "rm", "-f", "-v", name, check=False)


class Container:
    """A running container."""

    def __init__(self, engine: Engine, name: str) -> None:
        self._engine, self.name = engine, name

    def execute(self, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a command in it."""
        return self._engine.run("podman", "exec", self.name, *command, check=check)

    def log(self) -> str:
        """Return what it has printed."""
        done = self._engine.run("podman", "logs", self.name)
        return done.stdout + done.stderr

    def is_well(self, role: str = "") -> bool:
        """Return whether its health check succeeds; fail if it has ended."""
        assert self.state() == "running", self.log()
        return self.execute("ironic-rules-container", "healthcheck", *filter(None, [role]), check=False).returncode == 0

    def state(self) -> str:
        """Return ``running``, ``exited`` and so on."""
        return self._engine.run("podman", "inspect", "--format", "{{.State.Status}}", self.name).stdout.strip()

    def stop(self) -> int:
        """Send SIGTERM, and return the status with which it ends."""
        self._engine.run("podman", "stop", "-t", "60", self.name)
        return int(self._engine.run("podman", "inspect", "--format", "{{.State.ExitCode}}", self.name).stdout)


def until(what: str, probe: Callable[[], object], timeout_s: float = 120) -> None:
    """Wait until ``probe()`` is true; it starts a process, so that it is not called all the time."""
    deadline = time.monotonic() + timeout_s
    while not probe():
        assert time.monotonic() < deadline, f"timed out: {what}"
        time.sleep(1)


@contextmanager
def prepared() -> Iterator[Engine]:
    """Yield an engine whose images and containers are removed at the end."""
    if reason := missing():
        pytest.skip(reason)
    with tempfile.TemporaryDirectory(prefix="ironic-rules-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        # crun does not run where control groups are read-only; runc does, with limits that it may set.
        (folder / "containers.conf").write_text(
            '[engine]\nruntime = "runc"\n[containers]\n'
            'default_ulimits = ["nofile=1024:1024", "nproc=1000:1000"]\n')
        environment = {"CONTAINERS_CONF": str(folder / "containers.conf")}
        if BUILT:
            yield Engine(environment)
            return
        (folder / "storage.conf").write_text(
            f'[storage]\ndriver = "overlay"\ngraphroot = "{folder}/storage"\nrunroot = "{folder}/run"\n')
        engine = Engine({**environment, "CONTAINERS_STORAGE_CONF": str(folder / "storage.conf")})
        try:
            yield engine
        finally:
            engine.run("podman", "rm", "-a", "-f", "-v", check=False)
            engine.run("podman", "rmi", "-a", "-f", check=False)


def build_base(engine: Engine, folder: Path) -> str:
    """Make Debian's root file system without a registry, as the page says; return the name of the image."""
    name = "localhost/debian:bookworm-slim"
    tar = folder / "base.tar"
    engine.run("mmdebstrap", "--variant=minbase", "--include=ca-certificates", "bookworm", tar)
    engine.run("podman", "import", tar, name)
    tar.unlink()
    return name
