"""Keys of ``driver_internal_info`` are declared once."""

from __future__ import annotations

import re

from ironic_rules.models import internal_keys
from tests.modules import MODULES, place

DECLARED = {name: value for name, value in vars(internal_keys).items() if name.isupper()}
#: A key that is written where it is used.
LITERAL = re.compile(r"""driver_internal_info(?:\[|\.(?:get|pop|setdefault)\()["']""")


def test_no_two_names_mean_one_key() -> None:
    values = [*internal_keys.AGENT_ERASURE, *(value for value in DECLARED.values() if isinstance(value, str))]

    assert len(values) > 20
    assert len(values) == len(set(values))


def test_code_uses_the_declared_names() -> None:
    found = [place(path, number) for path in MODULES
             for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1) if LITERAL.search(line)]

    assert found == []
