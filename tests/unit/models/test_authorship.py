"""Who changed what in a draft: the patches of its authors, one after the other, make the result of the original."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ironic_rules.exceptions import IronicRulesError
from ironic_rules.models import inspections
from ironic_rules.models.draft import NodeDraft
from tests.unit.rules import world

_PATHS = st.sampled_from(["/extra", "/extra/a", "/extra/a/b", "/extra/list/0", "/extra/list/-", "/properties/x",
                          "/description", "/traits/-"])
_VALUES = st.sampled_from([1, "CUSTOM_A", "CUSTOM_B", {"b": 1}, {"list": [1]}, [1, 2], None, {}])
_CHANGE = st.tuples(st.sampled_from(["write", "delete", "in place", "rollback"]), _PATHS, _VALUES)


def change(draft: NodeDraft, how: str, path: str, value: Any) -> None:
    try:
        if how == "write":
            draft.write(path, value)
        elif how == "delete":
            draft.delete(path)
        elif how == "in place":
            draft.extra["place"] = value
        else:
            draft.rollback()
    except IronicRulesError:
        pass


@pytest.mark.slow
@given(many=st.lists(st.lists(_CHANGE, max_size=4), max_size=5))
def test_the_patches_of_all_authors_make_the_result_of_the_original(many: list[list[tuple[str, str, Any]]]) -> None:
    draft = NodeDraft(copy.deepcopy(world.NODE), ["CUSTOM_OLD"])
    document = copy.deepcopy(draft.read())
    for author, changes in enumerate(many, start=1):
        draft.checkpoint(author)
        for how, path, value in changes:
            change(draft, how, path, copy.deepcopy(value))
    found = inspections.changes_of_draft(draft)
    assert [author for author, _ in found] == sorted(author for author, _ in found)
    for _, patch in found:
        document = world.patched(document, patch)
    assert document == draft.read()


@pytest.mark.slow
@given(many=st.lists(st.tuples(st.booleans(), st.lists(_CHANGE, max_size=4)), max_size=6))
def test_what_hooks_change_between_rules_is_left_out(
        many: list[tuple[bool, list[tuple[str, str, Any]]]]) -> None:
    draft = NodeDraft(copy.deepcopy(world.NODE), ["CUSTOM_OLD"])
    expected = []
    for author, (is_hook, changes) in enumerate(many, start=1):
        before = copy.deepcopy(draft.read())
        draft.checkpoint(None if is_hook else author)
        for how, path, value in changes:
            change(draft, how, path, copy.deepcopy(value))
        if not is_hook:
            expected.append((author, before, copy.deepcopy(draft.read())))
    found = dict(inspections.changes_of_draft(draft))
    assert None not in found
    for author, before, after in expected:
        assert world.patched(before, found.pop(author, [])) == after
    assert not found
