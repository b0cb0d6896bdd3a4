"""The runs of ipmitool for one command: with which cipher suite, how long, and what its output means for the next run.

Each packet may be lost, and a BMC need not support a cipher suite. If ipmitool is not given a suite, it determines
those of the BMC with the command Get Channel Cipher Suites, which some BMCs do not answer, and repeats it for minutes.
Therefore a suite is always passed, and the next one is tried if the BMC refuses it or does not respond.
"""

from __future__ import annotations

import itertools
import re
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

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
