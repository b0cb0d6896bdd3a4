"""The command ``ipmitool``: repeated until the BMC responds, without a shell, with secrets hidden from other users."""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence

from oslo_config import cfg
from oslo_log import log

from ironic_rules.exceptions import BMCError, ConfigurationError
from ironic_rules.hardware.base import Interface
from ironic_rules.hardware.ipmi import driver_info
from ironic_rules.hardware.ipmi.attempts import AttemptPlan, IPMIToolRun, Suites
from ironic_rules.hardware.ipmi.driver_info import IPMIDriverInfo
from ironic_rules.models.task import Task

LOG = log.getLogger(__name__)

_MAX_REASON = 500
_REMEMBERED = 4096
#: Seconds; no run is started that would be killed before a BMC can answer all of its requests.
_SHORTEST_RUN_S = 0.5


class Pauses:
    """The times of the last commands, to space those to one BMC by ``min_command_interval`` seconds. Bounded."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._next: OrderedDict[tuple[str, int], float] = OrderedDict()

    def reserve(self, bmc: tuple[str, int], interval_s: float) -> float:
        """Return how many seconds to wait before the command that the caller is about to send."""
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

    properties = driver_info.PROPERTIES

    def validate(self, task: Task) -> None:
        driver_info.parse(task.node.driver_info)

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
        wanted = driver_info.parse(task.node.driver_info)
        bmc = wanted.address, wanted.port
        plan = AttemptPlan(_suites(wanted, self.conf))
        deadline: float | None = None
        output = ""
        for run in plan:
            pause_s = _PAUSES.reserve(bmc, self.conf.ipmi.min_command_interval)
            if deadline is not None and time.monotonic() + pause_s + _SHORTEST_RUN_S > deadline:
                break
            time.sleep(pause_s)
            deadline = deadline or time.monotonic() + allowed_s
            try:
                status, told, output = _run(wanted, run, command, deadline - time.monotonic())
            except subprocess.TimeoutExpired:
                break
            LOG.debug("ipmitool %s at %s: status %s", name, wanted.address, status)
            if status == 0 or (is_part_enough and told.strip()):
                if run.cipher_suite is not None:
                    _SUITES.put(bmc, run.cipher_suite)
                return told
            if plan.is_final(run, output):
                raise _error(task, wanted, _refused(plan, name, wanted), output)
        option = "" if is_part_enough else " ([ipmi]command_retry_timeout)"
        raise _error(task, wanted, f"did not execute the command '{name}' within {allowed_s:g} seconds{option}"
                                   f"{_tried(wanted, self.conf)}", output)


def _suites(wanted: IPMIDriverInfo, conf: cfg.ConfigOpts) -> list[int]:
    """Return the cipher suites to try, in order; none if there are none in this protocol, or ipmitool chooses."""
    if wanted.version != "2.0":
        return []
    if wanted.cipher_suite is not None:
        return [wanted.cipher_suite]
    # Ironic's order: the last one is preferred.
    preferred = dict.fromkeys(reversed(conf.ipmi.cipher_suite_versions))
    return _SUITES.order((wanted.address, wanted.port), list(preferred))


def _run(wanted: IPMIDriverInfo, run: IPMIToolRun, command: tuple[str, ...], timeout_s: float) -> tuple[int, str, str]:
    """Run ipmitool once, and return its status, its output, and its error output, or its output if that is empty.

    :raises subprocess.TimeoutExpired: it was killed after ``timeout_s`` seconds
    """
    # Only this user can open the file, and it is deleted at the end of the block.
    with tempfile.NamedTemporaryFile("w", prefix="ironic-rules-", encoding="utf-8") as password:
        # If the file is empty, ipmitool prompts for a password, at the terminal if there is one.
        password.write(wanted.password or "\0")
        password.flush()
        arguments, environment = _call(wanted, run, password.name)
        try:
            done = subprocess.run([*arguments, *command], env=environment, stdin=subprocess.DEVNULL,
                                  capture_output=True, timeout=max(timeout_s, 0.0), check=False)
        except FileNotFoundError as exc:
            raise ConfigurationError("The command ipmitool is not installed on the conductor's machine.") from exc
    told = done.stdout.decode(errors="replace")
    return done.returncode, told, done.stderr.decode(errors="replace") or told


def _call(wanted: IPMIDriverInfo, run: IPMIToolRun, password_file: str) -> tuple[list[str], dict[str, str]]:
    """Return the start of the command line, and the environment."""
    arguments = ["ipmitool", "-I", "lanplus" if wanted.version == "2.0" else "lan", "-H", wanted.address,
                 "-p", str(wanted.port), "-L", wanted.privilege, "-R", str(run.sends), "-N", str(run.reply_s),
                 "-f", password_file]
    environment = {**os.environ, "LC_ALL": "C"}
    if wanted.username is not None:
        arguments += ["-U", wanted.username]
    if run.cipher_suite is not None:
        arguments += ["-C", str(run.cipher_suite)]
    if wanted.kg_key is not None:
        key = bytes.fromhex(wanted.kg_key)
        if b"\0" in key:
            # ipmitool has no other option for such a key; the process list shows it while the command runs.
            arguments += ["-y", wanted.kg_key]
        else:
            arguments.append("-K")
            environment["IPMI_KGKEY"] = os.fsdecode(key)
    return arguments, environment


def _refused(plan: AttemptPlan, name: str, wanted: IPMIDriverInfo) -> str:
    """Return what a BMC did not do that has answered."""
    if not plan.refused:
        return f"did not execute the command '{name}'"
    option = "driver_info/ipmi_cipher_suite" if wanted.cipher_suite is not None else "[ipmi]cipher_suite_versions"
    return f"does not accept cipher suite {_listed(plan.refused)} ({option})"


def _tried(wanted: IPMIDriverInfo, conf: cfg.ConfigOpts) -> str:
    suites = _suites(wanted, conf)
    if not suites:
        return ""
    option = "driver_info/ipmi_cipher_suite" if wanted.cipher_suite is not None else "[ipmi]cipher_suite_versions"
    return f", with cipher suite {_listed(suites)} ({option})"


def _listed(suites: list[int]) -> str:
    return " or ".join(map(str, suites))


def _error(task: Task, wanted: IPMIDriverInfo, what: str, output: str) -> BMCError:
    detail = " ".join(output.split())[:_MAX_REASON]
    for secret in (wanted.password, wanted.kg_key):
        if secret:
            detail = detail.replace(secret, "******")
    return BMCError(node=task.node.uuid, reason=f"{wanted.address} {what}" + (f": {detail}" if detail else "."))
