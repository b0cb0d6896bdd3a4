"""``If-None-Match`` of requests that read: a reply without a body while nothing has changed, for those who ask."""

from __future__ import annotations

from typing import Any

import pytest

from tests.functional.api.conftest import Client

LISTS = ["/v1/nodes", "/v1/nodes?detail=true&limit=3", "/v1/node_states", "/v1/ports", "/v1/operations?detail=true",
         "/v1/inspection_journal"]


def read(app: Client, path: str, tag: str) -> Any:
    return app.get(path, headers={"If-None-Match": tag})


@pytest.mark.parametrize("path", LISTS)
def test_a_list_that_has_not_changed_is_not_sent_again(app: Client, stocked: object, path: str) -> None:
    plain = app.get(path)
    assert "ETag" not in plain.headers

    first = read(app, path, '"none"')
    assert (first.status_int, first.body) == (200, plain.body)
    tag = first.headers["ETag"]

    for sent in (tag, f'"none", {tag}', f"W/{tag}", "*"):
        again = read(app, path, sent)
        assert (again.status_int, again.body, again.headers["ETag"]) == (304, b"", tag)
        assert "Content-Type" not in again.headers
    assert app.head(path, headers={"If-None-Match": tag}).status_int == 304


def test_a_list_that_has_changed_is_sent_with_another_tag(app: Client, stocked: object) -> None:
    tag = read(app, "/v1/nodes", '"none"').headers["ETag"]
    app.post_json("/v1/nodes", {"driver": "fake-hardware", "name": "another"})
    changed = read(app, "/v1/nodes", tag)
    assert changed.status_int == 200
    assert changed.headers["ETag"] != tag
    assert "another" in changed.text


def test_other_versions_of_the_api_have_other_tags(app: Client, stocked: object) -> None:
    tag = read(app, "/v1/nodes?detail=true", '"none"').headers["ETag"]
    older = app.get("/v1/nodes?detail=true", headers={"If-None-Match": tag, "X-OpenStack-Ironic-API-Version": "1.50"})
    assert older.status_int == 200


def test_only_successful_reading_is_conditional(app: Client, stocked: object) -> None:
    assert app.get("/v1/nodes?limit=x", headers={"If-None-Match": "*"}, status=400).fault
    assert app.get("/v1/nodes/nowhere", headers={"If-None-Match": "*"}, status=404).fault
    assert "If-None-Match" in app.get("/v1/nodes", headers={"If-None-Match": "x"}, status=400).fault["faultstring"]
