"""The command ``ipmitool``: one call per request, without a shell, with secrets hidden from other users."""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
import time
from collections import OrderedDict

from oslo_config import cfg
from oslo_log import log

from ironic_rules.exceptions import BMCError, ConfigurationError
from ironic_rules.hardware.base import Interface
from ironic_rules.hardware.ipmi import driver_info
from ironic_rules.hardware.ipmi.driver_info import DriverInfo
from ironic_rules.models.task import Task

LOG = log.getLogger(__name__)

#: Seconds in addition to ``[ipmi]command_retry_timeout`` until an ipmitool that hangs is killed.
GRACE_S = 15
_MAX_REASON = 500
_REMEMBERED = 4096


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


class IPMIInterface(Interface):
    """Mix-in of the interfaces that access a node's BMC by IPMI."""

    properties = driver_info.PROPERTIES

    def validate(self, task: Task) -> None:
        driver_info.parse(task.node.driver_info)

    def ipmitool(self, task: Task, *command: str) -> str:
        """Run ``ipmitool <command>`` against the node's BMC and return its output.

        :raises InvalidParameterValue: ``driver_info`` is incomplete or invalid
        :raises BMCError: the BMC does not respond, or refuses the command
        """
        wanted = driver_info.parse(task.node.driver_info)
        time.sleep(_PAUSES.reserve((wanted.address, wanted.port), self.conf.ipmi.min_command_interval))
        # Only this user can open the file, and it is deleted at the end of the block.
        with tempfile.NamedTemporaryFile("w", prefix="ironic-rules-", encoding="utf-8") as password:
            # If the file is empty, ipmitool prompts for a password, at the terminal if there is one.
            password.write(wanted.password or "\0")
            password.flush()
            arguments, environment = _call(wanted, password.name, self.conf)
            try:
                done = subprocess.run(
                    [*arguments, *command], env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                    timeout=self.conf.ipmi.command_retry_timeout + GRACE_S, check=False)
            except FileNotFoundError as exc:
                raise ConfigurationError("The command ipmitool is not installed on the conductor's machine.") from exc
            except subprocess.TimeoutExpired as exc:
                raise _error(task, wanted, f"does not answer '{' '.join(command)}' in time", "") from exc
        output = done.stdout.decode(errors="replace")
        LOG.debug("ipmitool %s at %s: status %s", " ".join(command), wanted.address, done.returncode)
        if done.returncode != 0:
            raise _error(task, wanted, f"did not execute the command '{' '.join(command)}'",
                         done.stderr.decode(errors="replace") or output)
        return output


def _call(wanted: DriverInfo, password_file: str, conf: cfg.ConfigOpts) -> tuple[list[str], dict[str, str]]:
    """Return the start of the command line, and the environment."""
    interval = max(conf.ipmi.min_command_interval, 1)
    attempts = max(conf.ipmi.command_retry_timeout // interval, 1)
    arguments = ["ipmitool", "-I", "lanplus" if wanted.version == "2.0" else "lan", "-H", wanted.address,
                 "-p", str(wanted.port), "-L", wanted.privilege, "-R", str(attempts), "-N", str(interval),
                 "-f", password_file]
    environment = {**os.environ, "LC_ALL": "C"}
    if wanted.username is not None:
        arguments += ["-U", wanted.username]
    if wanted.cipher_suite is not None:
        arguments += ["-C", str(wanted.cipher_suite)]
    if wanted.kg_key is not None:
        key = bytes.fromhex(wanted.kg_key)
        if b"\0" in key:
            # ipmitool has no other option for such a key; the process list shows it while the command runs.
            arguments += ["-y", wanted.kg_key]
        else:
            arguments.append("-K")
            environment["IPMI_KGKEY"] = os.fsdecode(key)
    return arguments, environment


def _error(task: Task, wanted: DriverInfo, what: str, output: str) -> BMCError:
    detail = " ".join(output.split())[:_MAX_REASON]
    for secret in (wanted.password, wanted.kg_key):
        if secret:
            detail = detail.replace(secret, "******")
    return BMCError(node=task.node.uuid, reason=f"{wanted.address} {what}" + (f": {detail}" if detail else "."))
