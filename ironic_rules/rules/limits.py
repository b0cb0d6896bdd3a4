"""What rules may do, and how large they and their work may get; passed in, so that a service can set its own."""

from __future__ import annotations

from dataclasses import dataclass

from ironic_rules.rules import hosts
from ironic_rules.rules.hosts import AllowedHosts


@dataclass(frozen=True, slots=True)
class Limits:
    """Counts, characters and levels. What is over a limit in a rule refuses it; over one in data fails the step."""

    conditions: int = 100
    actions: int = 100
    loop_items: int = 4096
    depth: int = 20
    text: int = 65536
    result: int = 65536
    #: bytes, in UTF-8, of the text that a regular expression is tried on
    subject: int = 32768
    #: all that actions write while the rules of a phase run on one node
    written: int = 8 * 1024 * 1024
    #: which services rules may call
    hosts: AllowedHosts = hosts.NONE


DEFAULT = Limits()

#: Characters of a regular expression, the same in every service: what RE2 makes of one is many times as large.
MAX_REGEX = 4096

#: Instructions of the program that RE2 makes of a regular expression. In the worst case each takes 7 ns per byte of the
#: text (measured on a virtual machine of 2 cores): with the largest text that is accepted by default, one second. The
#: longest expression of ASCII characters that mean themselves fits.
MAX_PROGRAM = 4100

#: Levels of lists and objects in what an action gets, and parts of the path to which it writes: together fewer than
#: the 254 levels that can be written as JSON.
MAX_LEVELS = 100
