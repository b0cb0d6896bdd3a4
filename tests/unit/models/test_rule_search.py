from __future__ import annotations

from typing import Any

from ironic_rules.models import rules
from ironic_rules.models.rules import TARGETS
from ironic_rules.rules import ACTIONS
from tests.walking import walking

#: Actions that write nothing on the node, its ports or plug-in data.
WITHOUT = {"fail", "log", "api-call"}


def test_it_is_known_of_every_action_where_it_writes() -> None:
    own = {operation.name: operation for operation in ACTIONS if operation.call.is_trusted}
    assert own.keys() == {*TARGETS, *WITHOUT}
    assert [name for name, target in TARGETS.items() if target.name is not None
            and list(own[name].argument_names()).index(target.name) != target.place] == []


@walking("action, path", [
    ({"op": "set-attribute", "args": {"path": "extra/a", "value": 1}}, "/extra/a"),
    ({"op": "del-attribute", "args": ["/extra/a~1b"]}, "/extra/a~1b"),
    ({"op": "set-attribute", "args": ["/extra/{item}", 1], "loop": [1]}, "/extra/{item}"),
    ({"op": "set-attribute", "args": ["{item}", 1], "loop": [1]}, None),
    ({"op": "set-attribute", "args": [5, 1]}, None), ({"op": "set-attribute", "args": []}, None),
    ({"op": "set-attribute", "args": ["/a~", 1]}, None), ({"op": "nosuch", "args": ["/a"]}, None),
    ({"op": "remove-trait", "args": ["CUSTOM_A"]}, "/traits"),
    ({"op": "del-port-attribute", "args": ["{item}", "/extra/a"]}, "/ports/extra/a"),
    ({"op": "unset-plugin-data", "args": ["a.b/c"]}, "/plugin_data/a.b/c"),
    ({"op": "set-plugin-data", "args": ["{item}.b", 1]}, "/plugin_data/{item}/b"), ({"op": "log"}, None),
])
def test_what_an_action_writes(action: dict[str, Any], path: str | None) -> None:
    found = rules.search_texts({"sensitive": False, "conditions": [], "actions": [action]})
    assert found["writes"] == (f"\n{path}\n" if path else "")
    assert rules.search_texts({"sensitive": True, "conditions": [], "actions": [action]}) == {
        "ops": None, "writes": None}


def test_operators_are_found_with_and_without_their_inverse() -> None:
    ops = rules.search_texts({"sensitive": False, "actions": [], "conditions": [
        {"op": "eq"}, {"op": "!lt"}, {"op": "! in-net"}]})["ops"] or ""
    found = {op: [text in ops for text in rules.terms_of_op(op)] == [True]
             for op in ("eq", "!eq", "lt", "! lt", "in-net", "!in-net", "net", "l")}
    assert found == {"eq": True, "!eq": False, "lt": True, "! lt": True, "in-net": True, "!in-net": True, "net": False,
                     "l": False}
