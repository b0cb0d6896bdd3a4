"""Query parameters."""

from __future__ import annotations

import pytest

from ironic_rules.api import filters
from ironic_rules.exceptions import InvalidParameterValue
from tests.walking import walking

LIST = filters.Listing(sort_keys=("uuid",), fields=("uuid", "name"), maintenance=filters.boolean, node=filters.text,
                       address=filters.mac)


@walking("query, loaded", [
    ("", {}), ("limit=1", {"limit": 1}), ("detail=True", {"detail": True}), ("details=True", {"detail": True}),
    ("fields=uuid,name", {"fields": ("uuid", "name")}), ("fields=uuid&fields=name", {"fields": ("uuid", "name")}),
    ("fields=uuid%2Cname", {"fields": ("uuid", "name")}), ("node=a+b%26c", {"node": "a b&c"}), ("node=", {"node": ""}),
    ("maintenance=no&sort_dir=desc", {"maintenance": False, "sort_dir": "desc"}),
    ("address=52-54-00-AA-00-01", {"address": "52:54:00:aa:00:01"}),
    ("detail=false&fields=uuid", {"detail": False, "fields": ("uuid",)}),
])
def test_parameters_are_converted(query, loaded):
    assert LIST.load(query) == loaded


@walking("query, named", [
    ("nosuch=1", "nosuch"), ("nosuch", "nosuch"), ("_method=delete", "_method"), ("limit=-1", "limit"),
    ("limit=0", "limit"), ("marker=name", "marker"),
    ("limit=nan", "limit"),
    ("limit=", "limit"), ("limit=1e3", "limit"), ("limit=٣", "limit"), ("limit=" + "9" * 30, "limit"),
    ("sort_key=name", "sort_key"), ("sort_dir=", "sort_dir"), ("fields=nosuch", "nosuch"), ("detail=2", "detail"),
    ("detail=1&fields=uuid", "detail"), ("node=%00", "node"), ("node=%0A", "node"), ("node=%FF", "node"),
    ("address=zz", "address"), ("%FF=1", "query parameters"),
])
def test_what_is_malformed_or_unknown_is_named(query, named):
    with pytest.raises(InvalidParameterValue, match=named):
        LIST.load(query)


def test_a_route_without_parameters_takes_none():
    with pytest.raises(InvalidParameterValue, match="limit"):
        filters.Query().load("limit=1")


def test_a_parameter_that_is_given_twice_is_refused_unless_it_is_a_list():
    query = filters.Query(phase=filters.text, fields=filters.names)
    assert query.load("fields=a&fields=b") == {"fields": ("a", "b")}
    with pytest.raises(InvalidParameterValue, match=r"phase.*more than once"):
        query.load("phase=early&phase=main")
