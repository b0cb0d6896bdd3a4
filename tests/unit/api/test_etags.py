"""Entity tags and the headers that name them, as RFC 9110 says: the grammar, both comparisons, the answers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ironic_rules.api import etags
from ironic_rules.api.etags import ANY, Preconditions, Tag
from ironic_rules.exceptions import Invalid, PreconditionFailed, node_changed, rule_changed
from tests.walking import walking
from tests.wordings import refused


@walking("text, tags", [
    ('"a"', (Tag('"a"'),)), ('W/"a"', (Tag('"a"', True),)), ('""', (Tag('""'),)),
    ('"a","b"', (Tag('"a"'), Tag('"b"'))), ('"a" , W/"b"\t,"c"', (Tag('"a"'), Tag('"b"', True), Tag('"c"'))),
    ('  "a"  ', (Tag('"a"'),)), (',, "a" ,, "b",', (Tag('"a"'), Tag('"b"'))),
    ('"a,b"', (Tag('"a,b"'),)), ('"*"', (Tag('"*"'),)), ('"W/x"', (Tag('"W/x"'),)),
    ('"a\\"', (Tag('"a\\"'),)), ('"a\\","b"', (Tag('"a\\"'), Tag('"b"'))),
    ('"\x80\xff"', (Tag('"\x80\xff"'),)), ('"!#~"', (Tag('"!#~"'),)),
])
def test_a_header_is_a_list_of_tags(text, tags):
    assert etags.parse(text) == tags


@walking("text", ["*", " *", "*\t"])
def test_a_star_is_any_tag(text):
    assert etags.parse(text) is ANY


@walking("text, column", [
    ("a", 1), ('"a', 1), ('a"', 1), ("'a'", 1), ('w/"a"', 1), ('W /"a"', 1), ('W/ "a"', 1), ("W/a", 1), ('"a""b"', 4),
    ('"a" "b"', 5), ('"a";"b"', 4), ('"a b"', 1), ('"a\tb"', 1), ('"a", *', 6), ("*, *", 1), ('*, "a"', 1), ("**", 1),
    ('"a\x7f"', 1), ('"a\0"', 1), ('"a"\n', 4), ('"\u0100"', 1), ('"a", b', 6), ('\xa0"a"', 1),
])
def test_what_is_no_list_of_tags_is_refused_with_its_column(text, column):
    with pytest.raises(Invalid, match=f"^If-None-Match: column {column}: "):
        etags.parse(text, "If-None-Match")


@walking("text", ["", " ", ",", " , ,\t", "," * etags.MAX_LENGTH])
def test_a_header_without_a_tag_is_refused(text):
    with pytest.raises(Invalid, match=r"^If-Match: must have 1 to 100 entity tags"):
        etags.parse(text)


def test_a_header_is_bounded():
    assert len(etags.parse(",".join(['"a"'] * etags.MAX_TAGS))) == etags.MAX_TAGS
    assert etags.parse(f'"{"a" * (etags.MAX_LENGTH - 2)}"')
    with pytest.raises(Invalid, match="1 to 100"):
        etags.parse(",".join(['"a"'] * (etags.MAX_TAGS + 1)))
    with pytest.raises(Invalid, match="longer than 8192"):
        etags.parse(f'"{"a" * etags.MAX_LENGTH}"')


@pytest.mark.slow
@given(st.text(st.characters(max_codepoint=255), max_size=40) | st.text('"W/*, \t\\a', max_size=20))
def test_any_text_is_tags_or_refused(text):
    try:
        tags = etags.parse(text)
    except Invalid as error:
        assert str(error).startswith("If-Match: ")
    else:
        assert tags is ANY or all(tag.opaque in text for tag in tags)


OPAQUE = st.text(st.characters(
    min_codepoint=0x21, max_codepoint=0xff, exclude_characters='"\x7f', exclude_categories=()), max_size=5)


@pytest.mark.slow
@given(st.lists(st.tuples(st.booleans(), OPAQUE), min_size=1, max_size=5), st.sampled_from([",", ", ", " ,\t", ",,"]))
def test_what_is_joined_is_parted_again(tags, separator):
    wanted = tuple(Tag(f'"{text}"', weak) for weak, text in tags)

    assert etags.parse(separator.join(f"{'W/' if tag.weak else ''}{tag.opaque}" for tag in wanted)) == wanted


def test_a_tag_is_strong_and_differs_when_any_part_does():
    tags = [etags.tag(*parts) for parts in (
        ("a", 1), ("a", 2), ("b", 1), ("a1",), ("a", "1", ""), ("", "a1"), (b"a", 11), (), ("",))]

    assert len(set(tags)) == len(tags)
    assert etags.tag("a", 1) == tags[0] == etags.tag(b"a", "1")
    assert all(etags.parse(tag) == (Tag(tag),) for tag in tags)


CURRENT = etags.tag("x", 1)


@walking("header", ["*", CURRENT, f'"other", {CURRENT}', f"W/{CURRENT}, {CURRENT}"])
def test_if_match_holds_for_a_star_and_for_a_strong_tag(header):
    conditions = etags.read({"HTTP_IF_MATCH": header})

    conditions.check(CURRENT)
    conditions.check_match(CURRENT)
    assert conditions.given
    assert not conditions.has(CURRENT)


@walking("header", ['"other"', f"W/{CURRENT}", '""', CURRENT.upper(), f'"{CURRENT[1:-2]}"'])
def test_if_match_fails_for_other_and_for_weak_tags(header):
    conditions = etags.read({"HTTP_IF_MATCH": header})

    for check in (conditions.check, conditions.check_match):
        with pytest.raises(PreconditionFailed, match=r"^If-Match does not hold"):
            check(CURRENT)


@walking("header", ["*", CURRENT, f"W/{CURRENT}", f'"other", W/{CURRENT}'])
def test_if_none_match_compares_weakly_and_forbids_only_changes(header):
    conditions = etags.read({"HTTP_IF_NONE_MATCH": header})

    assert conditions.has(CURRENT)
    conditions.check_match(CURRENT)
    with pytest.raises(PreconditionFailed, match=r"^If-None-Match does not hold"):
        conditions.check(CURRENT)


def test_if_none_match_of_another_tag_lets_pass():
    conditions = etags.read({"HTTP_IF_NONE_MATCH": '"other"'})

    assert not conditions.has(CURRENT)
    conditions.check(CURRENT)


def test_what_has_no_tag_matches_a_star_only():
    etags.read({"HTTP_IF_MATCH": "*"}).check(None)
    with pytest.raises(PreconditionFailed):
        etags.read({"HTTP_IF_MATCH": CURRENT}).check(None)


def test_without_headers_everything_passes():
    conditions = etags.read({"HTTP_IF_MODIFIED_SINCE": "x", "HTTP_IF_RANGE": '"x"'})

    assert conditions == Preconditions()
    assert not conditions.given
    assert not conditions.has(CURRENT)
    conditions.check(CURRENT)


@walking("key", ["HTTP_IF_MATCH", "HTTP_IF_NONE_MATCH"])
def test_reading_refuses_a_malformed_header(key):
    with pytest.raises(Invalid):
        etags.read({key: "a"})


def test_a_lost_race_is_a_failed_precondition_for_who_named_a_tag():
    with pytest.raises(PreconditionFailed), etags.read({"HTTP_IF_MATCH": CURRENT}).guard():
        raise rule_changed(rule="x")


@walking("environ", [{}, {"HTTP_IF_MATCH": "*"}, {"HTTP_IF_NONE_MATCH": '"other"'}])
def test_a_lost_race_stays_a_conflict_for_everybody_else(environ):
    with refused(rule_changed), etags.read(environ).guard():
        raise rule_changed(rule="x")


def test_other_conflicts_are_left_alone():
    with refused(node_changed), etags.read({"HTTP_IF_MATCH": CURRENT}).guard():
        raise node_changed(node="x")
