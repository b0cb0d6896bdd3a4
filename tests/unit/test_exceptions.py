from __future__ import annotations

import copy
import pickle

import pytest

from ironic_rules import exceptions

CLASSES = sorted(exceptions.http_errors().values(), key=lambda cls: cls.__name__)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_error_has_an_http_code_and_survives_pickling(cls):
    error = cls("what went wrong")
    assert 400 <= cls.code <= 599
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again)) == (cls, "what went wrong")
    assert str(copy.copy(error)) == "what went wrong"


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_a_remote_error_can_be_rebuilt_from_its_text(cls):
    error = exceptions.rebuild(cls, "text", {})
    assert (type(error), str(error)) == (cls, "text")


def test_the_facts_make_the_text():
    error = exceptions.NodeLocked(node="n", host="h")
    assert str(error) == "Node n is locked by host h, please retry after the current operation is completed."
    assert error.facts == {"node": "n", "host": "h"}


def test_an_invalid_input_names_every_place():
    error = exceptions.Invalid(problems=[exceptions.Problem("/a", "is wrong"), exceptions.Problem("", "and more")])
    assert str(error) == "/a: is wrong; and more"
