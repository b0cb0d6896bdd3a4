"""Filters of the list of rules, and the order in which they run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ironic_rules.api import app as api_app
from ironic_rules.db import inspection_rules
from ironic_rules.inspection import rule_sets
from ironic_rules.inspection.rule_sets import RuleCaches, RuleSettings
from ironic_rules.rules import Limits
from tests.functional import databases
from tests.functional.api.conftest import Client
from tests.functional.api.test_rule_sets import LOG, RULES, put, rule
from tests.walking import walking

BUILT_IN = """
- {name: b-early, phase: early, priority: -3, actions: [{op: set-plugin-data, args: [site.rack, 1]}]}
- {name: b-first, priority: 100000000000, actions: [{op: set-attribute, args: [/driver, fake-hardware]}]}
- {name: b-mid, priority: 5, description: Of the MIDDLE É, actions: [{op: log, args: [x]}]}
- {name: b-hidden, priority: 5, sensitive: true, actions: [{op: set-attribute, args: [/driver, fake-hardware]}]}
- {name: b-last, priority: -100000000000, enabled: false, actions: [{op: log, args: [x]}]}
"""
CONDITION = {"op": "! eq", "args": ["{inventory[hostname]}", "a"]}


def action(op: str, *args: Any) -> dict[str, Any]:
    return {"op": op, "args": list(args)}


STORED = [
    rule("driver", priority=5, description="Sets 100%_it/É", actions=[
        {"op": "set-attribute", "args": {"path": "driver", "value": "fake-hardware"}}]),
    rule("info", priority=9, conditions=[CONDITION], actions=[action("set-attribute", "/driver_info/a~1b", 1)]),
    rule("hidden", sensitive=True, conditions=[CONDITION], actions=[action("set-attribute", "/driver", "x")]),
    rule("loop", priority=5, phase="preprocess", enabled=False, actions=[
        {**action("set-attribute", "/extra/{item}", 1), "loop": ["a"]}]),
    rule("traits", phase="early", actions=[action("extend-plugin-data", "/site/list", 1)]),
    rule("ports", priority=7, actions=[
        action("add-trait", "CUSTOM_A"), action("set-capability", "a", "b"),
        action("set-port-attribute", "{inventory[boot][pxe_interface]}", "/extra/a", 1)]),
]
ORDER = ["traits", "b-early", "loop", "b-first", "info", "ports", "driver", "b-mid", "b-hidden", "hidden", "b-last"]


@pytest.fixture
def stocked(conf, db, rpc, tmp_path: Path) -> Client:
    file = tmp_path / "rules.yaml"
    file.write_text(BUILT_IN)
    conf.set_override("built_in", str(file), group="inspection_rules")
    app = Client(api_app.make_app(conf, db, rpc, RuleCaches(db, rule_sets.prepare_rules(conf))))
    put(app, *STORED)
    put(app, rule("bundled", phase="early", priority=3), bundle="lab")
    return app


def found(app: Any, query: str) -> list[str]:
    return [shown["name"] for shown in app.get(f"{RULES}?{query}").json["inspection_rules"]]


@pytest.mark.parametrize("limit", [1, 2, 3, 50])
@pytest.mark.parametrize("order", ["asc", "desc"])
def test_the_order_of_execution_is_walked_page_by_page_across_both_kinds(stocked, limit, order):
    names, url = [], f"{RULES}?sort_key=execution&sort_dir={order}&limit={limit}&fields=name"
    while url:
        reply = stocked.get(url).json
        names += [shown["name"] for shown in reply["inspection_rules"]]
        assert all(shown.keys() == {"name", "links"} for shown in reply["inspection_rules"])
        url = reply.get("next", "")
    expected = ["bundled", *ORDER]
    assert names == (expected if order == "asc" else expected[::-1])


def test_the_order_of_execution_is_that_of_the_engine(stocked, db):
    """The stored rules, in the order of the list, are those of ``all_rules`` by phase."""
    with db.reader() as conn:
        stored = inspection_rules.all_rules(conn)
    by_phase = [found.name for phase in ("early", "preprocess", "main") for found in stored if found.phase == phase]
    assert found(stocked, "sort_key=execution&built_in=false") == by_phase


@walking("query, names", [
    ("built_in=true", ["b-early", "b-first", "b-mid", "b-hidden", "b-last"]),
    ("built_in=true&sensitive=false&phase=main", ["b-first", "b-mid", "b-last"]),
    ("sensitive=true", ["hidden", "b-hidden"]), ("enabled=false", ["loop", "b-last"]),
    ("enabled=no&built_in=0", ["loop"]),
    ("bundle=lab", ["bundled"]), ("name=driver", ["driver"]), ("name=b-mid", ["b-mid"]), ("valid=false", []),
    ("valid=true&built_in=false&phase=preprocess", ["loop"]),
    ("description=middle", ["b-mid"]), ("description=SETS", ["driver"]), ("description=100%25_", ["driver"]),
    ("description=0_i", []), ("description=0%25%25_", []), ("description=/", ["driver"]), ("description=//", []),
    ("description=%C3%A9", ["driver", "b-mid"]), ("description=%C3%89", ["driver", "b-mid"]),
    ("writes=/driver", ["driver", "b-first"]), ("writes=/driver_info", ["info"]),
    ("writes=/driver_info/a~1b", ["info"]), ("writes=/driver_info/a", []), ("writes=/extra", ["loop"]),
    ("writes=/traits", ["ports"]), ("writes=/properties", ["ports"]), ("writes=/properties/capabilities", ["ports"]),
    ("writes=/ports/extra", ["ports"]), ("writes=/plugin_data/site", ["traits", "b-early"]),
    ("writes=/plugin_data/site/rack", ["b-early"]), ("writes=/Driver", []),
    ("writes=", ["driver", "info", "loop", "traits", "ports", "b-early", "b-first"]),
    ("op=eq", ["info"]), ("op=!eq", ["info"]), ("op=!%20eq", ["info"]), ("op=add-trait", ["ports"]), ("op=trait", []),
    ("op=set-attribute", ["driver", "info", "loop", "b-first"]), ("op=is-true", []),
    ("op=set-attribute&writes=/driver&sort_key=execution", ["b-first", "driver"]),
])
def test_filters_find(stocked, query, names):
    assert found(stocked, query) == names


@walking("query", [
    "writes=driver", "writes=/a~2", "built_in=perhaps", "valid=x", "enabled=maybe", "op=%00", "sort_key=position",
    "sort_key=execution&marker=00000000-0000-0000-0000-000000000007",
])
def test_a_malformed_filter_is_refused(stocked, query):
    stocked.get(f"{RULES}?{query}", status=[400, 404])


def test_a_search_follows_what_is_changed(app):
    uuid = app.post_json(RULES, rule("a", actions=[action("add-trait", "CUSTOM_A")])).json["uuid"]
    assert found(app, "writes=/traits") == found(app, "op=add-trait") == ["a"]
    app.patch_json(f"{RULES}/{uuid}", [{"op": "replace", "path": "/actions", "value": [LOG]}])
    assert (found(app, "writes=/traits"), found(app, "op=log")) == ([], ["a"])
    app.patch_json(f"{RULES}/{uuid}", [{"op": "replace", "path": "/sensitive", "value": True}])
    assert found(app, "op=log") == []


def test_a_rule_that_is_no_longer_valid_is_shown_and_found(conf, db, rpc):
    app = Client(api_app.make_app(conf, db, rpc))
    put(app, rule("a"), rule("b", actions=[LOG, LOG]), rule("c", actions=[LOG] * 3, sensitive=True), rule("d"))
    strict = Client(api_app.make_app(conf, db, rpc, RuleCaches(db, RuleSettings(limits=Limits(actions=1)))))

    assert found(strict, "valid=false") == ["b", "c"]
    assert found(strict, "valid=true&limit=1") == ["a"]
    assert found(strict, "valid=true&sort_key=execution") == ["a", "d"]
    listed = {shown["name"]: shown for shown in strict.get(f"{RULES}?detail=true").json["inspection_rules"]}
    assert {name: (shown["valid"], shown["problems"]) for name, shown in listed.items()} == {
        "a": (True, None), "b": (False, [{"pointer": "/actions", "text": "more than 1 items"}]),
        "c": (False, [{"pointer": "", "text": "the rule is no longer valid"}]), "d": (True, None)}
    assert [shown["valid"] for shown in strict.get(RULES).json["inspection_rules"]] == [True, False, False, True]
    one = strict.get(f"{RULES}/{listed['b']['uuid']}").json
    assert (one["valid"], one["problems"]) == (False, listed["b"]["problems"])
    # The one that is unchanged makes the request fail, and mending it makes it pass.
    assert "/rules/1/actions: " in put(strict, rule("a"), rule("b", actions=[LOG, LOG]), status=400)
    put(strict, rule("b"), rule("c", sensitive=True))
    assert found(strict, "valid=false") == []


@pytest.mark.parametrize("kind", databases.KINDS)
def test_a_page_as_json_is_that_of_rows(conf, rpc, kind):
    with databases.migrated_database(kind) as url:
        database = databases.open_database(url)
        put(Client(api_app.make_app(conf, database, rpc)), *(rule(
            f"é{number}", description=[None, '"":0', "\\"][number % 3], sensitive=number % 4 == 3,
            scope=["a", None][number % 2], max_nodes=[None, 2**31 - 1][number % 2],
            conditions=[CONDITION] * (number % 3),
            actions=[{"op": "log", "args": ['"":0\x01{{"', "info"]}]) for number in range(8)))
        few = RuleCaches(database, RuleSettings(limits=Limits(conditions=1)))
        strict = Client(api_app.make_app(conf, database, rpc, few))

        for shown in ("", "&detail=true", "&fields=name", "&fields=conditions,uuid",
                      "&fields=problems,sensitive,actions", "&limit=3",
                      "&limit=3&detail=true", "&valid=false&detail=true", "&limit=8", "&name=none",
                      "&built_in=false&fields=built_in", "&sort_dir=desc&detail=true"):
            # Those in the order of execution, which is here that of creation, are read as rows.
            as_json, of_rows = (strict.get(f"{RULES}?sort_key={key}{shown}").body for key in ("id", "execution"))
            expected = of_rows.replace(b"sort_key=execution", b"sort_key=id")
            assert as_json == expected, shown
        database.dispose()
