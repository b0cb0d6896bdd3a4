"""A draft has the values of a plain copy, values that were read from it do not change, and undo is exact."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ironic_rules.exceptions import Invalid
from ironic_rules.models import documents
from ironic_rules.models.draft import FieldPath, NodeDraft, PortDraft
from tests import strategies

VALUES: dict[str, Any] = {
    "name": "n", "owner": None, "extra": {"a": {"b": [1, {"c": 2}]}, "z": 1}, "properties": {"p": 1},
    "driver_info": None}
PATHS = st.sampled_from([
    "/extra", "/extra/a", "/extra/a/b", "/extra/a/b/1/c", "/extra/a/b/-", "/extra/new", "/extra/new/x", "/extra/z",
    "/properties/p", "/properties/q", "/driver_info/x", "/owner"])
DATA = st.sampled_from([None, 1, "x", {"k": [1]}, [1, 2]])
STEPS = st.one_of(
    st.tuples(st.just("write"), PATHS, DATA), st.tuples(st.just("write"), PATHS, DATA),
    st.tuples(st.just("extend"), PATHS, DATA), st.tuples(st.just("delete"), PATHS, st.none()),
    st.tuples(st.just("in place"), st.sampled_from(["extra", "properties"]), DATA),
    st.tuples(st.sampled_from(["read", "changes", "checkpoint", "rollback"]), st.none(), st.none()))


def apply(document: dict[str, Any], step: str, path: str, value: Any) -> None:
    """Make the change of the draft in a plain document; the caller has checked that it is possible."""
    if step == "in place":
        document[path]["in place"] = value
        return
    tokens = documents.parse_pointer(path)
    if step == "write":
        if len(tokens) > 1 and document[tokens[0]] is None:
            document[tokens[0]] = {}
        documents.put(document, tokens, copy.deepcopy(value), create=True)
    elif step == "extend":
        if document[tokens[0]] is None:
            document[tokens[0]] = {}
        documents.append(document, tokens, copy.deepcopy(value), False)
    elif len(tokens) == 1:
        document[tokens[0]] = {"extra": {}, "owner": None}[tokens[0]]
    else:
        try:
            documents.remove(document, tokens)
        except documents.PointerError:
            return


@pytest.mark.slow
@settings(max_examples=strategies.wanted(100), deadline=None)
@given(st.lists(STEPS, max_size=14), st.booleans())
def test_a_draft_is_a_plain_copy_with_undo(steps: list[Any], known_paths: bool) -> None:
    given_values = copy.deepcopy(VALUES)
    draft = NodeDraft(given_values)
    model = copy.deepcopy(VALUES)
    saved = copy.deepcopy(model)
    held: list[tuple[Any, Any]] = []
    for step, path, value in steps:
        if step in ("read", "changes"):
            found = getattr(draft, step)()
            # Values that were returned to be changed in place are shared until the next checkpoint.
            found = {name: value for name, value in found.items() if name not in draft._owned}
            held.append((found, copy.deepcopy(found)))
        elif step == "checkpoint":
            draft.checkpoint()
            saved = copy.deepcopy(model)
        elif step == "rollback":
            draft.rollback()
            model = copy.deepcopy(saved)
        elif step == "in place":
            if isinstance(model[path], dict):
                getattr(draft, path)["in place"] = value
                apply(model, step, path, value)
        else:
            where = FieldPath(path, NodeDraft) if known_paths else path
            arguments = (where,) if step == "delete" else (where, value)
            try:
                getattr(draft, step)(*arguments)
            except Invalid:
                draft.rollback()
                model = copy.deepcopy(saved)
            else:
                apply(model, step, path, value)
    for found, before in held:
        assert found == before
    assert given_values == VALUES
    values = draft.read()
    del values["traits"]
    # As text, to compare the order of keys too.
    assert json.dumps(values) == json.dumps(model)


def test_a_known_path_is_checked_when_it_is_made() -> None:
    with pytest.raises(Invalid):
        FieldPath("/uuid", NodeDraft)


def test_a_known_path_of_a_node_is_checked_again_for_a_port() -> None:
    path = FieldPath("/properties/x", NodeDraft)
    with pytest.raises(Invalid):
        PortDraft({"id": 1, "extra": {}}).write(path, 1)


def test_ten_thousand_writes_copy_their_field_once() -> None:
    draft = NodeDraft({"extra": {}})
    draft.write("/extra/first", 1)
    field = draft._values["extra"]
    for number in range(10_000):
        draft.checkpoint()
        draft.write(f"/extra/k{number}", number)
    assert draft._values["extra"] is field
