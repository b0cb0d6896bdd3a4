"""Pages of collections: ``limit``, ``marker``, ``sort_key``, ``sort_dir``, and the ``next`` link."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl, urlencode

import orjson
import pecan

from ironic_rules.api import links
from ironic_rules.db.paging import Page
from ironic_rules.exceptions import MarkerNotFound

#: Parameters of every list; all others are filters.
PARAMETERS = frozenset({"limit", "marker", "sort_key", "sort_dir", "fields", "detail"})
#: Values that are encoded at once.
_ROWS = 30


def page(query: Mapping[str, Any]) -> Page:
    """Return the requested page, with one row more than is shown: that row indicates whether more follow.

    ``limit`` defaults to ``[api]max_limit``, which is also its maximum.
    """
    most = pecan.core.state.request.conf.api.max_limit
    limit = min(query.get("limit", most), most)
    return Page(limit=limit + 1, marker=query.get("marker"), sort_key=query.get("sort_key", "id"),
                sort_dir=query.get("sort_dir", "asc"))


def filters(query: Mapping[str, Any]) -> dict[str, Any]:
    """Return the filters of a list request."""
    return {name: value for name, value in query.items() if name not in PARAMETERS}


def collection(name: str, rows: Sequence[Any], asked: Page, view: Callable[[Sequence[Any]], Iterable[Any]], *,
               marker: str = "uuid") -> dict[str, Any]:
    """Return ``{name: [...], "next": URL}``; ``next`` only if more rows follow.

    :param rows: what the repository returned for ``asked``
    :param view: turns the rows of the page into their JSON
    :param marker: the column that ``marker`` names
    """
    limit = asked.limit - 1
    shown = rows[:limit]
    reply: dict[str, Any] = {name: _encoded(view(shown))}
    if len(rows) > limit:
        reply["next"] = next_url(limit, str(getattr(shown[-1], marker)))
    return reply


def _encoded(values: Iterable[Any]) -> list[orjson.Fragment]:
    """Return the JSON of values, that of some in one piece: those of a page are some megabytes, its JSON is less."""
    found = iter(values)
    return [orjson.Fragment(orjson.dumps(some)[1:-1]) for some in iter(lambda: [*itertools.islice(found, _ROWS)], [])]


def next_url(limit: int, marker: str) -> str:
    """Return the URL of the following page: the path and every parameter of this request, with the new marker."""
    request = pecan.core.state.request
    given = parse_qsl(request.environ.get("QUERY_STRING", ""), keep_blank_values=True)
    kept = [(key, value) for key, value in given if key not in ("limit", "marker")]
    query = urlencode([*kept, ("limit", limit), ("marker", marker)])
    return f"{links.base()}{request.environ['PATH_INFO'].rstrip('/')}?{query}"


def of_few(rows: Sequence[Any], asked: Page, marker: str) -> list[Any]:
    """Return the page ``asked`` of ``rows``, for collections too small to be paged in the database.

    :param marker: the attribute that identifies a row
    :raises MarkerNotFound: 404, no row has the marker
    """
    ordered = sorted(rows, key=lambda row: (str(getattr(row, asked.sort_key) or ""), getattr(row, marker)),
                     reverse=asked.sort_dir == "desc")
    start = 0
    if asked.marker is not None:
        places = [index for index, row in enumerate(ordered) if getattr(row, marker) == asked.marker]
        if not places:
            raise MarkerNotFound(marker=asked.marker)
        start = places[0] + 1
    return ordered[start:start + asked.limit]
