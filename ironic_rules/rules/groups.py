"""The named groups of a rule's regular expressions, which its actions read as ``{match[name]}``.

A condition ``matches`` with ``(?P<model>...)`` provides them. When its rule reads one, the condition's check stores
what all of its groups matched as ``match`` of the view. So a rule sees only groups of its own conditions: their names
are known when it is compiled, and each has been stored again when all conditions are true.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ironic_rules.text import nearest

ROOT = "match"
_HOW = ("a condition 'matches' provides it by (?P<name>...) in a regex without templates, unless it is inverted or has "
        "'multiple': 'all'")


@dataclass(slots=True)
class Groups:
    """Which groups the conditions of a rule provide, and which its actions read.

    :ivar provided: the name of each group; None if they are unknown, because conditions are invalid
    """

    provided: list[str] | None
    used: set[str] = field(default_factory=set)

    def use(self, steps: tuple[str, ...]) -> str | None:
        """Record that an action reads ``{match[..]}``; return why that is impossible, or None."""
        if len(steps) != 1:
            return f"the name of one group must follow: {{{ROOT}[name]}}"
        name, = steps
        self.used.add(name)
        if self.provided is None or self.provided.count(name) == 1:
            return None
        if name in self.provided:
            return "more than one group of the conditions has this name"
        near = nearest(name, self.provided)
        known = f"known: {', '.join(sorted(set(self.provided)))}" if self.provided else _HOW
        return f"no condition provides this group; {f'did you mean {near!r}?' if near else known}"
