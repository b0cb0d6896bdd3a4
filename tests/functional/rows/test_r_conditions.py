"""The result of each operator for given values (R-35 to R-44)."""

from __future__ import annotations

from typing import Any

from tests.functional.rows.conftest import create, holds, inspected, refusal
from tests.walking import walking

TRUE = [True, 1, -1, 0.5, "yes", "true", "YES", "True", "tRuE"]
FALSE = [False, 0, 0.0, None, "no", "false", "NO", "False", "fAlSe"]
NEITHER = ["maybe", "", "1", "0", " true", "y", [], [1], {}, {"a": 1}]


def with_value(op: str, values: list[Any]) -> list[bool | None]:
    """Return the result of ``op`` for each value, given in the rule and read from data."""
    literal = [holds(op, value) for value in values]
    assert [holds(op, "{plugin_data[v]}", plugin_data={"v": value}) for value in values] == literal
    return literal


def test_r_35_is_true_holds_for_true_numbers_other_than_zero_yes_and_true():
    assert with_value("is-true", TRUE) == [True] * len(TRUE)
    assert with_value("is-true", [*FALSE, *NEITHER]) == [False] * len([*FALSE, *NEITHER])


def test_r_36_is_false_holds_for_false_zero_none_no_and_false():
    assert with_value("is-false", FALSE) == [True] * len(FALSE)
    assert with_value("is-false", [*TRUE, *NEITHER]) == [False] * len([*TRUE, *NEITHER])


def test_r_37_is_none_holds_for_none_only():
    assert with_value("is-none", [None]) == [True]
    assert with_value("is-none", ["None", "null", "", 0, False, [], {}]) == [False] * 7


def test_r_37_is_none_holds_for_a_null_of_the_inventory(whole):
    create(whole, {"op": "set-attribute", "args": ["/extra/none", True]},
           conditions=[{"op": "is-none", "args": ["{inventory[bmc_v6address]}"]}])

    assert inspected(whole, {"bmc_v6address": None})["extra"] == {"none": True}
    assert inspected(whole, {"bmc_v6address": "2001:db8::7"})["extra"] == {}


def test_r_38_is_empty_holds_for_none_and_empty_text_lists_and_objects():
    assert with_value("is-empty", [None, "", [], {}]) == [True] * 4
    assert with_value("is-empty", [" ", "None", "[]", "{{}}", 0, False, [None], [[]], {"a": None}]) == [False] * 9


def test_r_39_eq_compares_all_values_with_their_types():
    assert [holds("eq", *values) for values in (
        [1, 1, 1], [1, 1.0], ["a", "a"], [None, None], [[1], [1]])] == [True] * 5
    assert [holds("eq", *values) for values in (
        [1, 1, 2], [2, 1, 1], [8, "8"], [1, True], [None, "None"], ["a", "A"])] == [False] * 6


def test_r_39_lt_and_gt_need_every_value_to_be_less_or_greater_than_the_next():
    assert [holds("lt", *values) for values in ([1, 2], [1, 2, 3], ["a", "b"], [9, 10], [1, 1.5])] == [True] * 5
    assert [holds("lt", *values) for values in ([1, 1], [1, 3, 2], ["9", "10"], [1, "2"], [None, 1])] == [False] * 5
    assert [holds("gt", *values) for values in ([2, 1], [3, 2, 1], ["b", "a"], [10, 9])] == [True] * 4
    assert [holds("gt", *values) for values in ([1, 1], [2, 3, 1], ["10", "9"], ["2", 1])] == [False] * 4


def test_r_39_force_strings_compares_the_text_of_all_values():
    def forced(op: str, *values: Any) -> bool | None:
        return holds(op, named={"values": list(values), "force_strings": True})

    assert (forced("eq", 8, "8"), forced("eq", 8, "9"), forced("eq", True, "True")) == (True, False, True)
    assert (forced("lt", 10, 9), forced("gt", 10, 9), forced("lt", "a", 1)) == (True, False, False)


def test_r_39_the_list_form_is_values_only_and_no_third_one_is_force_strings():
    assert holds("eq", 8, "8", True) is False
    assert holds("eq", True, True, True) is True


@walking("op, smaller, same, greater", [
    ("!eq", True, False, True), ("!gt", True, True, False), ("!lt", False, True, True),
])
def test_r_40_the_inverses_are_unequal_at_most_and_at_least(op, smaller, same, greater):
    assert [holds(op, value, 2) for value in (1, 2, 3)] == [smaller, same, greater]


@walking("name, holding, failing", [("ne", (1, 2), (1, 1)), ("le", (1, 1), (2, 1)), ("ge", (1, 1), (1, 2))])
def test_r_40_inspectors_names_for_their_inverses_are_accepted(name, holding, failing):
    assert (holds(name, *holding), holds(name, *failing)) == (True, False)


def test_r_41_in_net_holds_for_an_address_in_the_network():
    assert [holds("in-net", *args) for args in (
        ["192.0.2.7", "192.0.2.0/24"], ["192.0.2.7", "192.0.2.7"], ["2001:db8::1", "2001:db8::/32"])] == [True] * 3
    assert [holds("in-net", *args) for args in (
        ["192.0.3.7", "192.0.2.0/24"], ["2001:db9::1", "2001:db8::/32"], ["192.0.2.7", "::/0"])] == [False] * 3


def test_r_41_an_address_that_is_none_is_outside_and_does_not_fail_the_inspection(whole):
    create(whole, {"op": "set-attribute", "args": ["/extra/in", True]},
           conditions=[{"op": "in-net", "args": ["{inventory[hostname]}", "0.0.0.0/0"]}])

    node = inspected(whole, {"hostname": "not-an-address"})

    assert (node["provision_state"], node["extra"]) == ("manageable", {})


@walking("subnet", ["10.0.0.0/99", "zz", "", 5])
def test_r_41_a_network_that_is_none_is_refused(whole, subnet):
    assert "/conditions/0/args/1" in refusal(whole, conditions=[{"op": "in-net", "args": ["192.0.2.1", subnet]}])


def test_r_42_contains_finds_the_expression_anywhere_in_the_value():
    vendor = "Dell Inc."

    assert [holds("contains", vendor, regex) for regex in ("Dell", "Inc", "(?i)dell", "^D", "[.]$", "")] == [True] * 6
    assert [holds("contains", vendor, regex) for regex in ("dell", "^Inc", "Dell$")] == [False] * 3


def test_r_42_a_bad_expression_is_refused_when_the_rule_is_created(whole):
    conditions = [{"op": op, "args": ["{inventory[hostname]}", "("]} for op in ("contains", "matches")]

    text = refusal(whole, conditions=conditions)

    assert "/conditions/0/args/1" in text
    assert "/conditions/1/args/1" in text


def test_r_43_matches_needs_the_expression_to_match_the_whole_value():
    assert [holds("matches", *args) for args in (
        ["abc", "a.c"], ["b", "a|b"], ["a", "a|ab"], ["ab", "a|ab"], ["", ""], ["a\n", r"a\n"])] == [True] * 6
    assert [holds("matches", *args) for args in (
        ["abc", "ab"], ["abc", "bc"], ["ax", "a|b"], ["xb", "a|b"], ["a\n", "a"], ["a", ""], ["a$", "a"])
            ] == [False] * 7


def test_r_44_one_of_holds_for_a_value_of_the_list_of_any_type():
    values = [8, "a", None, True, [1], {"k": 1}]

    assert [holds("one-of", value, values) for value in values] == [True] * 6
    assert [holds("one-of", value, values) for value in ("8", 1, "None", False, [], {"k": 2}, "b")] == [False] * 7
    assert holds("one-of", "{inventory[cpu][count]}", [8, 40]) is True
    assert holds("one-of", "vmx", "{inventory[cpu][flags]}") is True


@walking("values", [[], [40], ["40"], [8, 16, 40], [True, None, 40.0]])
def test_r_44_one_of_says_what_eq_says_in_a_loop(values):
    count = "{inventory[cpu][count]}"

    assert holds("one-of", count, values) is holds("eq", count, "{item}", loop=values)
