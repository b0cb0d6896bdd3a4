"""The fields of node, ports and port groups that templates can read: those of their drafts, and no others."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from ironic_rules.models.fields import Fields, Type
from ironic_rules.models.nodes import NODE
from ironic_rules.models.ports import PORT, PORT_GROUP
from ironic_rules.text import enumeration, nearest

#: Stands for any element of a list, in the steps of a path.
ANY = "*"
_PARTS = frozenset({Type.OBJECT, Type.LIST})
#: Field names in a message if none is similar.
_NAMED = 12


def _of(table: Fields, **more: Type) -> dict[str, Type]:
    # Those that replies show come first, for messages.
    return {name: table[name].type for name in sorted(table, key=lambda name: not table[name].shown)} | more


#: root -> its fields; except ``node``, the roots are lists.
RECORDS: Mapping[str, Mapping[str, Type]] = {
    "node": _of(NODE, traits=Type.LIST), "ports": _of(PORT), "port_groups": _of(PORT_GROUP)}


# Thousands of rules read the same few fields.
@functools.lru_cache(maxsize=4096)
def problem(root: str, steps: tuple[str, ...], *, hint: bool = True) -> tuple[int, str] | None:
    """Return why a path below ``root`` can never have a value: the number of the step, and the reason; None if it can.

    :param steps: ``ANY`` is any index
    :param hint: name the most similar field
    """
    fields = RECORDS.get(root)
    first = 0
    if fields is not None and root != "node" and steps:
        if not _is_index(steps[0]):
            return 0, f"{root} is a list: an index must follow, as in {root}[0]"
        first = 1
    if fields is None or len(steps) <= first:
        return None
    name, below = steps[first], steps[first + 1:]
    kind = fields.get(name)
    if kind is None:
        return first, f"there is no such field; {_hint(name, fields) if hint else 'its name is misspelt'}"
    if below and kind not in _PARTS:
        return first + 1, f"{name} is neither an object nor a list: it has no parts"
    if below and kind is Type.LIST and (len(below) > 1 or not _is_index(below[0])):
        return first + 1, f"{name} is a list of texts: only an index can follow, as in {name}[0]"
    return None


def _is_index(step: str) -> bool:
    # As the getters of paths: longer numbers are keys.
    return step == ANY or (step.isdecimal() and len(step) < 10)


def _hint(name: str, fields: Mapping[str, Type]) -> str:
    near = nearest(name, fields)
    return f"did you mean {near!r}?" if near else f"known: {enumeration(fields, _NAMED)}"
