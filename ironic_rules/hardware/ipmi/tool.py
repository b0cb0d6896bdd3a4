"""The command ``ipmitool``: repeated until the BMC responds, without a shell, with secrets hidden from other users.

Each packet may be lost, and a BMC need not support a cipher suite. If ipmitool is not given a suite, it determines
those of the BMC with the command Get Channel Cipher Suites, which some BMCs do not answer, and repeats it for minutes.
Therefore a suite is always passed, and the next one is tried if the BMC refuses it or does not respond.
"""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from oslo_config import cfg
from oslo_log import log

from ironic_rules.exceptions import BMCError, ConfigurationError, InvalidParameterValue
from ironic_rules.hardware.base import Interface
from ironic_rules.models import urls
from ironic_rules.models.documents import JSON
from ironic_rules.models.task import Task
from ironic_rules.text import nearest, printable

#: Per round: how often ipmitool sends each request of a session (``-R``), and the seconds that it waits for each reply
#: (``-N``). One run makes some ten requests: where a third of the packets is lost, it rarely succeeds without repeating
#: them, so that later rounds do; the last one is for BMCs that are slow.
_ROUNDS = ((1, 2), (2, 1), (4, 1), (4, 1), (4, 2), (4, 4))
_REMEMBERED = 4096

#: The BMC does not support the suite, or not with the privilege level.
_SUITE_REFUSED = re.compile(
    r"invalid (authentication|integrity|confidentiality) algorithm|no matching (integrity payload|cipher suite)|"
    r"unsupported cipher suite|invalid role|unauthorized role|insufficient resources for role", re.IGNORECASE)
#: The BMC has answered: a further run would have the same result.
_ANSWERED = re.compile(
    r"unauthorized (name|GUID)|invalid name length|HMAC is invalid|invalid integrity check|Address lookup for",
    re.IGNORECASE)
#: A reply is missing, or the BMC is busy. Where the BMC has sent a completion code, its text follows a colon.
_REPEATED = re.compile(
    r"Unable to establish|no response from|No valid response|Set Session Privilege Level to \w+ failed$|"
    r"Unable to (get|set) Chassis Power|Unable to get Channel|(?<!Close Session )command failed$|"
    r"Unable to send RAW command \((?!.*rsp=)|Error [gs]etting Chassis Boot Parameter \d+$|"
    r"insufficient resources for session|Node busy|: Timeout|Out of space|BMC initialization in progress",
    re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class IPMIToolRun:
    """The options ``-C``, ``-R`` and ``-N``; with ``cipher_suite`` None, ipmitool chooses."""

    cipher_suite: int | None
    sends: int
    reply_s: int


class Suites:
    """The cipher suite that each BMC accepted last. Bounded; thread-safe."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._accepted: OrderedDict[tuple[str, int], int] = OrderedDict()

    def put(self, bmc: tuple[str, int], suite: int) -> None:
        """Remember that a BMC has accepted a suite."""
        with self._guard:
            self._accepted[bmc] = suite
            self._accepted.move_to_end(bmc)
            while len(self._accepted) > _REMEMBERED:
                self._accepted.popitem(last=False)

    def order(self, bmc: tuple[str, int], suites: Sequence[int]) -> list[int]:
        """Return ``suites`` in the order in which they are tried: the one that the BMC accepted last is the first."""
        with self._guard:
            accepted = self._accepted.get(bmc)
        return sorted(suites, key=lambda suite: suite != accepted)


class AttemptPlan:
    """The runs for one command; without end: the caller stops after a success, or when the time is over."""

    def __init__(self, suites: Sequence[int]) -> None:
        self.refused: list[int] = []
        self._suites: list[int | None] = [*suites] or [None]

    def __iter__(self) -> Iterator[IPMIToolRun]:
        for sends, reply_s in itertools.chain(_ROUNDS, itertools.repeat(_ROUNDS[-1])):
            for suite in list(self._suites):
                yield IPMIToolRun(suite, sends, reply_s)

    def is_final(self, run: IPMIToolRun, output: str) -> bool:
        """Take the output of a run that failed into account, and return whether no further run can succeed."""
        if _SUITE_REFUSED.search(output) and run.cipher_suite is not None:
            self._suites.remove(run.cipher_suite)
            self.refused.append(run.cipher_suite)
            return not self._suites
        return bool(_ANSWERED.search(output)) or not _REPEATED.search(output)


PROPERTIES = {
    "ipmi_address": "IP address or host name of the BMC. Required.",
    "ipmi_username": "User name on the BMC. Default: none.",
    "ipmi_password": "Password on the BMC. Default: none.",
    "ipmi_port": "UDP port of the BMC. Default: 623.",
    "ipmi_priv_level": "Privilege level: ADMINISTRATOR (the default), OPERATOR, USER or CALLBACK.",
    "ipmi_protocol_version": "Version of the IPMI protocol: 2.0 (the default) or 1.5.",
    "ipmi_cipher_suite": "Number of the cipher suite, for IPMI 2.0. Default: those of "
                         "[ipmi]cipher_suite_versions are tried.",
    "ipmi_hex_kg_key": "Kg key for IPMI 2.0: 40 hexadecimal digits.",
    "ipmi_disable_boot_timeout": "Whether a boot device remains set for longer than 60 seconds. Default: true.",
    "ipmi_force_boot_device": "Whether the persistent boot device is set again before each boot, for BMCs that forget "
                              "it. Default: false.",
    "ipmi_bridging": "Whether the BMC passes requests on to the machine's own controller: no (the default), single, or "
                     "dual (by two buses).",
    "ipmi_target_channel": "Channel of the machine's controller, 0 to 15. Required with ipmi_bridging.",
    "ipmi_target_address": "Address of the machine's controller on that channel, such as 0x72. Required with "
                           "ipmi_bridging.",
    "ipmi_transit_channel": "Channel of the controller in between, 0 to 15. Required with ipmi_bridging dual.",
    "ipmi_transit_address": "Address of the controller in between, such as 0x82. Required with ipmi_bridging dual.",
    "ipmi_local_address": "Address of the BMC on its own bus, with ipmi_bridging. Default: that of ipmitool, 0x20.",
}
#: Keys that only other interfaces of Ironic read, which are not offered here.
_OF_OTHERS = frozenset({"ipmi_terminal_port"})
_PREFIX = "ipmi_"
#: How requests are bridged -> the keys that it requires.
_BRIDGED: dict[str, tuple[str, ...]] = {
    "no": (), "single": ("ipmi_target_channel", "ipmi_target_address"),
    "dual": ("ipmi_target_channel", "ipmi_target_address", "ipmi_transit_channel", "ipmi_transit_address"),
}
_LOCAL = "ipmi_local_address"
#: Option of ipmitool for each key of a bridge, in the order in which they are passed.
_BRIDGE_OPTIONS = {_LOCAL: "-m", "ipmi_transit_channel": "-B", "ipmi_transit_address": "-T",
                   "ipmi_target_channel": "-b", "ipmi_target_address": "-t"}
_MAX_CHANNEL, _MAX_BUS_ADDRESS = 15, 255
# Not a number with a leading zero, which ipmitool reads as octal.
_BUS_NUMBER = re.compile(r"0[xX][0-9a-fA-F]{1,2}|0|[1-9][0-9]{0,2}")
PRIVILEGES = ("ADMINISTRATOR", "CALLBACK", "OPERATOR", "USER")
_ZONE = re.compile(r"[A-Za-z0-9._~-]+")
_WITH_PORT = re.compile(r"(?P<host>\[[^\]]*\]|[^:]*):(?P<port>[0-9]+)")
_KG = re.compile(r"[0-9a-fA-F]{40}")
_BOOLEANS = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}


@dataclass(frozen=True, slots=True)
class IPMIDriverInfo:
    """The address of a BMC and how to log in."""

    address: str
    port: int
    username: str | None
    password: str = field(repr=False)
    privilege: str
    version: str
    cipher_suite: int | None
    kg_key: str | None = field(repr=False)
    disable_boot_timeout: bool
    force_boot_device: bool = False
    #: options of ipmitool for the controller that requests are passed on to; none: it is the BMC itself
    bridge: tuple[str, ...] = ()


def parse_driver_info(driver_info: Mapping[str, Any]) -> IPMIDriverInfo:
    """Return the settings in ``driver_info``.

    :raises InvalidParameterValue: a key is missing or wrong; the text names it and does not show secret values
    """
    _refuse_unknown(driver_info)
    address = _address(driver_info.get("ipmi_address"))
    username, password = (_text(driver_info, key) for key in ("ipmi_username", "ipmi_password"))
    if username is not None and username.startswith("-"):
        raise _wrong("ipmi_username", "must not begin with a dash, which ipmitool would interpret as an option")
    privilege = driver_info.get("ipmi_priv_level") or "ADMINISTRATOR"
    if privilege not in PRIVILEGES:
        raise _wrong("ipmi_priv_level", f"must be one of {', '.join(PRIVILEGES)}")
    version = str(driver_info.get("ipmi_protocol_version") or "2.0")
    if version not in ("1.5", "2.0"):
        raise _wrong("ipmi_protocol_version", "must be 1.5 or 2.0")
    kg_key = _text(driver_info, "ipmi_hex_kg_key")
    if kg_key is not None and not _KG.fullmatch(kg_key):
        raise _wrong("ipmi_hex_kg_key", "must have 40 hexadecimal digits")
    cipher_suite = _number(driver_info, "ipmi_cipher_suite", 0, 255)
    if version == "1.5" and (kg_key is not None or cipher_suite is not None):
        raise _wrong("ipmi_protocol_version", "must be 2.0 with ipmi_cipher_suite or ipmi_hex_kg_key")
    return IPMIDriverInfo(
        address, _number(driver_info, "ipmi_port", 1, 65535) or 623, username, password or "", privilege,
        version, cipher_suite, kg_key, _boolean(driver_info, "ipmi_disable_boot_timeout", default=True),
        _boolean(driver_info, "ipmi_force_boot_device", default=False), _bridge(driver_info))


def _refuse_unknown(driver_info: Mapping[str, object]) -> None:
    """Refuse keys that are not known: they may be meant to select another controller than the BMC."""
    for key in sorted(driver_info):
        if key.startswith(_PREFIX) and key not in PROPERTIES and key not in _OF_OTHERS:
            near = nearest(key, PROPERTIES)
            raise _wrong(printable(key, 64), "is not known" + (f"; did you mean {near}?" if near else ""))


def _address(value: object) -> str:
    if not value:
        raise InvalidParameterValue("driver_info/ipmi_address is missing: the address of the BMC.")
    if not isinstance(value, str):
        raise _wrong("ipmi_address", "must be an IP address or a host name")
    bare, percent, zone = value.partition("%")
    if urls.usual_host(bare) is not None and (not percent or (":" in bare and _ZONE.fullmatch(zone))):
        return value
    if with_port := _WITH_PORT.fullmatch(value):
        raise _wrong("ipmi_address", "must not have a port; set driver_info/ipmi_port to "
                                     f"{printable(with_port['port'], 16)}")
    raise _wrong("ipmi_address", "must be a host name, or an IP address in its usual form without brackets, such as "
                                 "192.0.2.1 or 2001:db8::1")


def _bridge(driver_info: Mapping[str, JSON]) -> tuple[str, ...]:
    """Return the options of ipmitool by which the BMC passes requests on; none if it does not.

    :raises InvalidParameterValue: a key is missing or wrong, or has no effect with this ``ipmi_bridging``
    """
    options = {key: driver_info[key] for key in _BRIDGE_OPTIONS if driver_info.get(key) not in (None, "")}
    kind = driver_info.get("ipmi_bridging")
    if kind in (None, "") and options:
        raise _wrong("ipmi_bridging", f"must be single or dual with {next(iter(options))}; without it, requests are "
                                      "for the controller at ipmi_address itself. Set it to no if they shall be")
    if kind in (None, "", "no"):
        return ()
    if not isinstance(kind, str) or kind not in _BRIDGED:
        raise _wrong("ipmi_bridging", f"must be one of {', '.join(_BRIDGED)}")
    for key in _BRIDGED[kind]:
        if key not in options:
            raise _wrong(key, f"is missing: ipmi_bridging is {kind}")
    if unused := set(options) - {*_BRIDGED[kind], _LOCAL}:
        raise _wrong(min(unused), f"must not be set: ipmi_bridging is {kind}")
    return tuple(word for key, option in _BRIDGE_OPTIONS.items() if key in options
                 for word in (option, _bus_number(key, options[key])))


def _bus_number(key: str, value: object) -> str:
    most = _MAX_CHANNEL if key.endswith("_channel") else _MAX_BUS_ADDRESS
    text = str(value)
    if isinstance(value, bool) or not _BUS_NUMBER.fullmatch(text) or int(text, 0) > most:
        example = 7 if most == _MAX_CHANNEL else "0x72"
        raise _wrong(key, f"must be a number from 0 to {most}, such as {example}, without leading zeros")
    return text


def _boolean(driver_info: Mapping[str, JSON], key: str, *, default: bool) -> bool:
    value = driver_info.get(key)
    if value in (None, ""):
        return default
    if str(value).lower() not in _BOOLEANS:
        raise _wrong(key, "must be true or false")
    return _BOOLEANS[str(value).lower()]


def _text(driver_info: Mapping[str, JSON], key: str) -> str | None:
    value = driver_info.get(key)
    if value is None or value == "":
        return None
    if not isinstance(value, str) or "\0" in value or "\n" in value or "\r" in value:
        raise _wrong(key, "must be a string of one line")
    return value


def _number(driver_info: Mapping[str, JSON], key: str, least: int, most: int) -> int | None:
    value = driver_info.get(key)
    if value is None or value == "":
        return None
    text = str(value)
    if isinstance(value, bool) or not re.fullmatch(r"[0-9]{1,5}", text) or not least <= int(text) <= most:
        raise _wrong(key, f"must be a number from {least} to {most}")
    return int(text)


def _wrong(key: str, text: str) -> InvalidParameterValue:
    return InvalidParameterValue(f"driver_info/{key} {text}" + ("" if text.endswith("?") else "."))


LOG = log.getLogger(__name__)

_MAX_REASON = 500
#: Seconds; no run is started that would be killed before a BMC can answer all of its requests.
_SHORTEST_RUN_S = 0.5


class Pauses:
    """The times of the last commands, to space those to one BMC by ``min_command_interval`` seconds. Bounded."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._next: OrderedDict[tuple[str, int], float] = OrderedDict()

    def reserve(self, bmc: tuple[str, int], interval_s: float) -> float:
        """Return the seconds to wait before the command that the caller is about to send."""
        with self._guard:
            now = time.monotonic()
            begin = max(now, self._next.pop(bmc, 0.0))
            self._next[bmc] = begin + interval_s
            while len(self._next) > _REMEMBERED:
                self._next.popitem(last=False)
        return begin - now


_PAUSES = Pauses()
_SUITES = Suites()


class IPMIInterface(Interface):
    """Mix-in of the interfaces that access a node's BMC by IPMI."""

    properties = PROPERTIES

    def validate(self, task: Task) -> None:
        parse_driver_info(task.node.driver_info)

    def ipmitool(self, task: Task, *command: str) -> str:
        """Run ``ipmitool <command>`` against the node's BMC and return its output.

        It is repeated until the BMC responds, for at most ``[ipmi]command_retry_timeout`` seconds.

        :raises InvalidParameterValue: ``driver_info`` is incomplete or invalid
        :raises BMCError: the BMC does not respond, or refuses the command
        """
        return self._command(task, command, " ".join(command), self.conf.ipmi.command_retry_timeout)

    def ipmitool_all(self, task: Task, commands: Sequence[str], allowed_s: float) -> str:
        """Run commands in one session, and return the output of those that the BMC executes.

        They count as one of the commands that have ``[ipmi]min_command_interval`` between them.

        :param allowed_s: maximum time for all of them, seconds
        :raises BMCError: the BMC executes none
        """
        with tempfile.NamedTemporaryFile("w", prefix="ironic-rules-", encoding="utf-8") as script:
            script.write("".join(f"{command}\n" for command in commands))
            script.flush()
            return self._command(task, ("exec", script.name), "; ".join(commands),
                                 min(allowed_s, self.conf.ipmi.command_retry_timeout), is_part_enough=True)

    def _command(self, task: Task, command: tuple[str, ...], name: str, allowed_s: float,
                 is_part_enough: bool = False) -> str:
        access = parse_driver_info(task.node.driver_info)
        bmc = access.address, access.port
        plan = AttemptPlan(_suites(access, self.conf))
        deadline: float | None = None
        output = ""
        for run in plan:
            pause_s = _PAUSES.reserve(bmc, self.conf.ipmi.min_command_interval)
            if deadline is not None and time.monotonic() + pause_s + _SHORTEST_RUN_S > deadline:
                break
            time.sleep(pause_s)
            deadline = deadline or time.monotonic() + allowed_s
            try:
                status, text, output = _run(access, run, command, deadline - time.monotonic())
            except subprocess.TimeoutExpired:
                break
            LOG.debug("ipmitool %s at %s: status %s", name, access.address, status)
            if status == 0 or (is_part_enough and text.strip()):
                if run.cipher_suite is not None:
                    _SUITES.put(bmc, run.cipher_suite)
                return text
            if plan.is_final(run, output):
                raise _error(task, access, _refused(plan, name, access), output)
        option = "" if is_part_enough else " ([ipmi]command_retry_timeout)"
        raise _error(task, access, f"did not execute the command '{name}' within {allowed_s:g} seconds{option}"
                                   f"{_tried(access, self.conf)}", output)


def _suites(access: IPMIDriverInfo, conf: cfg.ConfigOpts) -> list[int]:
    """Return the cipher suites to try, in order; none if there are none in this protocol, or ipmitool chooses."""
    if access.version != "2.0":
        return []
    if access.cipher_suite is not None:
        return [access.cipher_suite]
    # Ironic's order: the last one is preferred.
    preferred = dict.fromkeys(reversed(conf.ipmi.cipher_suite_versions))
    return _SUITES.order((access.address, access.port), list(preferred))


def _run(access: IPMIDriverInfo, run: IPMIToolRun, command: tuple[str, ...], timeout_s: float) -> tuple[int, str, str]:
    """Run ipmitool once, and return its status, its output, and its error output, or its output if that is empty.

    :raises subprocess.TimeoutExpired: it was killed after ``timeout_s`` seconds
    """
    # Only this user can open the file, and it is deleted at the end of the block.
    with tempfile.NamedTemporaryFile("w", prefix="ironic-rules-", encoding="utf-8") as password:
        # If the file is empty, ipmitool prompts for a password, at the terminal if there is one.
        password.write(access.password or "\0")
        password.flush()
        arguments, environment = _call(access, run, password.name)
        try:
            process = subprocess.run([*arguments, *command], env=environment, stdin=subprocess.DEVNULL,
                                     capture_output=True, timeout=max(timeout_s, 0.0), check=False)
        except FileNotFoundError as exc:
            raise ConfigurationError("The command ipmitool is not installed on the conductor's machine.") from exc
    output = process.stdout.decode(errors="replace")
    return process.returncode, output, process.stderr.decode(errors="replace") or output


def _call(access: IPMIDriverInfo, run: IPMIToolRun, password_file: str) -> tuple[list[str], dict[str, str]]:
    """Return the start of the command line, and the environment."""
    arguments = ["ipmitool", "-I", "lanplus" if access.version == "2.0" else "lan", "-H", access.address,
                 "-p", str(access.port), "-L", access.privilege, "-R", str(run.sends), "-N", str(run.reply_s),
                 "-f", password_file]
    environment = {**os.environ, "LC_ALL": "C"}
    if access.username is not None:
        arguments += ["-U", access.username]
    arguments += access.bridge
    if run.cipher_suite is not None:
        arguments += ["-C", str(run.cipher_suite)]
    if access.kg_key is not None:
        key = bytes.fromhex(access.kg_key)
        if b"\0" in key:
            # ipmitool has no other option for such a key; the process list shows it while the command runs.
            arguments += ["-y", access.kg_key]
        else:
            arguments.append("-K")
            environment["IPMI_KGKEY"] = os.fsdecode(key)
    return arguments, environment


def _refused(plan: AttemptPlan, name: str, access: IPMIDriverInfo) -> str:
    """Return the refusal of a BMC that has answered."""
    if not plan.refused:
        return f"did not execute the command '{name}'"
    option = "driver_info/ipmi_cipher_suite" if access.cipher_suite is not None else "[ipmi]cipher_suite_versions"
    return f"does not accept cipher suite {_listed(plan.refused)} ({option})"


def _tried(access: IPMIDriverInfo, conf: cfg.ConfigOpts) -> str:
    suites = _suites(access, conf)
    if not suites:
        return ""
    option = "driver_info/ipmi_cipher_suite" if access.cipher_suite is not None else "[ipmi]cipher_suite_versions"
    return f", with cipher suite {_listed(suites)} ({option})"


def _listed(suites: list[int]) -> str:
    return " or ".join(map(str, suites))


def _error(task: Task, access: IPMIDriverInfo, problem: str, output: str) -> BMCError:
    detail = " ".join(output.split())[:_MAX_REASON]
    for secret in (access.password, access.kg_key):
        if secret:
            detail = detail.replace(secret, "******")
    return BMCError(node=task.node.uuid, reason=f"{access.address} {problem}" + (f": {detail}" if detail else "."))
