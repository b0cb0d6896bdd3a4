"""Accepted JSON bodies."""

from __future__ import annotations

import json
import tracemalloc

import pytest

from ironic_rules.api import body as body_api
from ironic_rules.exceptions import Invalid
from ironic_rules.models import json_text
from tests.walking import walking


@walking("value", [
    {}, [], None, 0, "x", {"a": {"a": {"a": 1}}}, {"a": 9223372036854775807, "b": -9223372036854775808},
    {"text": 'looks like "a": 1, "a": 2', "more": "\\\":"}, {"serial": "12345678901234567890123"}, {"x": 1.5e300},
    {"emptykey": {"": 1}}, [{"a": 1}, {"a": 1}], {"a": "\ud83d\ude00"}, {"f": 1234567890123456789.5},
    [": a", ":", {"k": ": b", "c:": ":"}], [18446744073709551615, 1e19],
])
def test_valid_json_is_what_any_parser_makes_of_it(value):
    raw = json.dumps(value, indent=2).encode()

    assert body_api.parse(raw, 100) == json.loads(raw)


def test_an_empty_body_is_none():
    assert body_api.parse(b"", 100) is None
    assert body_api.parse_report(b"", 100) == (None, [])


@walking("raw", [
    b'{"a":1,"a":2}', b"18446744073709551616", b"NaN", b"1e400", b'"\\ud800"', b"\xef\xbb\xbf{}", b'"a\nb"',
    b'["\\u0000"]'])
def test_a_report_may_have_what_other_bodies_may_not(raw):
    with pytest.raises(Invalid):
        body_api.parse(raw, 100)
    assert body_api.parse_report(raw, 100)


@walking("raw, reason", [
    (b"[" * 101 + b"NaN" + b"]" * 101, "not valid|100 levels"), (b"[" * 101 + b"]" * 101, "100 levels"),
    (b"[" + b"NaN," * 50 + b"1]", "more than 20 values"), (b"{'a': NaN}", "not valid"), (b"[NaN", "not valid")])
def test_a_report_that_endangers_the_service_or_is_not_json_is_refused(raw, reason):
    with pytest.raises(Invalid, match=reason):
        body_api.parse_report(raw, 100, max_values=200 if raw[1:2] == b"[" else 20)


@walking("raw, reason", [
    (b'{"a":1,"a":2}', "duplicate"), (b'[{"x":{"b" \n:1,"b":1}}]', "duplicate"), (b'{"a":1,"\\u0061":2}', "duplicate"),
    (b'{"a":"\\":","b":1,"b":1}', "duplicate"), (b"18446744073709551616", "64 bit"),
    (b'{"a":[-9223372036854775809]}', "64 bit"),
    (b"1" * 200, "64 bit"), (b"NaN", "not valid"), (b"-Infinity", "not valid"), (b"1e400", "not valid"),
    (b'"\\ud800"', "not valid"), (b'{"a":1}x', "not valid"), (b"{'a':1}", "not valid"), (b"[1,]", "not valid"),
    (b"\xef\xbb\xbf{}", "not valid"), (b'"a\nb"', "not valid"), (b" ", "not valid"), (b'{"a\\u0000":1}', "NUL"),
    (b'["\\u0000"]', "NUL"),
])
def test_what_parsers_let_through_is_refused(raw, reason):
    with pytest.raises(Invalid, match=reason):
        body_api.parse(raw, 100)


@walking("opening, closing", [(b"[", b"]"), (b'{"a":', b"}")])
def test_the_depth_is_bounded(opening, closing):
    def nested(levels: int) -> bytes:
        return opening * levels + b"1" + closing * levels

    assert body_api.parse(nested(100), 100) is not None
    for levels in (101, 1000, 100_000):
        with pytest.raises(Invalid, match="100 levels"):
            body_api.parse(nested(levels), 100)


def test_nul_characters_pass_where_they_are_allowed():
    assert body_api.parse(b'["\\u0000"]', 100, allow_nul=True) == ["\0"]


def test_an_escaped_backslash_before_u0000_is_no_nul():
    assert body_api.parse(b'["\\\\u0000"]', 100) == ["\\u0000"]


def test_a_swarm_of_values_is_refused_before_it_is_parsed():
    with pytest.raises(Invalid, match="values"):
        body_api.parse(b"[" * (body_api.MAX_VALUES + 1), 100)


def test_errors_do_not_repeat_the_body():
    with pytest.raises(Invalid) as caught:
        body_api.parse(b'{"password": hunter2}', 100)

    assert "hunter2" not in str(caught.value)
    assert "line 1 column 14" in str(caught.value)


def test_commas_inside_of_texts_are_no_values():
    text = ",[{" * body_api.MAX_VALUES
    assert body_api.parse(json.dumps({"logs": text, "more": '"[,'}).encode(), 100) == {"logs": text, "more": '"[,'}
    with pytest.raises(Invalid, match="values"):
        body_api.parse(json.dumps([text, *range(body_api.MAX_VALUES)]).encode(), 100)


#: Strings in which something looks like the outside of strings, keys and numbers on both sides of every border.
TRICKY = {'a"b': ["\\", '\\"', ":", '":', "", {"x\\": {}, '"': 1}], "n": [2**64 - 1, -(2**63), 1.5, 1e300, None, True],
          "long": "\\" * 40 + '"' * 9, " ": {'\\":': [[], {"": ["a", {"b": 'c":1,"c'}]}]}}


@pytest.mark.parametrize("window", [1, 2, 3, 7, 64])
@pytest.mark.parametrize("indent", [None, 1])
def test_a_body_is_looked_at_in_windows_of_any_size(monkeypatch, window, indent):
    monkeypatch.setattr(json_text, "_WINDOW", window)
    raw = json.dumps(TRICKY, indent=indent).encode()

    assert body_api.parse(raw, 100) == TRICKY
    for wrong, reason in ((b'{"dup":' + raw + b', "dup" :1}', "duplicate"),
                          (b"[" + raw + b",18446744073709551616]", "64 bit"),
                          (b"[" + raw + b",-9223372036854775809 ]", "64 bit")):
        with pytest.raises(Invalid, match=reason):
            body_api.parse(wrong, 100)


@walking("body", [b"[" + b'"",' * 300_000 + b'""]', b'["' + b'\\":' * 300_000 + b'"]'])
def test_a_body_is_counted_without_copies_of_it(body):
    tracemalloc.start()
    try:
        assert body_api._exceeds(body, 10**9) is False
        assert body_api._keys_at_most(body) == body.count(b'":')
        assert body_api._keys(body) == 0
        assert tracemalloc.get_traced_memory()[1] < 6 * 2**20
    finally:
        tracemalloc.stop()


def test_those_without_credentials_may_send_fewer_values():
    assert body_api.most_values(4 * 2**20) == 104_857
    assert body_api.most_values(64 * 1024) == 50_000
    assert body_api.most_values(2**30) == body_api.MAX_VALUES
    with pytest.raises(Invalid, match="more than 50000 values"):
        body_api.parse(b"[" + b"1," * 50_000 + b"1]", 100, max_values=body_api.most_values(64 * 1024))
