from __future__ import annotations

import copy
import pickle
import re

from ironic_rules import exceptions
from tests.modules import MODULES, place

CLASSES = sorted(exceptions.http_errors().values(), key=lambda cls: cls.__name__)


def same(error: Exception, cls: type[Exception], text: str) -> bool:
    """Return whether this is an error of exactly this class, with this text."""
    return (type(error), str(error)) == (cls, text)


def test_every_error_has_an_http_code():
    assert CLASSES
    assert [f"{cls.__name__}: {cls.code}" for cls in CLASSES if not 400 <= cls("text").code <= 599] == []


def test_every_error_survives_pickling_and_copying():
    errors = [cls("what went wrong") for cls in CLASSES]
    again = [(error, other) for error in errors for other in (pickle.loads(pickle.dumps(error)), copy.copy(error))]

    assert [f"{type(error).__name__} became {other!r}" for error, other in again
            if not same(other, type(error), "what went wrong")] == []


def test_every_remote_error_can_be_rebuilt_from_its_text():
    rebuilt = [(cls, exceptions.rebuild(cls, "text", {})) for cls in CLASSES]

    assert [f"{cls.__name__} became {error!r}" for cls, error in rebuilt if not same(error, cls, "text")] == []


def test_the_facts_make_the_text():
    error = exceptions.NodeLocked(node="n", host="h")
    assert str(error) == "Node n is locked by host h, please retry after the current operation is completed."
    assert error.facts == {"node": "n", "host": "h"}


def test_an_invalid_input_names_every_place():
    error = exceptions.Invalid(problems=[exceptions.Problem("/a", "is wrong"), exceptions.Problem("", "and more")])
    assert str(error) == "/a: is wrong; and more"


def test_whatever_is_caught_altogether_has_a_reason():
    lines = [(path, number, line) for path in MODULES
             for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)]

    assert [place(path, number) for path, number, line in lines
            if re.search(r"except (Exception|BaseException)\b|except:", line)
            and not re.search(r"# (?!noqa: BLE001$)", line)] == []
