from __future__ import annotations

import pytest

from ironic_rules.rules import template, values
from ironic_rules.rules.errors import OperandError
from ironic_rules.rules.template import Field
from tests.walking import walking


def test_text_without_fields_is_one_part() -> None:
    assert template.parse("plain") == ("plain",)


def test_empty_text_has_no_parts() -> None:
    assert template.parse("") == ()


def test_fields_have_a_root_steps_and_a_column() -> None:
    assert template.parse("x {a.b[c][0]} y") == ("x ", Field("a", ("b", "c", "0"), "{a.b[c][0]}", 3), " y")


def test_adjacent_fields() -> None:
    assert template.parse("{a}{b}") == (Field("a", (), "{a}", 1), Field("b", (), "{b}", 4))


def test_fields_may_have_conversions() -> None:
    assert template.parse("{a.b[c|d]|lower|slug}-") == (
        Field("a", ("b", "c|d"), "{a.b[c|d]|lower|slug}", 1, ("lower", "slug")), "-")


def test_fields_may_have_the_formats_of_python() -> None:
    assert template.parse("{a.b!r:>9}") == (Field("a", ("b",), "{a.b!r:>9}", 1, (), "r", ">9"),)
    assert template.parse("{a|lower:*^10.3s}{a!s}") == (
        Field("a", (), "{a|lower:*^10.3s}", 1, ("lower",), "", "*^10.3s"), Field("a", (), "{a!s}", 18, (), "s"))


@walking("value, spec", [
    (7, "04d"), (7, ">4"), (-7, "+#x"), (1234567, ","), (0.12345, ".2%"), (1.5, "8.3f"), ("ab", "^6"), ("abc", ".2"),
    (True, ""), (65536, "_b"), (1e9, "g")])
def test_a_format_gives_what_python_does(value: object, spec: str) -> None:
    assert template.parse(f"{{a:{spec}}}")
    assert template.formatted(value, "", spec) == format(value, spec)
    assert template.formatted(value, "r", "") == repr(value)


@walking("value, spec", [("ab", "d"), (1.5, "x"), ([1], ">9"), (None, "s"), (1, ".2d")])
def test_a_format_of_another_kind_of_value_cannot_be_evaluated(value: object, spec: str) -> None:
    with pytest.raises(OperandError):
        template.formatted(value, "", spec)


def test_names_are_those_that_any_context_has() -> None:
    assert {*values.ROOTS, "item", template.ROOT_GROUPS} == template.NAMES


@walking("text, columns", [
    (r"{inventory\[system_vendor\]}", [1]), ("x{a|b}{a b}", [2, 7]), ("{foo", [1]), ("{a.b}{2}[{]", []),
    ("{inventory[a]}{inventory[b}", [15])])
def test_a_brace_of_a_regular_expression_that_begins_no_template_is_literal(text: str, columns: list[int]) -> None:
    assert template.stray_braces(text) == columns
    assert "".join(part if isinstance(part, str) else part.text for part in template.parse(text, regex=True)) == text


@walking("text", ["{inventory[a]|lowr}", "{item!x}", "{node.name:n}"])
def test_a_misspelt_conversion_in_a_regular_expression_is_refused(text: str) -> None:
    with pytest.raises(template.ConversionError):
        template.parse(text, regex=True)


def test_doubled_braces_are_literal() -> None:
    assert template.parse("{{a}} {{") == ("{a} {",)


def test_keys_may_have_almost_any_character() -> None:
    field, = template.parse("{a[b c!d:e.f/g-h]}")
    assert isinstance(field, Field)
    assert field.steps == ("b c!d:e.f/g-h",)


@walking("text, column, reason", [
    ("{", 2, "a name must follow"), ("{}", 2, "a name must follow"), ("{0}", 2, "a name must follow"),
    ("{ a}", 2, "a name must follow"), ("a }", 3, "single '}'"), ("{a", 1, "is not closed"),
    ("{a[b}", 5, "']' is missing"), ("{a[b", 5, "']' is missing"), ("{a[]}", 4, "the key is empty"),
    ("{a.}", 4, "a key must follow '.'"), ("{a..b}", 4, "a key must follow '.'"), ("{a!a}", 3, "!a is not supported"),
    ("{a:n}", 4, "the type n is not supported"), ("x{a:200000000}", 5, "a format specification is"),
    ("{a:>{b}}", 5, "a template inside a template"), ("{a!r", 1, "is not closed"), ("{a:9", 1, "is not closed"),
    ("{a b}", 3, "expected"),
    ("{a[{item}][b]}", 4, "a template inside a template"), ("{a.{b}}", 4, "a key must follow"),
    ("{a{b}}", 3, "a template inside a template"), ("{a['b']}", 4, "without quotes"), ("{a]}", 3, "expected"),
    ("{a.b|lover}", 6, "did you mean 'lower'?"), ("{a|x}", 4, "known: address, any, count"),
    ("{a.b|c}", 6, "a key that contains '|' needs brackets"), ("{a|}", 4, "no such conversion"),
    ("{a | lower}", 3, "expected"), ("{a|lower |slug}", 9, "after a conversion"), ("{a|lower.b}", 9, "after a conv"),
    ("{a|lower", 1, "is not closed"), ("{a|lower!x}", 9, "with '|'"), ("{a|lower:y}", 10, "a format specification is"),
    ("{a|lower|lower|lower|lower|lower}", 27, "more than 4 conversions"), ("{a|{b}}", 4, "no such conversion"),
    ("{a!lower}", 3, "written with '|', as in {inventory[hostname]|lower}; known: address, any, count"),
])
def test_malformed_text_is_refused_with_its_column(text: str, column: int, reason: str) -> None:
    with pytest.raises(template.TemplateError, match=f"column {column}: .*") as caught:
        template.parse(text)
    assert caught.value.column == column
    assert reason in str(caught.value)


@walking("text", [
    "a{2,3}|b", r"(\p{Lu}|x{2}|lower)",
    "a{2}", "a{2,}", "a{2,3}", "a{,3}", r"\p{Lu}", r"\x{10FFFF}", r"\{a\}", "[{]", "}", r"\\", "a{",
])
def test_braces_of_regular_expressions_are_literal(text: str) -> None:
    assert "".join(str(part) for part in template.parse(text, regex=True)) == text


def test_regular_expressions_may_have_fields() -> None:
    assert template.parse("^{a.b}{2}$", regex=True) == ("^", Field("a", ("b",), "{a.b}", 2), "{2}$")
    assert template.parse("x|{a|lower}|y{2}", regex=True) == ("x|", Field("a", (), "{a|lower}", 3, ("lower",)), "|y{2}")
