"""Lines of logs, as programs wrote them while machines booted, become events; a boot that fails has a missing step."""

from __future__ import annotations

from ironic_rules.lab import timeline
from ironic_rules.lab.timeline import PATHS, Event
from tests.walking import walking

LINES = [
    ("dhcp", "dnsmasq-dhcp[76]: 1054509273 DHCPDISCOVER(eth1) 52:54:00:78:a3:bd ",
     [("dhcp request", "52:54:00:78:a3:bd requests an address", False)]),
    ("dhcp", "dnsmasq-dhcp[76]: 105 DHCPDISCOVER(eth1) 192.0.2.162 52:54:00:78:a3:bd ",
     [("dhcp request", "52:54:00:78:a3:bd requests an address", False)]),
    ("dhcp", "dnsmasq-dhcp[76]: 1054509273 DHCPDISCOVER(eth1) 52:54:00:78:a3:bd ignored",
     [("dhcp request", "52:54:00:78:a3:bd requests an address", False),
      ("dhcp", "the DHCP server ignores 52:54:00:78:a3:bd", True)]),
    ("dhcp", "dnsmasq-dhcp[76]: 1054509273 DHCPACK(eth1) 192.0.2.162 52:54:00:78:a3:bd ",
     [("dhcp", "52:54:00:78:a3:bd has the address 192.0.2.162", False)]),
    ("dhcp", "dnsmasq-dhcp[76]: 1054509273 DHCPOFFER(eth1) 192.0.2.162 52:54:00:78:a3:bd ", []),
    ("dhcp", "dnsmasq-tftp[76]: sent /var/lib/tftpboot/ipxe.efi to 192.0.2.162",
     [("loader", "192.0.2.162 has loaded /var/lib/tftpboot/ipxe.efi", False)]),
    ("dhcp", "dnsmasq-tftp[76]: file /var/lib/tftpboot/ipxe.efi not found for 192.0.2.162",
     [("loader", "there is no /var/lib/tftpboot/ipxe.efi", True)]),
    ("web", '192.0.2.162 - - [28/Nov/2026:07:34:51 +0000] "GET /boot.ipxe HTTP/1.1" 200 1194 "-" "iPXE/1.0.0+"',
     [("script", "192.0.2.162 has loaded /boot.ipxe, 1194 bytes", False)]),
    ("web", '192.0.2.162 - - [28/Nov/2026:07:34:51 +0000] "GET /pxelinux.cfg/52-54-00-78-a3-bd HTTP/1.1" 404 153 "-"',
     []),
    ("web", '192.0.2.162 - - [28/Nov/2026:07:34:51 +0000] "GET /pxelinux.cfg/52-54-00-78-a3-bd HTTP/1.1" 200 153 "-"',
     [("script", "192.0.2.162 has loaded /pxelinux.cfg/52-54-00-78-a3-bd", False)]),
    ("web", '192.0.2.162 - - [28/Nov/2026:07:34:51 +0000] "GET /vmlinuz HTTP/1.1" 404 153 "-" "iPXE/1.0.0+"',
     [("kernel", "the web server answers 404 for /vmlinuz", True)]),
    ("web", '192.0.2.1 - - [28/Nov/2026:07:34:51 +0000] "GET / HTTP/1.1" 403 153 "-" "python-httpx"', []),
    ("web", "no line of an access log", []),
    ("api", '2026-11-28 07:40:42.605 43 INFO ironic_rules.api.access_log [None req-1 - - - all - -] 192.0.2.162 "POST '
            '/v1/continue_inspection?node_uuid=1" status: 404 len: 197 time: 0.0054',
     [("agent", "the agent on 192.0.2.162 runs", False), ("report", "the report is answered with 404", True)]),
    ("api", '2026-11-28 07:40:42.605 43 INFO ironic_rules.api.access_log [None req-1 - - - all - -] 192.0.2.162 "GET '
            '/v1/lookup?addresses=52:54:00:78:a3:bd" status: 200 len: 197 time: 0.0054',
     [("agent", "the agent on 192.0.2.162 looks for its node: 200", False)]),
    ("api", '2026-11-28 07:40:42.605 43 INFO ironic_rules.api.access_log [-] 192.0.2.1 "GET /v1/nodes" status: 200',
     []),
    ("bmc", '192.0.2.1 - - [28/Nov/2026 07:41:33] "\x1b[35m\x1b[1mPOST /redfish/v1/Systems/9f/Actions/'
            'ComputerSystem.Reset HTTP/1.1\x1b[0m" 204 -',
     [("power", "the BMC switches the machine", False)]),
    ("bmc", '192.0.2.1 - - [28/Nov/2026 07:41:33] "POST /redfish/v1/Managers/9f/VirtualMedia/Cd/Actions/'
            'VirtualMedia.InsertMedia HTTP/1.1" 500 -',
     [("medium", "the BMC inserts a virtual medium: 500", True)]),
    ("bmc", '192.0.2.1 - - [28/Nov/2026 07:41:33] "GET /redfish/v1/Systems/9f HTTP/1.1" 200 -', []),
    ("console of first", "[    0.000000] Linux version 6.12.118+deb13-amd64 (debian-kernel@lists.debian.org)",
     [("linux", "Linux 6.12.118+deb13-amd64 starts", False)]),
    ("console of first", "Could not select: Exec format error (http://ipxe.org/2e008081)",
     [("linux", "Could not select: Exec format error (http://ipxe.org/2e008081)", True)]),
    ("console of first", "[   75.1] ironic-python-agent[412]: 2026-11-28 10:51:02.787 412 INFO "
                         "ironic_python_agent.agent [-] Starting ironic-python-agent version: 13.0.0",
     [("agent start", "ironic-python-agent 13.0.0 starts", False)]),
    ("console of first", "[    4.2] Kernel panic - not syncing: VFS: Unable to mount root fs",
     [("linux", "Kernel panic - not syncing: VFS: Unable to mount root fs", True)]),
]


@walking("source, line, expected", LINES)
def test_lines_of_logs_become_events(source: str, line: str, expected: list[tuple[str, str, bool]]) -> None:
    assert list(timeline.events_of(source, line)) == expected


def events(*steps: str) -> list[Event]:
    """Return events; a name with an exclamation mark is an error."""
    return [Event(float(number), step.rstrip("!"), f"text of {step.rstrip('!')}", step.endswith("!"))
            for number, step in enumerate(steps)]


UEFI = PATHS["ipxe-uefi"]
BOOTS = [
    (events(*UEFI), None),
    (events(), "power: the BMC was not requested to start the machine"),
    (events("power"), "dhcp request: the machine has not requested an address"),
    (events("power", "dhcp request"), "dhcp: the DHCP server has not answered"),
    (events("power", "dhcp request", "dhcp!"), "dhcp: text of dhcp"),
    (events("power", "dhcp request", "dhcp!", "dhcp", "loader", "script", "kernel!"), "kernel: text of kernel"),
    (events(*UEFI[:-2]), "linux: the kernel has not written"),
    (events(*UEFI[:-1], "linux!"), "linux: text of linux"),
    (events(*UEFI[:-1], "linux!", "linux"), "agent: the agent has not called"),
    (events(*UEFI, "dhcp!"), None),  # of another machine
]


@walking("happened, missing", BOOTS)
def test_the_first_step_without_success_is_the_missing_one(happened: list[Event], missing: str | None) -> None:
    found = timeline.missing(UEFI, happened)

    assert found is None if missing is None else found is not None and found.startswith(missing)


def test_every_step_of_a_path_has_a_text() -> None:
    assert {step for path in PATHS.values() for step in path} <= timeline.STEPS.keys()


def test_the_table_has_durations_and_counts_repetitions() -> None:
    happened = [Event(17.3, "power", "on"), Event(27.4, "dhcp request", "asks"), Event(28.0, "dhcp request", "asks"),
                Event(30.0, "dhcp", "ignored", is_error=True)]

    assert timeline.table(happened) == [
        "   17.3 s          power          on",
        "   28.0 s   +10.7  dhcp request   asks (2 times)",
        "   30.0 s    +2.0  dhcp           ERROR: ignored",
    ]
