from __future__ import annotations

from collections import namedtuple
from typing import Protocol

import orjson

from ironic_rules.api.views.rows import RowView
from ironic_rules.models.fields import Fields, field, form
from tests.walking import walking

Row = namedtuple("Row", "uuid extra info id")


@form
class Thing(Protocol):
    id: int = field(shown=False)
    uuid: str = field()
    extra: dict[str, object] = field()
    info: dict[str, object] = field(secret=True)


THING = Fields.of(Thing)
VIEW = RowView(THING, "things", THING.shown, sub_resources=("parts",))


def shown(*rows, url="http://x", view=VIEW):
    return [orjson.loads(orjson.dumps(thing)) for _, thing in view.objects(rows, url)]


def test_no_rows_are_no_objects():
    assert shown() == []


@walking("row", [
    Row("u", '{"a":[1]}', '{"password":"p","b":1}', 7), Row("u", {"a": [1]}, {"password": "p", "b": 1}, 7)])
def test_json_may_be_text_or_decoded_and_secrets_are_masked(row):
    assert shown(row)[0] | {"links": 0, "parts": 0} == {
        "uuid": "u", "extra": {"a": [1]}, "info": {"password": "******", "b": 1}, "links": 0, "parts": 0}


@walking("empty", ["{}", {}, None])
def test_an_empty_object_is_one(empty):
    assert shown(Row("u", "{}", empty, 7))[0]["info"] == {}


def test_columns_may_come_in_any_order():
    turned = namedtuple("Turned", "id info extra uuid")

    assert shown(turned(7, "{}", '{"a":1}', "u"))[0]["extra"] == {"a": 1}


def test_links_lead_to_the_resource_and_below_it():
    thing = shown(Row("u", "{}", "{}", 7), url='http://a"b')[0]

    assert thing["links"] == [{"href": 'http://a"b/v1/things/u', "rel": "self"},
                              {"href": 'http://a"b/things/u', "rel": "bookmark"}]
    assert thing["parts"][0] == {"href": 'http://a"b/v1/things/u/parts', "rel": "self"}
