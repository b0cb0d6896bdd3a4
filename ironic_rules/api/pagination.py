"""Pages of collections: ``limit``, ``marker``, ``sort_key``, ``sort_dir``, ``fields``, and the ``next`` link."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl, urlencode

import orjson

from ironic_rules.api import versions
from ironic_rules.api.filters import check_fields
from ironic_rules.api.request import Request
from ironic_rules.db.paging import Page
from ironic_rules.exceptions import InvalidParameterValue, MarkerNotFound
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.fields import Fields

#: Parameters of every list; all others are filters.
PARAMETERS = frozenset({"limit", "marker", "sort_key", "sort_dir", "fields", "detail", "facts"})
#: Values that are encoded at once.
_ROWS = 30


def page(request: Request, query: Mapping[str, Any]) -> Page:
    """Return the requested page, with one row more than is shown: that row indicates whether more follow.

    ``limit`` defaults to ``[api]max_limit``, which is also its maximum.
    """
    most = request.conf.api.max_limit
    limit = min(query.get("limit", most), most)
    return Page(limit=limit + 1, marker=query.get("marker"), sort_key=query.get("sort_key", "id"),
                sort_dir=query.get("sort_dir", "asc"))


def filters(query: Mapping[str, object]) -> JSONObject:
    """Return the filters of a list request."""
    return {name: value for name, value in query.items() if name not in PARAMETERS}


def requested_fields(request: Request, query: Mapping[str, Any], table: Fields) -> tuple[str, ...] | None:
    """Return the ``fields`` that a request names; None if it names none.

    :raises NotAcceptable: 406, its version lacks ``fields``, or one of those fields;  InvalidParameterValue: 400
    """
    fields: tuple[str, ...] | None = query.get("fields")
    if fields is not None:
        if request.version < versions.FIELDS:
            raise versions.too_new("fields", versions.FIELDS)
        check_fields(fields, table.shown)
        versions.refuse_fields(table, fields, request.version)
    return fields


def shown_fields(request: Request, query: Mapping[str, object], detail: bool | None, table: Fields,
                 default: tuple[str, ...] | None, since: int = versions.DETAIL) -> tuple[str, ...] | None:
    """Return the fields that a list shows, None: all.

    :param detail: True: for a ``detail`` URL
    :param default: those of a list without ``detail`` and ``fields``
    :param since: the first version with ``detail``
    :raises InvalidParameterValue: 400, both are given, or the version does not have ``detail``
    :raises NotAcceptable: 406, as from :func:`requested_fields`
    """
    fields = requested_fields(request, query, table)
    if detail:
        if fields is not None:
            raise InvalidParameterValue("fields cannot be used with a detailed list.")
        return None
    if "detail" in query and request.version < since:
        raise InvalidParameterValue(f"detail needs at least API version 1.{since}.")
    return None if query.get("detail") else fields or default


def collection(request: Request, name: str, rows: Sequence[object], page: Page,
               view: Callable[[Sequence[Any]], Iterable[Any]], *, marker: str = "uuid") -> JSONObject:
    """Return ``{name: [...], "next": URL}``; ``next`` only if more rows follow.

    :param rows: what the repository returned for ``page``
    :param view: turns the rows of the page into their JSON
    :param marker: the column that ``marker`` names
    """
    limit = page.limit - 1
    shown = rows[:limit]
    reply: JSONObject = {name: _encoded(view(shown))}
    if len(rows) > limit:
        reply["next"] = next_url(request, limit, str(getattr(shown[-1], marker)))
    return reply


def _encoded(values: Iterable[object]) -> list[orjson.Fragment]:
    """Return the JSON of values, that of some in one piece: those of a page are some megabytes, its JSON is less."""
    items = iter(values)
    return [orjson.Fragment(orjson.dumps(some)[1:-1]) for some in iter(lambda: [*itertools.islice(items, _ROWS)], [])]


def next_url(request: Request, limit: int, marker: str) -> str:
    """Return the URL of the following page: the path and every parameter of this request, with the new marker."""
    parameters = parse_qsl(request.environ.get("QUERY_STRING", ""), keep_blank_values=True)
    others = [(key, value) for key, value in parameters if key not in ("limit", "marker")]
    query = urlencode([*others, ("limit", limit), ("marker", marker)])
    return f"{request.base}{request.environ['PATH_INFO'].rstrip('/')}?{query}"


def of_few(rows: Sequence[object], page: Page, marker: str) -> list[Any]:
    """Return a page of ``rows``, for collections too small to be paged in the database.

    :param marker: the attribute that identifies a row
    :raises MarkerNotFound: 404, no row has the marker
    """
    ordered = sorted(rows, key=lambda row: (str(getattr(row, page.sort_key) or ""), getattr(row, marker)),
                     reverse=page.sort_dir == "desc")
    start = 0
    if page.marker is not None:
        places = [index for index, row in enumerate(ordered) if getattr(row, marker) == page.marker]
        if not places:
            raise MarkerNotFound(marker=page.marker)
        start = places[0] + 1
    return ordered[start:start + page.limit]
