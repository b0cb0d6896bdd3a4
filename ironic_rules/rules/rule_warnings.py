"""Warnings about a valid rule: what works, but probably not as its author thinks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ironic_rules.models.inventory_paths import ANY, Catalogue, Steps, shipped
from ironic_rules.rules.template import Field

#: Returns the paths that inventories have; called only for a path that no ramdisk is known to send.
KnownPaths = Callable[[], Catalogue]

#: Maximum number of warnings about a rule.
MAX_WARNINGS = 50
_MORE = f"there are more than {MAX_WARNINGS} warnings; the others are not listed"


@dataclass(frozen=True, slots=True)
class RuleWarning:
    """One warning: ``where`` is a JSON pointer; ``nearest`` is what may have been meant. Neither quotes a value."""

    where: str
    text: str
    nearest: str | None = None

    def __str__(self) -> str:
        hint = f"; did you mean {self.nearest}?" if self.nearest else ""
        return f"{self.where}: {self.text}{hint}" if self.where else self.text


class Warnings:
    """Collects the warnings about one rule.

    :param known_paths: None: paths of the inventory are not checked
    """

    def __init__(self, known_paths: KnownPaths | None = None) -> None:
        self.found: list[RuleWarning] = []
        self._known_paths = known_paths
        self._catalogue: Catalogue | None = None

    def add(self, where: str, text: str, nearest: str | None = None) -> None:
        """Add a warning; after too many of them, only that there are more."""
        if len(self.found) < MAX_WARNINGS:
            self.found.append(RuleWarning(where, text, nearest))
        elif len(self.found) == MAX_WARNINGS:
            self.found.append(RuleWarning("", _MORE))

    def reads(self, where: str, used: Field, root: str, steps: Steps, above: int) -> None:
        """Add a warning if no inventory has the path that a template reads.

        :param root: the name of the inventory: that of this inspection, or of the previous one
        :param steps: the path below the inventory
        :param above: how many of the steps are those of a loop; the template has the others
        """
        if self._known_paths is None or shipped().unknown_step(steps) is None or len(self.found) > MAX_WARNINGS:
            return
        if above and steps[above:above + 1] in (("key",), ("value",)):
            # The loop is over an object; what is below it has no name that is known.
            return
        if self._catalogue is None:
            self._catalogue = self._known_paths()
        number = self._catalogue.unknown_step(steps)
        if number is None:
            return
        if number < above:
            # The place of the loop has its own warning.
            return
        meant = self._catalogue.nearest(steps)
        self.add(where, f"column {used.column_of(number - above)}: no inventory so far has this path",
                 None if meant is None else _written(root, meant, steps[:above]))


def _written(inventory: str, path: Steps, loop: Steps) -> str:
    """Return a path as it stands in a template, below ``item`` where it is in the loop."""
    inside = loop and path[:len(loop)] == loop
    root, steps = ("item", path[len(loop):]) if inside else (inventory, path)
    return root + "".join(f"[{0 if step == ANY else step}]" for step in steps)
