"""The scenarios of the lab: the sections of the page "From a rack to nodes", run on virtual machines and checked."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Mapping, Sequence

from ironic_rules.lab import instance, timeline
from ironic_rules.lab.host import LabError
from ironic_rules.lab.machines import TWO_YEARS_S, Machine
from ironic_rules.lab.programs import wait_for
from ironic_rules.lab.rig import BMC, BMC_PORT, PASSWORD, USER, Rig, failure
from ironic_rules.models.documents import JSONObject

#: Steps whose errors no machine survives.
_FATAL = ("kernel", "ramdisk", "linux")
#: The machine that the page discovers, and the one that it enrolls.
FIRST, SECOND = "first", "second"
#: A machine with faults.
THIRD = "third"
DHCP, DHCP_AFTER_S = "ironic-rules-dnsmasq", 12
#: Seconds that a boot may take on a busy computer.
BOOT_S = 1200


class Scenarios:
    """The scenarios on one rig. Each can be run alone, and begins with what the page does before."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self._states: dict[str, str] = {}

    def discover(self) -> None:
        """Switch on a machine that no one has enrolled, and wait for its node."""
        machine = self.rig.machine(FIRST, "uefi")
        watch = Watch(self.rig, machine, (*timeline.PATHS["ipxe-uefi"], "report"))
        machine.switch_on()
        self.rig.recorder.note("power", f"the power button of {machine.name} is pressed")
        node = self._discovered(watch)
        self.rig.commands("discovered")
        self._tell_rules(str(node["uuid"]))
        if node["provision_state"] != "enroll":
            raise LabError(f"the discovered node is in {node['provision_state']}: {node['last_error']}")
        machine.cut_power()
        self.rig.recorder.note("power", f"the operator switches {machine.name} off")

    def _discovered(self, watch: Watch) -> JSONObject:
        while True:
            discovered = [node for node in self.rig.nodes() if node["auto_discovered"]]
            for node in discovered:
                self._note_state(node)
                if node["provision_state"] in ("enroll", "inspect failed"):
                    return node
            self.rig.programs.check()
            watch.check()
            time.sleep(1)

    def inspect_by_ipxe(self) -> None:
        """Enroll a machine with BIOS, which the service boots over the network for its inspection."""
        machine = self.rig.machine(SECOND, "bios")
        self._run("enroll", machine, {"NAME": SECOND, "MAC": machine.mac, "BOOT": "ipxe"})
        self._run("inspect", machine, {"NAME": SECOND}, (*timeline.PATHS["ipxe-bios"], "report"))
        self._is_off(machine)

    def inspect_by_virtual_media(self) -> None:
        """Inspect a machine with UEFI, which the service boots from a virtual medium."""
        machine = self._managed()
        self._run("virtual-media", machine, {})
        self._run("inspect", machine, {"NAME": FIRST}, (*timeline.PATHS["virtual-media"], "report"))
        self._is_off(machine)

    def clean(self) -> None:
        """Make a managed node available, which cleans its disks."""
        machine = self._managed()
        self._run("provide", machine, {}, self._path(machine))

    def deploy(self) -> None:
        """Deploy an image with a step of a template and a config drive, and end the instance again."""
        machine = self._available()
        checksum = instance.make(self.rig.work_folder("instance"), self.rig.published("instance.qcow2"))
        # The instance may start before the commands have ended.
        started = Watch(self.rig, machine, timeline.PATHS["disk"])
        self._run("deploy", machine, {"IMAGE": self.rig.url_of("instance.qcow2"), "CHECKSUM": checksum},
                  self._path(machine))
        self._has_run_step("deploy.erase_devices_metadata", "template CUSTOM_EMPTY_DISKS")
        self._wait_for_instance(started)
        wait_for("the name of the instance on the console", lambda: "first-instance" in self._console(machine),
                 self.rig.settings.quiet_s, started.check)
        self.rig.recorder.note("instance", "its console shows the name that the config drive has")

    def rescue(self) -> None:
        """Rescue a machine with an instance, and end that."""
        if self.rig.node(FIRST)["provision_state"] != "active":
            self.deploy()
        machine = self.rig.machines[FIRST]
        self._run("rescue", machine, {}, self._path(machine))
        started = Watch(self.rig, machine, timeline.PATHS["disk"])
        self._run("unrescue", machine, {})
        self._wait_for_instance(started)

    def undeploy(self) -> None:
        """End the instance; the machine is cleaned."""
        machine = self.rig.machines[FIRST]
        self._run("undeploy", machine, {}, self._path(machine))
        self._is_off(machine)

    def faults(self) -> None:
        """Inspect a machine with a wrong clock, an adapter without a link, a slow DHCP server, and a power failure.

        The agent starts twice: the power fails when it has started.
        """
        machine = self.rig.machine(THIRD, "bios", has_unplugged_adapter=True, clock_s=-TWO_YEARS_S)
        self._run("enroll", machine, {"NAME": THIRD, "MAC": machine.mac, "BOOT": "ipxe"})
        began = datetime.datetime.now(datetime.UTC)
        first = len(self.rig.recorder.events)
        self.rig.programs.pause(DHCP, True)
        self._run("inspect", machine, {"NAME": THIRD}, (*timeline.PATHS["ipxe-bios"], "report"),
                  Faults(self.rig, machine).happen)
        self._is_off(machine)
        if (starts := sum(event.step == "agent start" for event in self.rig.recorder.since(first))) < 2:
            raise LabError(f"the agent has started {starts} times, and was to start twice")
        node = self.rig.node(THIRD)
        finished = datetime.datetime.fromisoformat(str(node["inspection_finished_at"]))
        if not began <= finished <= datetime.datetime.now(datetime.UTC):
            raise LabError(f"the clock of the machine has reached the service: finished at {finished}")
        if (macs := sorted(self.rig.addresses(THIRD))) != sorted(machine.adapters):
            raise LabError(f"the node has the ports {macs}, and the machine the adapters {machine.adapters}")

    def discover_again(self) -> None:
        """Switch a discovered machine on again: DHCP does not answer it, and its node stays as it is."""
        machine = self.rig.machine(FIRST, "uefi")
        before = self.rig.nodes()
        watch = Watch(self.rig, machine, ("dhcp request",))
        machine.switch_on()
        self.rig.recorder.note("power", f"{machine.name} is switched on again")
        wait_for("the DHCP server to ignore it", lambda: watch.has_happened("dhcp", is_error=True),
                 self.rig.settings.quiet_s, watch.check)
        machine.cut_power()
        if watch.has_happened("dhcp", is_error=False):
            raise LabError("the DHCP server has answered a machine that is enrolled, and that no one inspects")
        if [(node["uuid"], node["provision_state"]) for node in before] != [
                (node["uuid"], node["provision_state"]) for node in self.rig.nodes()]:
            raise LabError(f"the second start of a machine has changed the nodes: {self.rig.nodes()}")

    def _managed(self) -> Machine:
        """Return the first machine, whose node is enrolled and managed as far as it is not."""
        machine = self.rig.machine(FIRST, "uefi")
        node = next((node for node in self.rig.nodes() if node["name"] in (FIRST, None)), None)
        if node is None:
            self._run("enroll", machine, {"NAME": FIRST, "MAC": machine.mac, "BOOT": "ipxe"})
        elif node["provision_state"] == "enroll":
            self._run("manage", machine, {"NODE": str(node["uuid"])})
        return machine

    def _available(self) -> Machine:
        machine = self._managed()
        if self.rig.node(FIRST)["provision_state"] != "available":
            self.clean()
        return machine

    def _path(self, machine: Machine) -> Sequence[str]:
        boot = self.rig.node(machine.name)["boot_interface"]
        return timeline.PATHS["virtual-media" if boot == "redfish-virtual-media" else f"ipxe-{machine.firmware}"]

    def _has_run_step(self, *texts: str) -> None:
        if not any(all(text in event for text in texts) for event in self.rig.history(FIRST)):
            raise LabError(f"the history has no step {' '.join(texts)}: {self.rig.history(FIRST)}")

    def _console(self, machine: Machine) -> str:
        return machine.console.read_bytes()[-65536:].decode(errors="replace")

    def _wait_for_instance(self, started: Watch) -> None:
        wait_for("the instance", started.is_complete, self.rig.settings.quiet_s, started.check)

    def _is_off(self, machine: Machine) -> None:
        wait_for(f"{machine.name} to be off", lambda: not machine.is_on(), 120)

    def _run(self, step: str, machine: Machine, variables: Mapping[str, str],
             path: Sequence[str] = (), meanwhile: Callable[[], None] = lambda: None) -> None:
        """Run commands of the page on the node of a machine, whose boot takes ``path``."""
        watch = Watch(self.rig, machine, path)
        self.rig.recorder.note("commands", step)

        def look() -> None:
            for node in self.rig.nodes():
                self._note_state(node)
                if str(node["provision_state"]).endswith(("failed", "error")):
                    raise LabError(f"node {node['name'] or node['uuid']} is in {node['provision_state']}: "
                                   f"{node['last_error']}\n{watch.failure()}")
            watch.check()
            meanwhile()

        self.rig.commands(step, {**_bmc_of(machine), **variables}, look)
        watch.end()
        if step == "inspect":
            self._tell_rules(variables["NAME"])

    def _note_state(self, node: JSONObject) -> None:
        uuid, state = str(node["uuid"]), f"{node['provision_state']}, {node['power_state']}"
        if self._states.get(uuid) != state:
            self._states[uuid] = state
            self.rig.recorder.note("state", f"{node['name'] or uuid}: {state}")

    def _tell_rules(self, name: str) -> None:
        finished = [event for event in self.rig.history(name) if event.startswith("Inspection finished")]
        if finished:
            self.rig.recorder.note("rules", finished[-1])


class Faults:
    """Faults during an inspection: DHCP answers after 12 seconds, and the power fails when the agent has started."""

    def __init__(self, rig: Rig, machine: Machine) -> None:
        self._rig = rig
        self._machine = machine
        self._first = len(rig.recorder.events)
        self._on_at: float | None = None
        self._answers = self._has_failed = False

    def happen(self) -> None:
        now = self._rig.recorder.now()
        if self._on_at is None:
            self._on_at = now if self._machine.is_on() else None
        elif not self._answers:
            if now - self._on_at >= DHCP_AFTER_S:
                self._rig.programs.pause(DHCP, False)
                self._rig.recorder.note("fault", f"the DHCP server answers after {now - self._on_at:.0f} s")
                self._answers = True
        elif not self._has_failed and any(
                event.step == "agent start" for event in self._rig.recorder.since(self._first)):
            self._machine.cut_power()
            self._rig.recorder.note("fault", "the power fails, and returns")
            self._has_failed = True
            time.sleep(3)
            self._machine.switch_on()


class Watch:
    """The events of a machine from now on."""

    def __init__(self, rig: Rig, machine: Machine, path: Sequence[str]) -> None:
        self._rig = rig
        self._machine = machine
        self._path = path
        self._first = len(rig.recorder.events)

    def check(self) -> None:
        """Check that something has happened lately, and nothing that ends the boot.

        :raises LabError: the text names the missing step
        """
        events = self._rig.recorder.since(self._first)
        now = self._rig.recorder.now()
        last = events[-1].at if events else now
        ended = next((event for event in events if event.is_error and event.step in _FATAL), None)
        if ended is not None and now - ended.at > 5:
            raise LabError(f"the boot of {self._machine.name} has failed.\n{self.failure()}")
        if now - last > self._rig.settings.quiet_s:
            raise LabError(f"nothing has happened for {self._rig.settings.quiet_s:.0f} s.\n{self.failure()}")

    def is_complete(self) -> bool:
        """Return whether the machine has taken every step."""
        return timeline.missing(self._path, self._rig.recorder.since(self._first)) is None

    def has_happened(self, step: str, *, is_error: bool) -> bool:
        """Return whether a step has failed, or succeeded."""
        return any(event.step == step and event.is_error == is_error for event in self._rig.recorder.since(self._first))

    def failure(self) -> str:
        return failure(self._rig.recorder.since(self._first), self._path, self._machine)

    def end(self) -> None:
        """Check that the machine has taken every step.

        :raises LabError: one is missing, although the node is where it should be
        """
        if not self.is_complete():
            raise LabError(f"the node has ended as it should, but not in the way it should.\n{self.failure()}")


def _bmc_of(machine: Machine) -> dict[str, str]:
    return {"BMC": f"http://{BMC}:{BMC_PORT}", "SYSTEM": f"/redfish/v1/Systems/{machine.uuid}", "BMC_USER": USER,
            "BMC_PASSWORD": PASSWORD}


#: Name -> what it shows; ``all`` is all of them, in this order.
SCENARIOS = {
    "discover": "a machine that is not enrolled becomes a node (UEFI)",
    "inspect": "the service boots an enrolled machine and inspects it (--boot)",
    "clean": "a node becomes available, its disk is emptied",
    "deploy": "an image, a step of a template and a config drive; at the end the instance is removed",
    "rescue": "the machine of an instance is rescued",
    "faults": "an inspection with a wrong clock, an adapter without link, slow DHCP and a power failure (BIOS)",
}
BOOTS = ("ipxe", "virtual-media")


def run(rig: Rig, names: Sequence[str], boots: Sequence[str], within_s: float | None) -> None:
    """Run scenarios, in the order of ``SCENARIOS``.

    :param boots: by which ``inspect`` boots: of BOOTS
    :param within_s: no further one is begun after these seconds; they are named
    :raises LabError: something does not end as the page says
    """
    parts = parts_of(Scenarios(rig), names, boots)
    for number, (name, part) in enumerate(parts):
        if within_s is not None and rig.recorder.now() > within_s:
            rig.recorder.note("left out", f"for lack of time: {', '.join(name for name, _ in parts[number:])}")
            return
        rig.recorder.note("scenario", name)
        part()


def parts_of(scenarios: Scenarios, names: Sequence[str], boots: Sequence[str]) -> list[tuple[str, Callable[[], None]]]:
    """Return the parts of scenarios, in their order, with their names."""
    requested = set(SCENARIOS if "all" in names else names)
    table = (
        ("discover", "discover", scenarios.discover, True),
        ("discover", "switch it on again", scenarios.discover_again, True),
        ("inspect", "inspect by iPXE", scenarios.inspect_by_ipxe, "ipxe" in boots),
        ("inspect", "inspect by virtual media", scenarios.inspect_by_virtual_media, "virtual-media" in boots),
        ("clean", "clean", scenarios.clean, True),
        ("deploy", "deploy", scenarios.deploy, True),
        ("rescue", "rescue", scenarios.rescue, True),
        ("deploy", "undeploy", scenarios.undeploy, True),
        ("rescue", "undeploy", scenarios.undeploy, "deploy" not in requested),
        ("faults", "faults", scenarios.faults, True),
    )
    return [(name, part) for scenario, name, part, is_wanted in table if scenario in requested and is_wanted]
