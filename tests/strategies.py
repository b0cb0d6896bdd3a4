"""Strategies for tests that generate their input: valid rules, reports and requests with unusual values anywhere.

How many examples tests draw from these is an option: without ``IRONIC_RULES_TEST_EXAMPLES`` few, so that the suite is
fast; with it the given number, in batches (``tox -e fuzz``).
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from ironic_rules import samples
from ironic_rules.models import documents
from tests.unit.rules import world

OPTION = "IRONIC_RULES_TEST_EXAMPLES"
#: Hypothesis stores the examples of a run, so that a run of a hundred thousand would need too much memory.
BATCH = 5_000

Json = Any
Place = tuple[Any, Any]


def wanted(small: int) -> int:
    """Return the number of examples of a test; ``small`` is the number in the normal suite."""
    return int(os.environ.get(OPTION) or small)


def batches(small: int, most: int = BATCH) -> list[Any]:
    """Return ``(seed, number of examples)`` for each run of a test: one of ``small`` examples without the option.

    :param most: maximum number of examples of a run
    """
    total = wanted(small)
    sizes = [min(most, total - done) for done in range(0, total, most)]
    return [pytest.param((number, size), id=f"{number}-{size}") for number, size in enumerate(sizes)]


def check(batch: tuple[int, int], test: Callable[..., None], **strategies: st.SearchStrategy[Any]) -> None:
    """Call ``test`` with the examples of a batch; the same ones each time."""
    number, size = batch
    run = settings(max_examples=size, deadline=None, database=None, suppress_health_check=list(HealthCheck),
                   phases=[Phase.generate, Phase.shrink])(given(**strategies)(test))
    seed(number)(run)()


def _documented() -> Iterator[dict[str, Any]]:
    folder = Path(__file__).parents[1] / "doc" / "source" / "user" / "examples"
    for path in sorted(folder.iterdir()):
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
        yield from found if isinstance(found, list) else [found]


def _of_vectors() -> Iterator[dict[str, Any]]:
    for _, case in world.vectors("rules"):
        yield from case["rules"]
    for kind, folder in (("conditions", "operators"), ("actions", "actions")):
        for op, case in world.vectors(folder):
            operation = {"op": op, **{key: case[key] for key in ("args", "loop", "multiple") if key in case}}
            phase = {"phase": "early"} if case.get("early") else {}
            yield {"actions": [{"op": "log", "args": ["x"]}], kind: [operation], **phase}


#: Rules as clients send them, three of four valid.
RULES: list[dict[str, Any]] = [documents.clone(rule) for rule in (*_documented(), *samples.rules(), *_of_vectors())]
INVENTORIES: list[dict[str, Any]] = [world.INVENTORY, *(
    samples.inventory(name)["inventory"] for name in samples.inventory_names())]

FRAGMENTS = [
    "{", "}", "{{", "}}", "{}", "{inventory", "{inventory[", "{inventory[cpu]", "{inventory[cpu][count]}", "{item}",
    "{item[key]}", "{node.driver_info}", "{node[driver_info][ipmi_password]}", "{node.__class__}", "{node!r}",
    "{plugin_data[a]:>9}", "{ports[0][address]}", "{port_groups}", "{inventory[-1]}", "{inventory[99999999999]}",
    "{0}", "{inventory..x}", "{inventory[nosuch]}x",
]
EXPRESSIONS = ["(", "(a+)+$", "(?=a)", "\\1", "[", "a{2,1}", "a{1001}", "(?i)", "x*+", "\\p{Greek}", "\\C", "a" * 5000]
PATHS = ["/", "//", "/extra", "/extra/", "/extra/a/-", "/extra/~2", "/traits/-", "/uuid", "/provision_state", "a.b.c",
         "/driver_info/x", "/extra/" + "a/" * 200, "/properties/capabilities", "-", "."]
ODD_TEXTS = [
    "", " ", "\0", "a\0b", "\ud800", "x\udfffy", "\u2028", "\x1b[31m", "a\r\nb", "☃", "\U0001f600", "\ufeff", "e\u0301",
    "\u202etxt", "x" * 256, "x" * 70_000, "null", "true", "0", "-1", "1e400", "NaN", "early", "main", "any", "!", "! ",
    "!!eq", "!eq", "eq ", "EQ", "ne", "le", "fail", "log", "set-attribute", "api-call", "nosuch", "critical",
    "10.0.0.0/99", "::/129", "1.2.3.4", "2001:db8::/32", "00000000-0000-0000-0000-000000000000",
    "https://cmdb.example.org/x", "CUSTOM_A", "custom_a", "op", "args", "loop", "multiple", "conditions", "actions",
    *FRAGMENTS, *EXPRESSIONS, *PATHS,
]
NUMBERS = [0, -1, 1, 9999, 10000, 2**31, 2**53 + 1, -2**63, 2**63, 2**64 - 1, 2**64, 10**30, 10**400, 0.5, -0.0, 1e308,
           float("inf"), float("-inf"), float("nan"), 5e-324]


def nested(levels: int, inner: Json = None, mapping: bool = False) -> Json:
    """Return a value with this number of levels of lists or objects."""
    for _ in range(levels):
        inner = {"a": inner} if mapping else [inner]
    return inner


ODD_VALUES: list[Json] = [
    None, True, False, [], {}, [[]], [{}], {"": None}, {"\0": 1}, {"\ud800": 1}, {"op": {}}, {"op": "eq"},
    {"op": "log", "args": ["x"]}, {"op": "fail", "args": {"msg": "x"}}, {"a": 1, "A": 2}, ["x"] * 101,
    [1] * 5000, {str(number): number for number in range(300)},
    *(nested(levels, mapping=mapping) for levels in (18, 19, 20, 21, 22, 95, 99, 101, 300)
      for mapping in (False, True)),
]
#: Bytes that are invalid where they are inserted into JSON text.
BYTES = [b"\xff", b"\0", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"'", b",", b"//", b"NaN", b"-", b"1" * 400, b"\\u0000",
         b"\\ud800"]

class _Few(list[Json]):
    """A list that is short when Hypothesis prints it: it warns of long ones."""

    def __repr__(self) -> str:
        return f"<{len(self)} values>"

    def at(self, index: int) -> Json:
        # A copy, because the drawn value is changed.
        return documents.clone(self[index])


def any_of(values: list[Json]) -> st.SearchStrategy[Json]:
    """A copy of one of ``values``, which may be large."""
    return st.integers(0, len(values) - 1).map(_Few(values).at)


texts = st.one_of(any_of(ODD_TEXTS), st.text(st.characters(), max_size=12),
                  st.tuples(any_of(ODD_TEXTS), any_of(ODD_TEXTS)).map("".join))
scalars = st.one_of(st.sampled_from([*NUMBERS, None, True, False]), st.integers(), st.floats(), texts)
anything = st.one_of(any_of(ODD_VALUES), scalars, st.lists(scalars, max_size=3),
                     st.dictionaries(texts, scalars, max_size=3))


def changed(originals: list[Json], most: int = 3) -> st.SearchStrategy[Json]:
    """One of ``originals`` with up to ``most`` changes, each at any place in it."""
    return _changed(_Few(originals), most)


@st.composite
def _changed(draw: st.DrawFn, originals: _Few, most: int) -> Json:
    value = [draw(any_of(originals))]
    for _ in range(min(most, draw(st.sampled_from([0, 1, 1, 1, 2, 2, 3, 4])))):
        places = list(_places(value))
        container, key = places[draw(st.integers(0, len(places) - 1))]
        _change(draw, container, key, originals)
    return value[0]


def _places(value: Json) -> Iterator[Place]:
    """Yield (container, key or index) of every value inside of ``value``, the outermost one first."""
    pending = [value]
    while pending:
        container = pending.pop()
        keys = list(container) if isinstance(container, dict) else range(len(container))
        for key in keys:
            yield container, key
            if isinstance(container[key], (dict, list)) and container[key]:
                pending.append(container[key])


def _change(draw: st.DrawFn, container: Json, key: Any, originals: _Few) -> None:
    old = container[key]
    match draw(st.integers(0, 8)):
        case 0 | 1:
            container[key] = draw(anything)
        case 2:
            if isinstance(container, dict) and len(container) > 1:
                del container[key]
        case 3:
            container[key] = [old, documents.clone(old)]
        case 4 if isinstance(container, dict):
            container[draw(texts)] = documents.clone(old)
        case 5 if isinstance(old, str):
            at = draw(st.integers(0, len(old)))
            container[key] = old[:at] + draw(texts) + old[at:]
        case 6:
            other = draw(any_of(originals))
            container[key] = other.get(key, other) if isinstance(other, dict) else other
        case 7 if isinstance(old, (int, float)):
            container[key] = draw(st.sampled_from(NUMBERS))
        case 8:
            container[key] = {"key": old} if draw(st.booleans()) else str(old)
        case _:
            container[key] = draw(texts)


@st.composite
def mostly(draw: st.DrawFn, usual: st.SearchStrategy[Json], other: st.SearchStrategy[Json]) -> Json:
    """In three of four cases one of ``usual``. (``one_of`` would count each branch inside of ``other`` as one.)"""
    return draw(usual if draw(st.integers(0, 3)) else other)


@st.composite
def bodies(draw: st.DrawFn, values: st.SearchStrategy[Json]) -> bytes:
    """JSON text of one of ``values``; one in eight is invalid: a duplicate key, truncated, or with invalid bytes."""
    text = json.dumps(draw(values)).encode()
    if draw(st.integers(0, 7)):
        return text
    at = draw(st.integers(0, len(text)))
    match draw(st.integers(0, 4)):
        case 0:
            return text.replace(b'{"', b'{"op": 1, "op": 1, "', 1)
        case 1:
            return text.replace(b", ", b', "actions": [], "priority": 1, ', 1)
        case 2:
            return text[:at]
        case 3:
            return text[:at] + draw(st.sampled_from(BYTES)) + text[at:]
        case _:
            return b"[" * draw(st.sampled_from([1, 99, 2000, 100_000])) + text
