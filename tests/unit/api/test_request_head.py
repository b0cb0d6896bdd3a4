"""The first line and the headers of a request: which are well formed, against a plain reading line by line."""

from __future__ import annotations

import string

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ironic_rules.exceptions import Invalid
from ironic_rules.httpd import request
from tests import strategies
from tests.walking import walking

TOKEN = set(string.ascii_letters.encode() + string.digits.encode() + b"!#$%&'*+-.^_`|~")
TEXT = set(range(256)) - set(range(32)) - {127} | {9}
START = b"GET / HTTP/1.0\r\n"


def is_header(line: bytes) -> bool:
    name, colon, value = line.partition(b":")
    return bool(name and colon) and set(name) <= TOKEN and set(value) <= TEXT


def is_read(head: bytes) -> bool:
    try:
        request.read(head)
    except Invalid:
        return False
    return True


@pytest.mark.slow
@settings(max_examples=strategies.wanted(100), deadline=None)
@given(st.lists(st.text(alphabet="aé-_: \t,\r\n\0\"", max_size=6).map(str.encode), max_size=4))
@example([b"a:b", b"a"])
@example([b"a:b", b"a:b\na"])
@example([b"a: b", b"", b"a:"])
def test_headers_are_those_that_a_plain_reading_takes(lines):
    head = b"".join(line + b"\r\n" for line in lines)

    assert is_read(START + head + b"\r\n") == all(map(is_header, head.split(b"\r\n")[:-1]))


@walking("last, reason", [
    (b"a", "Header 20001 is not a name, a colon"),
    (b"a" * 100_000, "Header 20001 is not a name, a colon"),
    (b"a:" + b" " * 100_000 + b"\x00", "Header 20001 is not a name, a colon"),
    (b" a:b", "Header 20001 begins with a space"),
])
def test_the_number_of_steps_is_linear_in_the_length(last, reason):
    with pytest.raises(Invalid, match=reason):
        request.read(START + b"a:b\r\n" * 20_000 + last + b"\r\n\r\n")
