"""JSON Patch on the fields of a resource."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from ironic_rules.api import patch
from ironic_rules.exceptions import Invalid
from tests.walking import walking

DOCUMENT = {"name": None, "extra": {}, "tags": ["a", "b"], "info": {"x": {"y": 1}, "a/b": 1, "m~n": 2}, "nothing": None,
            "uuid": "u"}


def apply(*operations: dict[str, Any], aliases: dict[str, str] | None = None, **kwargs: Any) -> dict[str, Any]:
    parsed = patch.operations(patch.BODY.load(list(operations)), aliases=aliases)
    return patch.apply(DOCUMENT, parsed, **{"defaults": {"extra": {}}, "read_only": ("uuid",), **kwargs})


@walking("operation, field, expected", [
    ({"op": "replace", "path": "/name", "value": "n"}, "name", "n"),
    ({"op": "add", "path": "/name", "value": "n"}, "name", "n"),
    ({"op": "add", "path": "/extra/foo", "value": {"b": 1}}, "extra", {"foo": {"b": 1}}),
    ({"op": "add", "path": "/nothing/foo", "value": 1}, "nothing", {"foo": 1}),
    ({"op": "add", "path": "/nothing/-", "value": 1}, "nothing", [1]),
    ({"op": "add", "path": "/tags/-", "value": "c"}, "tags", ["a", "b", "c"]),
    ({"op": "add", "path": "/tags/0", "value": "c"}, "tags", ["c", "a", "b"]),
    ({"op": "replace", "path": "/tags/0", "value": "c"}, "tags", ["c", "b"]),
    ({"op": "remove", "path": "/tags/0"}, "tags", ["b"]),
    ({"op": "remove", "path": "/info/a~1b"}, "info", {"x": {"y": 1}, "m~n": 2}),
    ({"op": "replace", "path": "/info/m~0n", "value": 3}, "info", {"x": {"y": 1}, "a/b": 1, "m~n": 3}),
    ({"op": "remove", "path": "/extra"}, "extra", {}),
    ({"op": "remove", "path": "/tags"}, "tags", None),
    ({"op": "copy", "from": "/info/x", "path": "/extra/z"}, "extra", {"z": {"y": 1}}),
    ({"op": "move", "from": "/info/x/y", "path": "/name"}, "name", 1),
    ({"op": "test", "path": "/info/x", "value": {"y": 1}}, "name", None),
    ({"op": "add", "path": "/extra/", "value": 1}, "extra", {"": 1}),
])
def test_an_operation_changes_its_field(operation, field, expected):
    assert apply(operation)[field] == expected


@walking("operation", [
    {"op": "replace", "path": "/extra/foo", "value": 1}, {"op": "remove", "path": "/extra/foo"},
    {"op": "add", "path": "/nosuch", "value": 1}, {"op": "add", "path": "/name/x/y", "value": 1},
    {"op": "add", "path": "/info/nosuch/y", "value": 1}, {"op": "add", "path": "/tags/9", "value": 1},
    {"op": "add", "path": "/tags/01", "value": 1}, {"op": "add", "path": "/tags/-1", "value": 1},
    {"op": "remove", "path": "/tags/-"}, {"op": "replace", "path": "/uuid", "value": "x"},
    {"op": "remove", "path": "/uuid"}, {"op": "move", "from": "/uuid", "path": "/name"},
    {"op": "test", "path": "/info/x/y", "value": True}, {"op": "test", "path": "/info/x/y", "value": 2},
    {"op": "test", "path": "/info/nosuch", "value": None}, {"op": "move", "from": "/info", "path": "/info/x"},
    {"op": "copy", "from": "/nosuch", "path": "/name"}, {"op": "add", "path": "/", "value": 1},
    {"op": "add", "path": "name", "value": 1}, {"op": "add", "path": "/a~2", "value": 1},
    {"op": "add", "path": "/name"}, {"op": "copy", "path": "/name"}, {"op": "add", "path": "/info/x/y/z", "value": 1},
])
def test_what_can_not_be_done_is_refused_with_its_place(operation):
    with pytest.raises(Invalid) as caught:
        apply({"op": "test", "path": "/name", "value": None}, operation)

    assert caught.value.problems[0].where.startswith("/1")


@walking("body", [{}, [1], [{"op": "add"}], [{"path": "/a"}], [{"op": "x", "path": "/a"}], None, "text",
                                  [{"op": "remove", "path": "/a", "nosuch": 1}], [{"op": "remove", "path": 5}]])
def test_a_body_that_is_no_patch_is_refused(body):
    with pytest.raises(Invalid):
        patch.BODY.load(body)


def test_required_fields_stay():
    for operation in ({"op": "remove", "path": "/tags"}, {"op": "add", "path": "/tags", "value": None}):
        with pytest.raises(Invalid):
            apply(operation, required=("tags",))


def test_the_original_and_the_values_of_the_patch_are_not_shared():
    before = copy.deepcopy(DOCUMENT)
    value: dict[str, Any] = {"b": []}

    result = apply({"op": "add", "path": "/extra/a", "value": value}, {"op": "add", "path": "/extra/a/b/-", "value": 1},
                   {"op": "remove", "path": "/info/x/y"})

    assert result["extra"] == {"a": {"b": [1]}}
    assert before == DOCUMENT
    assert value == {"b": []}


def test_aliases_name_fields():
    assert apply({"op": "remove", "path": "/tag/0"}, aliases={"tag": "tags"})["tags"] == ["b"]


def test_touched_names_the_fields_that_are_written():
    operations = patch.operations(patch.BODY.load([
        {"op": "test", "path": "/uuid", "value": 1}, {"op": "add", "path": "/extra/a", "value": 1},
        {"op": "move", "from": "/tags/0", "path": "/name"}, {"op": "copy", "from": "/info", "path": "/nothing"}]))

    assert patch.touched(operations) == {"extra", "tags", "name", "nothing"}


def test_an_error_shows_no_control_characters():
    with pytest.raises(Invalid) as caught:
        apply({"op": "add", "path": "/extra/\x1b[31m/x", "value": 1})

    assert "\x1b" not in str(caught.value)


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    return value


def test_the_result_is_nested_no_deeper_than_a_body():
    deepest = [{"op": "add", "path": "/extra", "value": nested(patch.MAX_DEPTH - 1)}]
    assert patch.apply({"extra": {}}, patch.operations(deepest), defaults={})

    for last in ({"op": "add", "path": "/extra" + "/a" * 98, "value": {"b": {}}},
                 {"op": "copy", "from": "/extra", "path": "/extra/b"}):
        with pytest.raises(Invalid, match="100 levels"):
            patch.apply({"extra": {}}, patch.operations([*deepest, last]), defaults={})


def test_copies_are_bounded_together():
    text = "x" * (patch.MAX_COPIED // 4)
    copies = [{"op": "copy", "from": "/extra/a", "path": f"/extra/{number}"} for number in range(4)]

    assert len(patch.apply({"extra": {"a": text}}, patch.operations(copies[:3]), defaults={})["extra"]) == 4
    with pytest.raises(Invalid, match=r"^/3/extra/a: the patch copies more"):
        patch.apply({"extra": {"a": text}}, patch.operations(copies), defaults={})


def test_a_move_is_no_copy():
    moves = [{"op": "move", "from": f"/extra/{number}", "path": f"/extra/{number + 1}"} for number in range(20)]

    moved = patch.apply({"extra": {"0": "x" * patch.MAX_COPIED}}, patch.operations(moves), defaults={})
    assert list(moved["extra"]) == ["20"]
