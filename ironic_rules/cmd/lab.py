"""``ironic-rules-lab``: machines that boot for real, on one computer, from the firmware to the deployed instance.

Exit status: 0 the scenario has ended as it should, 1 it has not, 2 the lab could not run, 130 or 143 by a signal.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import errno
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from ironic_rules.cmd import output
from ironic_rules.exceptions import ConfigurationError
from ironic_rules.lab import host, rig, scenarios, timeline
from ironic_rules.lab.host import LabError
from ironic_rules.lab.programs import Recorder

PROG = "ironic-rules-lab"
#: Runs whose logs are kept.
_KEPT_RUNS = 5
_STOP_S = 45
_LOCK = Path("/run/ironic-rules-lab.lock")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    return output.written(PROG, lambda: _run(sys.argv[1:] if argv is None else argv))


def parser() -> argparse.ArgumentParser:
    """Return the parser of the arguments."""
    options = argparse.ArgumentParser(prog=PROG, description=(
        "Starts the service, its DHCP and web servers, a BMC and virtual machines in namespaces of this computer, with "
        "the commands of the page 'From a rack to nodes', and prints what happens to the machines."),
        epilog="Scenarios: " + "; ".join(f"{name}: {text}" for name, text in scenarios.SCENARIOS.items()))
    options.add_argument("scenario", nargs="+", choices=[*scenarios.SCENARIOS, "all"], help="one or more; see below")
    options.add_argument("--boot", choices=scenarios.BOOTS, action="append",
                         help="how 'inspect' boots its machine: one with BIOS by iPXE, one with UEFI from virtual "
                              "media; default: both")
    options.add_argument("--folder", type=Path, default=Path("/var/lib/ironic-rules-lab"), metavar="FOLDER",
                         help="for machines, and the logs of the last runs; default: /var/lib/ironic-rules-lab")
    options.add_argument("--ramdisk", type=Path, metavar="FOLDER",
                         help=f"has {', '.join(rig.RAMDISK)}; default: that of ironic-rules-ramdisk, which builds it "
                              "once")
    options.add_argument("--rules", type=Path, action="append", default=[], metavar="FILE",
                         help="inspection rules to import before the scenario; may be repeated")
    options.add_argument("--accelerator", choices=["auto", "kvm", "tcg"], default="auto",
                         help="how processors are emulated; default: KVM if it can be used")
    options.add_argument("--memory", type=_number(1024, 1 << 20), default=3072, metavar="MIB",
                         help="of a machine; default: 3072")
    options.add_argument("--processors", type=_number(1, 64), default=2, metavar="N", help="of a machine; default: 2")
    options.add_argument("--quiet", type=_number(30, 86400), default=600, metavar="SECONDS",
                         help="after which a machine of which nothing is heard has failed; default: 600")
    options.add_argument("--within", type=_number(1, 86400), metavar="SECONDS",
                         help="begin no further part after this time; what is left out is printed")
    options.add_argument("--check", action="store_true", help="only say whether the lab can run here")
    options.add_argument("--keep", action="store_true",
                         help="leave everything running at the end, with the page of the service, until Ctrl-C")
    options.add_argument("--inside", metavar="RUN", help=argparse.SUPPRESS)
    return options


def _number(least: int, most: int) -> type[int]:
    def number(text: str) -> int:
        value = int(text)
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"must be from {least} to {most}")
        return value

    number.__name__ = "number"
    return number  # type: ignore[return-value]


def _run(argv: Sequence[str]) -> int:
    arguments = parser().parse_args(argv)
    arguments.folder = arguments.folder.absolute()
    if arguments.inside:
        return host.as_first_process(lambda: _reported(arguments, lambda: _inside(arguments)))
    return _reported(arguments, lambda: _outside(arguments, argv))


def _reported(arguments: argparse.Namespace, work: Callable[[], int]) -> int:
    """Return the exit status of ``work``; print why it cannot be done."""
    try:
        return work()
    except (ConfigurationError, LabError) as exc:
        print(f"{PROG}: {exc}", file=sys.stderr)
        return 2
    except OSError as exc:
        if exc.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS):
            raise
        print(f"{PROG}: {exc.filename or arguments.folder}: {exc.strerror}", file=sys.stderr)
        return 2


def _outside(arguments: argparse.Namespace, argv: Sequence[str]) -> int:
    """Check the host, and run the lab in namespaces; forward signals, and clean up."""
    problems = list(host.problems(arguments.folder, memory_mib=arguments.memory))
    if importlib.util.find_spec("sushy_tools") is None:
        problems.append("sushy-tools, the BMC, is missing: install the extra 'lab' (pip install '.[lab]').")
    if arguments.accelerator == "kvm" and not host.has_kvm():
        problems.append("KVM cannot be used here: there is no /dev/kvm, or the processor has no extensions for it. "
                        "--accelerator tcg works without, and is slower.")
    if arguments.ramdisk:
        problems += [f"{arguments.ramdisk} has no file {name}." for name in rig.RAMDISK
                     if not (arguments.ramdisk / name).exists()]
        kernel = arguments.ramdisk / rig.RAMDISK[0]
        if kernel.exists() and not host.is_kernel(kernel):
            problems.append(f"{kernel} is no kernel for x86-64: the ramdisk is of another architecture, or damaged.")
    if arguments.keep:
        problems += host.link_problems(rig.SERVICE)
    problems += [f"the file {file} cannot be read." for file in arguments.rules if not os.access(file, os.R_OK)]
    if problems:
        raise ConfigurationError("\n".join(["the lab cannot run here:", *(f"- {text}" for text in problems)]))
    with host.locked(_LOCK):
        if arguments.check:
            return 0
        arguments.folder.mkdir(parents=True, exist_ok=True, mode=0o755)
        host.remove(arguments.folder / "machine")  # of a lab that was killed
        runs = arguments.folder / "runs"
        runs.mkdir(exist_ok=True)
        for old in sorted(runs.iterdir())[:-_KEPT_RUNS + 1]:
            shutil.rmtree(old, ignore_errors=True)
        run_folder = runs / datetime.datetime.now(datetime.UTC).strftime("%Y%m%d-%H%M%S")
        run_folder.mkdir()
        try:
            if not arguments.ramdisk:
                _build_ramdisk(arguments.folder / "machine" / "ramdisk")
            return _supervise([sys.executable, "-P", "-m", "ironic_rules.cmd.lab", *argv, "--inside", str(run_folder)],
                              is_linked=arguments.keep)
        finally:
            host.remove(arguments.folder / "machine")
            for disk in (run_folder / "machines").glob("*.qcow2"):
                disk.unlink()


def _build_ramdisk(folder: Path) -> None:
    """Run the page's command, which builds once what has the same recipe."""
    folder.mkdir(parents=True)
    command = rig.commands("ramdisk").split()
    command = [sys.executable, "-P", "-m", "ironic_rules.cmd.ramdisk", *command[1:-1], str(folder)]
    if subprocess.run(command, stdin=subprocess.DEVNULL).returncode:
        raise LabError("the ramdisk cannot be built.")


def _supervise(command: Sequence[str], *, is_linked: bool) -> int:
    """Run the inner command to its end; it gets the signals of this process."""
    inner = subprocess.Popen(host.outer_command(command), stdin=subprocess.DEVNULL, start_new_session=True)
    got: list[int] = []

    def forward(number: int, frame: object) -> None:
        got.append(number)
        for child in _children(inner.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGTERM)

    before = {number: signal.signal(number, forward) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    try:
        if is_linked:
            _link(inner)
        ended_by: float | None = None
        while True:
            try:
                status = inner.wait(0.5)
                return 128 + got[0] if got else status
            except subprocess.TimeoutExpired:
                if got and ended_by is None:
                    ended_by = time.monotonic() + _STOP_S
                if ended_by is not None and time.monotonic() > ended_by:
                    inner.kill()  # and the kernel ends everything in its namespaces
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if inner.poll() is None:
            inner.kill()
            inner.wait()


def _link(inner: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 10
    while not (children := _children(inner.pid)) and time.monotonic() < end:
        time.sleep(0.1)
    if children:
        host.link(children[0])
        host.route(rig.SERVICE)


def _children(process: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    except OSError:
        return []


def _inside(arguments: argparse.Namespace) -> int:
    """Set the lab up in this process's namespaces, and run the scenario."""
    stopped = threading.Event()

    def stop(number: int, frame: object) -> None:
        if not stopped.is_set():
            stopped.set()
            raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
    accelerator = arguments.accelerator
    if accelerator == "auto":
        accelerator = "kvm" if host.has_kvm() else "tcg"
    ramdisk = arguments.ramdisk or arguments.folder / "machine" / "ramdisk"
    settings = rig.Settings(
        arguments.folder, Path(arguments.inside), ramdisk.absolute(),
        accelerator, arguments.memory, arguments.processors, arguments.quiet)
    print(f"The lab of {settings.run_folder}; processors: {accelerator}", flush=True)
    name = ", ".join(arguments.scenario)
    recorder = Recorder(lambda event: print(timeline.line(event), flush=True))
    recorder.start()
    lab_rig = rig.Rig(settings, recorder)
    try:
        lab_rig.set_up()
        for file in arguments.rules:
            lab_rig.commands("rules", {"RULES": str(file.absolute())})
        scenarios.run(lab_rig, arguments.scenario, arguments.boot or scenarios.BOOTS, arguments.within)
        print(f"{name}: as it should be.", flush=True)
        status = 0
        if arguments.keep:
            host.connect_outside()
            print(f"The page: http://{rig.SERVICE}:{rig.API_PORT}/ui/ ({rig.USER}, {rig.PASSWORD}). "
                  "Ctrl-C ends the lab.", flush=True)
            stopped.wait()
    except KeyboardInterrupt:
        print("The lab is ended by a signal.", flush=True)
        status = 130
    except LabError as exc:
        print(f"{name}: FAILED: {exc}", flush=True)
        if text := host.full(arguments.folder):
            print(text, flush=True)
        status = 1
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        try:
            lab_rig.tear_down()
            recorder.stop()
            (settings.run_folder / "timeline.txt").write_text("\n".join(timeline.table(recorder.events)) + "\n",
                                                              encoding="utf-8")
        except OSError as exc:
            print(f"Time line and logs are not complete: {exc.strerror}.", flush=True)
    print(f"Time line, logs and consoles: {settings.run_folder}", flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
