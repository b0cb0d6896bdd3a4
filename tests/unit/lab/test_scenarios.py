"""The parts of the scenarios, and their order; what is told of a boot that fails."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from ironic_rules.lab import scenarios, timeline
from ironic_rules.lab.host import LabError
from ironic_rules.lab.machines import Machine
from ironic_rules.lab.programs import Recorder
from ironic_rules.lab.scenarios import BOOTS, Scenarios
from ironic_rules.lab.timeline import PATHS
from tests.walking import walking


@walking("names, boots, parts", [
    (["discover"], BOOTS, "discover; switch it on again"),
    (["inspect"], BOOTS, "inspect by iPXE; inspect by virtual media"),
    (["inspect"], ["ipxe"], "inspect by iPXE"),
    (["deploy", "clean"], BOOTS, "clean; deploy; undeploy"),
    (["rescue"], BOOTS, "rescue; undeploy"),
    (["all"], BOOTS, "discover; switch it on again; inspect by iPXE; inspect by virtual media; clean; deploy; "
                     "rescue; undeploy; faults"),
])
def test_parts_follow_in_the_order_of_a_life(names: list[str], boots: list[str], parts: str) -> None:
    found = scenarios.parts_of(Scenarios(rig=None), names, boots)  # type: ignore[arg-type]

    assert [name for name, _ in found] == parts.split("; ")


KERNEL_404 = ('192.0.2.162 - - [28/Nov/2026:07:34:51 +0000] "GET /vmlinuz HTTP/1.1" 404 153 "-" "iPXE/1.0.0+"',
              "missing step: kernel: the web server answers 404 for /vmlinuz\n")
PANIC = ("[    4.2] Kernel panic - not syncing: VFS: Unable to mount root fs",
         "missing step: linux: Kernel panic - not syncing: VFS: Unable to mount root fs\n")


@walking("quiet_s, source, line, texts", [
    (600.0, "web", KERNEL_404[0], ["the boot of first has failed.\n", KERNEL_404[1]]),
    (600.0, "console of first", PANIC[0], ["the boot of first has failed.\n", PANIC[1]]),
    (4.0, "web", "", ["nothing has happened for 4 s.\n", "missing step: dhcp request: the machine has not requested an "
                      "address: its firmware does not boot over the network"]),
])
def test_a_boot_that_fails_is_told_with_the_missing_step_and_the_end_of_the_console(
        tmp_path: Path, quiet_s: float, source: str, line: str, texts: list[str]) -> None:
    now = [0.0]
    recorder = Recorder(lambda event: None)
    recorder.now = lambda: now[0]  # type: ignore[method-assign]
    machine = Machine("first", "uefi", tmp_path, 3072, 2, "tcg", "eth1")
    machine.console.write_text("BdsDxe: starting Boot0002\r\n\x1b[2Jthe last line\r\n")
    settings = SimpleNamespace(quiet_s=quiet_s)
    rig = SimpleNamespace(recorder=recorder, settings=settings)
    watch = scenarios.Watch(rig, machine, PATHS["ipxe-uefi"])  # type: ignore[arg-type]
    for step in ("power", "dhcp request", "dhcp", "loader", "script", "kernel", "ramdisk") if line else ("power",):
        if (step, source) != ("kernel", "web"):
            recorder.note(step, "done")
    if source.startswith("console"):
        recorder.note("linux", "Linux 6.12 starts")
    for event in timeline.events_of(source, line):
        recorder.note(*event)
    watch.check()  # what the machine does next may repair it
    now[0] = 5.5

    with pytest.raises(LabError) as failed:
        watch.check()
    text = str(failed.value)
    assert all(part in text for part in texts), text
    assert text.endswith("the console of first ends with:\n    BdsDxe: starting Boot0002\n    the last line")
