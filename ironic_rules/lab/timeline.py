"""The time line of a machine, from the logs of the programs that it meets: events, their table, the missing step.

A path is the sequence of steps that a boot must pass. The first one that has no event is the missing one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ironic_rules.hardware.boot import access_log


class Event(NamedTuple):
    """Something that happened.

    :ivar at: seconds since the lab began
    :ivar is_error: it is no success of its step
    """

    at: float
    step: str
    text: str
    is_error: bool = False


#: Names of the steps, in the order in which a machine passes them, and what to check where one is missing.
STEPS = {
    "power": "the BMC was not requested to start the machine: see the log of the service",
    "medium": "the BMC was not requested to insert a virtual medium: see the log of the service",
    "dhcp request": "the machine has not requested an address: its firmware does not boot over the network, its boot "
                    "order begins with another device, or its network adapter has no link",
    "dhcp": "the DHCP server has not answered: see whether the filter allows the address (ironic-pxe-filter --status)",
    "loader": "the machine has not loaded its boot program by TFTP: see the log of dnsmasq",
    "script": "iPXE has not requested boot.ipxe from the web server",
    "kernel": "the web server has not delivered the kernel",
    "ramdisk": "the web server has not delivered the ramdisk",
    "linux": "the kernel has not written to the serial console: is it of this architecture, with that "
             "console?",
    "agent": "the agent has not called the API: it has no address, or does not reach the URL that it was given",
    "report": "the agent has not sent its report: see the console",
    "disk": "the machine has not started from its disk: see the console",
}
#: The step whose success ends with an error.
_RUNS = "linux"
#: Steps by the way of booting.
PATHS: Mapping[str, tuple[str, ...]] = {
    # iPXE of a BIOS is part of the network adapter, and loads no program by TFTP.
    "ipxe-bios": ("power", "dhcp request", "dhcp", "script", "kernel", "ramdisk", "linux", "agent"),
    "ipxe-uefi": ("power", "dhcp request", "dhcp", "loader", "script", "kernel", "ramdisk", "linux", "agent"),
    "virtual-media": ("medium", "power", "linux", "dhcp request", "dhcp", "agent"),
    "disk": ("power", "disk"),
}
#: Paths for which 404 is an answer as good as any: boot.ipxe tries whether a machine has a script of its own.
_TRIED = ("/pxelinux.cfg/", "/instances/")

#: Sequences by which firmware positions the cursor, and sushy-tools colours its log.
ESCAPES = re.compile(r"\x1b\[[0-9;?=]*[A-Za-z]|\x1b[()][A-Z0-9]")
_API = re.compile(r'(?P<client>[\da-f.:]+) "(?P<method>\w+) (?P<path>\S+)" status: (?P<status>\d{3})')
_BMC = re.compile(r'"(?P<method>POST|PATCH|PUT|DELETE) (?P<path>/redfish/\S+)[^"]*" (?P<status>\d{3})')
_ADDRESS = r"(?P<mac>(?:[0-9a-f]{2}:){5}[0-9a-f]{2})"
_DHCP = (
    (re.compile(rf"DHCPDISCOVER\(\S+\) (?:\S+ )?{_ADDRESS}"), "dhcp request", False, "{mac} requests an address"),
    (re.compile(rf"DHCPDISCOVER\(\S+\) (?:\S+ )?{_ADDRESS} (?:ignored|no address available)"), "dhcp", True,
     "the DHCP server ignores {mac}"),
    (re.compile(rf"DHCPACK\(\S+\) (?P<ip>\S+) {_ADDRESS}"), "dhcp", False, "{mac} has the address {ip}"),
    (re.compile(r"dnsmasq-tftp\S*: sent (?P<file>\S+) to (?P<ip>\S+)"), "loader", False, "{ip} has loaded {file}"),
    (re.compile(r"dnsmasq-tftp\S*: (?:file )?(?P<file>\S+) not found"), "loader", True, "there is no {file}"),
)
_CONSOLE = (
    (re.compile(r"Linux version (?P<version>\S+)"), "linux", False, "Linux {version} starts"),
    (re.compile(r"Starting ironic-python-agent version: (?P<version>\S+)"), "agent start", False,
     "ironic-python-agent {version} starts"),
    (re.compile(r"(?P<text>Kernel panic.*)"), "linux", True, "{text}"),
    (re.compile(r"(?P<text>.*not enough memory|.*Exec format error.*|.*Not an EFI image.*)"), "linux", True, "{text}"),
    (re.compile(r"(?P<text>The instance of the lab has started.*)"), "disk", False, "{text}"),
)
_KINDS = {"vmlinuz": "kernel", "initrd": "ramdisk", ".iso": "medium image", ".ipxe": "script"}


def events_of(source: str, line: str) -> Iterator[tuple[str, str, bool]]:
    """Yield step, text and whether it is an error, of each event that a line of a log reports.

    :param source: ``dhcp``, ``web``, ``api``, ``bmc``, or the console of a machine
    """
    line = ESCAPES.sub("", line)
    if source == "dhcp":
        yield from _matched(_DHCP, line)
    elif source == "web":
        yield from _of_web_server(line)
    elif source == "api":
        yield from _of_api(line)
    elif source == "bmc":
        yield from _of_bmc(line)
    else:
        yield from _matched(_CONSOLE, line)


def _matched(patterns: Iterable[tuple[re.Pattern[str], str, bool, str]], line: str) -> Iterator[tuple[str, str, bool]]:
    for pattern, step, is_error, text in patterns:
        if match := pattern.search(line):
            yield step, text.format(**match.groupdict()).strip(), is_error


def _of_web_server(line: str) -> Iterator[tuple[str, str, bool]]:
    request = access_log.parse(line)
    if request is None:
        return
    client, path, status = request.client, request.path, request.status
    if path == "/":  # the lab looks whether the server runs
        return
    if path.startswith(_TRIED):
        if status < 400:
            yield "script", f"{client} has loaded {path}", False
        return
    step = next((step for end, step in _KINDS.items() if path.endswith(end)), "file")
    if status < 400:
        yield step, f"{client} has loaded {path}, {request.size} bytes", False
    else:
        yield step, f"the web server answers {status} for {path}", True


def _of_api(line: str) -> Iterator[tuple[str, str, bool]]:
    match = _API.search(line)
    if match is None:
        return
    path, status = match["path"].partition("?")[0], int(match["status"])
    if path.startswith("/v1/continue_inspection"):
        yield "agent", f"the agent on {match['client']} runs", False
        yield "report", f"the report is answered with {status}", status >= 400
    elif path.startswith("/v1/lookup"):
        yield "agent", f"the agent on {match['client']} looks for its node: {status}", status >= 400
    elif path.startswith("/v1/heartbeat"):
        yield "heartbeat", f"the agent on {match['client']} waits for a command: {status}", status >= 400


def _of_bmc(line: str) -> Iterator[tuple[str, str, bool]]:
    match = _BMC.search(line)
    if match is None:
        return
    status = int(match["status"])
    for end, step, text in (("ComputerSystem.Reset", "power", "the BMC switches the machine"),
                            ("VirtualMedia.InsertMedia", "medium", "the BMC inserts a virtual medium"),
                            ("VirtualMedia.EjectMedia", "medium ejected", "the BMC ejects a virtual medium")):
        if match["path"].rstrip("/").endswith(end):
            yield step, text if status < 400 else f"{text}: {status}", status >= 400


def missing(path: Sequence[str], events: Sequence[Event]) -> str | None:
    """Return the first step of a path without success, and the thing to check; None if there is none.

    A kernel that has started, and then panics, is without success.
    """
    for step in path:
        of_step = [event for event in events if event.step == step]
        if all(event.is_error for event in of_step) or (step == _RUNS and of_step[-1].is_error):
            return f"{step}: {of_step[-1].text if of_step else STEPS[step]}"
    return None


def table(events: Sequence[Event]) -> list[str]:
    """Return the lines of the table: when, how long after the line before, the step, and what happened.

    Repetitions of a line are one, with their number.
    """
    lines: list[str] = []
    before, repeated = None, 0
    for event, after in zip(events, [*events[1:], None], strict=True):
        repeated += 1
        if after is not None and (after.step, after.text) == (event.step, event.text):
            continue
        lines.append(line(event, before, repeated))
        before, repeated = event, 0
    return lines


def line(event: Event, before: Event | None = None, repeated: int = 1) -> str:
    """Return a line of the table."""
    passed = f"{event.at - before.at:+7.1f}" if before is not None else " " * 7
    times = f" ({repeated} times)" if repeated > 1 else ""
    return f"{event.at:7.1f} s {passed}  {event.step:<14} {'ERROR: ' if event.is_error else ''}{event.text}{times}"
