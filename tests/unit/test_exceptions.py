from __future__ import annotations

import ast
import copy
import pickle
import re
import string

from ironic_rules import exceptions
from tests.modules import MODULES, place

CLASSES = sorted(exceptions.http_errors().values(), key=lambda cls: cls.__name__)
WORDINGS = {name: item for name, item in vars(exceptions).items() if isinstance(item, exceptions.Wording)}


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


def test_a_wording_makes_an_error_of_its_class():
    error = exceptions.node_protected(node="n", action="deletion")
    assert same(error, exceptions.Forbidden, "Node n is protected and does not allow deletion.")
    assert error.facts == {"node": "n", "action": "deletion"}


def test_what_is_raised_has_the_facts_of_its_text():
    calls = [(path, call, WORDINGS[name]) for path in MODULES for call in ast.walk(ast.parse(path.read_text("utf-8")))
             if isinstance(call, ast.Call) and (name := ast.unparse(call.func).rpartition(".")[2]) in WORDINGS]

    assert {id(wording) for _, _, wording in calls} >= {id(wording) for name, wording in WORDINGS.items()
                                                        if name != "legacy_rule_failed"}
    assert [place(path, call.lineno) for path, call, wording in calls
            if {keyword.arg for keyword in call.keywords} != facts_in(wording.text)] == []


def facts_in(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


def test_code_distinguishes_every_class_from_its_base():
    """Or it has a status of its own; other errors have a text in the table."""
    caught = {name for path in MODULES for node in ast.walk(ast.parse(path.read_text("utf-8")))
              for name in distinguished(node)}

    assert [cls.__name__ for cls in CLASSES
            if cls.__name__ not in caught and cls.code == getattr(cls.__base__, "code", None)] == []


def distinguished(node: ast.AST) -> set[str]:
    """Return the names of the classes that ``except``, ``isinstance`` or ``suppress`` has there."""
    if isinstance(node, ast.ExceptHandler) and node.type is not None:
        return names_in(node.type)
    if isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "contextlib.suppress"):
        return {name for argument in node.args for name in names_in(argument)}
    return set()


def names_in(node: ast.AST) -> set[str]:
    return set(re.findall(r"\w+", ast.unparse(node)))


def test_an_invalid_input_names_every_place():
    error = exceptions.Invalid(problems=[exceptions.Problem("/a", "is wrong"), exceptions.Problem("", "and more")])
    assert str(error) == "/a: is wrong; and more"


def test_whatever_is_caught_altogether_has_a_reason():
    lines = [(path, number, line) for path in MODULES
             for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)]

    assert [place(path, number) for path, number, line in lines
            if re.search(r"except (Exception|BaseException)\b|except:", line)
            and not re.search(r"# (?!noqa: BLE001$)", line)] == []
