"""Limits of rules, their size and their results; passed as arguments, so that a service can set its own."""

from __future__ import annotations

from dataclasses import dataclass

from ironic_rules.rules import hosts
from ironic_rules.rules.hosts import AllowedHosts


@dataclass(frozen=True, slots=True)
class Limits:
    """Counts, characters and levels. A rule that exceeds a limit is refused; if data exceed one, the step fails."""

    conditions: int = 100
    actions: int = 100
    loop_items: int = 4096
    depth: int = 20
    text: int = 65536
    result: int = 65536
    #: bytes, in UTF-8, of the text that a regular expression is applied to
    subject: int = 32768
    #: characters that all actions write while the rules of a phase run on one node
    written: int = 8 * 1024 * 1024
    #: which services rules may call
    hosts: AllowedHosts = hosts.NONE


DEFAULT = Limits()

#: Maximum number of levels of lists and objects in an action's argument, and of parts of the path to which it writes:
#: together fewer than the 254 levels that can be written as JSON.
MAX_LEVELS = 100
