"""The set-up of the lab: the service as the page "From a rack to nodes" installs it, and virtual hardware."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import httpx

from ironic_rules.lab import host, machines, timeline
from ironic_rules.lab.host import PATH, LabError, run
from ironic_rules.lab.machines import Machine
from ironic_rules.lab.programs import Programs, Recorder, last_lines, wait_for
from ironic_rules.models.documents import JSONObject

#: Files of the ramdisk, by the names that the page's configuration has.
RAMDISK = ("vmlinuz", "initrd", "ipa.iso")
#: The interface and the addresses that the samples have: of dnsmasq, of the API and the web server, and of the BMC.
INTERFACE = "eth1"
SERVICE, BMC = "192.0.2.10", "192.0.2.2"
BMC_PORT, API_PORT = 8000, 6385
USER, PASSWORD = "admin", "SECRET"
_STATE = Path("/var/lib/ironic-rules")
_HTTP = _STATE / "httpboot"
#: Modules of libvirt's Python interface, in a package of the distribution.
_LIBVIRT = ("libvirt.py", "libvirtmod*.so", "libvirt_qemu.py", "libvirtaio.py")
#: Seconds that a program may take to start on a busy computer.
START_S = 180


@dataclass(frozen=True)
class Settings:
    """The choices of the user.

    :ivar folder: of the lab;  run_folder: of this run's logs and consoles;  ramdisk: folder with the files of RAMDISK
    :ivar quiet_s: seconds without any event after which a boot has failed
    """

    folder: Path
    run_folder: Path
    ramdisk: Path
    accelerator: str
    memory_mib: int
    processors: int
    quiet_s: float


def commands(step: str) -> str:
    """Return the commands of a section of the page."""
    return resources.files(__package__).joinpath("rack", f"{step}.sh").read_text(encoding="utf-8")


def environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of the page's commands, with its settings for the client."""
    return {"PATH": PATH, "HOME": "/root", "LANG": "C.UTF-8", "OS_AUTH_TYPE": "http_basic", "OS_USERNAME": USER,
            "OS_PASSWORD": PASSWORD, "OS_ENDPOINT": f"http://{SERVICE}:{API_PORT}", **variables}


def started_units() -> list[str]:
    """Return the units that the page starts."""
    line = next(line for line in commands("start").splitlines() if "enable --now" in line)
    return line.partition("--now ")[2].split()


class Rig:
    """Everything that runs, in the namespaces of this process."""

    def __init__(self, settings: Settings, recorder: Recorder) -> None:
        self.settings = settings
        self.recorder = recorder
        self.programs = Programs(settings.run_folder)
        self.machines: dict[str, Machine] = {}
        self._work = settings.folder / "machine"
        self._http = httpx.Client(base_url=f"http://{SERVICE}:{API_PORT}", auth=(USER, PASSWORD), timeout=60,
                                  headers={"X-OpenStack-Ironic-API-Version": "1.96"}, trust_env=False)

    def set_up(self) -> None:
        """Start everything but machines."""
        host.separate(self.settings.folder, {
            "/var/log": self.settings.run_folder / "log", "/var/lib/libvirt": self._work / "libvirt",
            "/var/cache/libvirt": self.settings.folder / "libvirt-cache",
            str(_STATE): self._work / "state", "/var/tmp": self._work / "tmp"},
            hides_kvm=self.settings.accelerator != "kvm")
        host.connect((f"192.0.2.1/{24}", f"{SERVICE}/24", f"{BMC}/24"), INTERFACE)
        for folder in ("nginx", "libvirt/qemu"):
            Path("/var/log", folder).mkdir(parents=True)
        self.commands("users")
        for name in RAMDISK:
            if (self.settings.ramdisk / name).exists():
                (_HTTP / name).symlink_to(self.settings.ramdisk / name)
        for step in ("web-server", "dhcp", "service"):
            self.commands(step)
        for unit in started_units():
            self._start(unit)
        self._start_hardware()

    def _start(self, unit: str) -> None:
        recorder = self.recorder
        if unit == "nginx":  # its unit is the distribution's
            recorder.follow("web", Path("/var/log/nginx/access.log"))
            self.programs.start("nginx", ["nginx", "-g", "daemon off;"])
            self._reachable("the web server", f"http://{SERVICE}:8080/", but=404)
        elif unit == "ironic-rules":
            recorder.follow("api", _STATE / "ironic-rules.log")
            self.programs.start_unit(unit)
            self._reachable("the service", f"http://{SERVICE}:{API_PORT}/healthcheck", but=200)
        else:  # without systemd, no one reads what dnsmasq sends to syslog
            recorder.follow("dhcp", self.programs.log_of(unit))
            self.programs.start_unit(unit, arguments=["--log-facility=-"])
            wait_for(unit, Path("/run", unit, "pid").exists, START_S, self.programs.check)
        recorder.note("lab", f"{unit} runs")

    def _start_hardware(self) -> None:
        import bcrypt  # of an extra: the help of the command needs none

        folder = self._work / "bmc"
        folder.mkdir(parents=True)
        for file, text in machines.libvirt_files(Path("/etc/libvirt")).items():
            file.write_text(text, encoding="utf-8")
        shutil.rmtree("/etc/libvirt/qemu", ignore_errors=True)  # the host's machines and networks
        images = folder / "images"
        images.mkdir()
        (folder / "tmp").mkdir()
        (folder / "pool.xml").write_text(machines.pool(images), encoding="utf-8")
        self.programs.start("libvirtd", ["libvirtd"])
        wait_for("libvirtd", lambda: _succeeds("virsh", "connect", "qemu:///system"), START_S, self.programs.check)
        run(["virsh", "pool-define", str(folder / "pool.xml")])
        run(["virsh", "pool-start", "default"])
        config = folder / "emulator.conf"
        config.write_text(machines.emulator_config(BMC, BMC_PORT, folder / "users", folder), encoding="utf-8")
        # It checks the password at each request.
        hashed = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode()
        (folder / "users").write_text(f"{USER}:{hashed}\n", encoding="ascii")
        self.recorder.follow("bmc", self.programs.log_of("bmc"))
        self.programs.start("bmc", [str(Path(sys.executable).with_name("sushy-emulator")), "--config", str(config)],
                            environment={"TMPDIR": str(folder / "tmp"), **_with_libvirt(folder)})
        self._reachable("the BMC", f"http://{BMC}:{BMC_PORT}/redfish/v1/", but=200)
        self.recorder.note("lab", "the BMC runs")

    def _reachable(self, name: str, url: str, but: int) -> None:
        def answers() -> bool:
            try:
                return httpx.get(url, timeout=20, trust_env=False).status_code in (200, 403, but)
            except httpx.HTTPError:
                return False

        wait_for(name, answers, START_S, self.programs.check)

    def machine(self, name: str, firmware: str, *, has_unplugged_adapter: bool = False, clock_s: int = 0) -> Machine:
        """Return the machine of this name, which is made if there is none."""
        if name not in self.machines:
            settings = self.settings
            new = Machine(name, firmware, settings.run_folder / "machines", settings.memory_mib, settings.processors,
                          settings.accelerator, INTERFACE, has_unplugged_adapter, clock_s)
            new.define()
            self.machines[name] = new
            self.recorder.follow(f"console of {name}", new.console)
        return self.machines[name]

    def work_folder(self, name: str) -> Path:
        """Return a folder for temporary files."""
        return self._work / name

    def published(self, name: str) -> Path:
        """Return where a file is that the web server serves."""
        return _HTTP / name

    def url_of(self, name: str) -> str:
        return f"http://{SERVICE}:8080/{name}"

    def commands(self, step: str, variables: Mapping[str, str] | None = None,
                 meanwhile: Callable[[], None] = lambda: None) -> None:
        """Run the commands of a section of the page.

        :param meanwhile: called every second; raises where waiting is useless
        :raises LabError: a command fails; the text has its last lines
        """
        file = self.settings.run_folder / f"commands-{step}.log"
        with file.open("wb") as log:
            process = subprocess.Popen(["bash", "-e", "-x", "-c", commands(step)], stdin=subprocess.DEVNULL, stdout=log,
                                       stderr=log, env=environment(variables or {}), start_new_session=True)
        try:
            while process.poll() is None:
                self.programs.check()
                meanwhile()
                time.sleep(1 if meanwhile.__name__ != "<lambda>" else 0.1)
            meanwhile()
        finally:
            if process.poll() is None:
                os.killpg(process.pid, 9)
                process.wait()
        if process.returncode:
            raise LabError(f"the commands of {step} have failed:\n{last_lines(file)}")

    def nodes(self) -> list[JSONObject]:
        """Return all nodes, complete."""
        answer = self._get("/v1/nodes/detail")
        nodes: list[JSONObject] = answer["nodes"]
        return nodes

    def node(self, name: str) -> JSONObject:
        return self._get(f"/v1/nodes/{name}")

    def addresses(self, name: str) -> list[str]:
        """Return the addresses of a node's ports."""
        return [port["address"] for port in self._get(f"/v1/ports?node={name}")["ports"]]

    def history(self, name: str) -> list[str]:
        """Return the events of a node's history, the oldest first."""
        entries = self._get(f"/v1/nodes/{name}/history?detail=True")["history"]
        return [entry["event"] for entry in sorted(entries, key=lambda entry: str(entry["created_at"]))]

    def _get(self, path: str) -> JSONObject:
        for tries in range(5):
            try:
                answer = self._http.get(path)
                if answer.status_code < 500:
                    answer.raise_for_status()
                    document: JSONObject = answer.json()
                    return document
            except httpx.TransportError:
                if tries == 4:
                    raise
            time.sleep(1)
        raise LabError(f"the API answers {answer.status_code} to {path}")

    def tear_down(self) -> None:
        """End everything in order, so that logs are complete. A failed process ends with the namespaces."""
        for machine in list(self.machines.values()):
            try:
                machine.remove()
            except LabError:
                continue
        self.programs.stop()
        self._http.close()
        if (log := _STATE / "ironic-rules.log").exists():
            shutil.copy(log, self.settings.run_folder / log.name)


def failure(events: Sequence[timeline.Event], path: Sequence[str], machine: Machine) -> str:
    """Return why a boot has failed: the missing step, and the last lines of the console."""
    step = timeline.missing(path, events)
    return (f"missing step: {step}\n" if step else "") + f"the console of {machine.name} ends with:\n" \
        f"{last_lines(machine.console, 12)}"


def _succeeds(*command: str) -> bool:
    try:
        run(command, timeout_s=60)
    except LabError:
        return False
    return True


def _with_libvirt(folder: Path) -> dict[str, str]:
    """Return the environment in which Python finds libvirt's module, also where it is a package of the distribution."""
    if importlib.util.find_spec("libvirt") is not None:
        return {}
    python_folder = folder / "python"
    python_folder.mkdir()
    for pattern in _LIBVIRT:
        for file in Path("/usr/lib/python3/dist-packages").glob(pattern):
            (python_folder / file.name).symlink_to(file)
    return {"PYTHONPATH": str(python_folder)}
