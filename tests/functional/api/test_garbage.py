"""The remains of a request: nothing that only the garbage collector finds, above all no body of a reply.

The collector runs rarely on purpose (``cmd.lifecycle.settle``), so a cycle that holds a page of nodes is hundreds of
MiB with a few clients.
"""

from __future__ import annotations

import collections
import gc
import io
import json
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest

from ironic_rules.api import versions
from tests.functional.api.conftest import Client
from tests.functional.api.routes import ROUTES, Known

#: Types that may be left: parts of a statement that SQLAlchemy builds for each request, a few hundred bytes.
_OF_STATEMENTS = ("sqlalchemy.sql.", "builtins.", "ironic_rules.db.paging._Bytewise")
_MOST_OF_STATEMENTS = 30
#: Requests that users send rarely, with a subquery or many queries of their own: about as many objects, all small.
_WITH_SUBQUERY = {"POST /v1/operations": 200, "POST /v1/inspection_rules/matches": 120, "GET /v1/facts/vocabulary": 120}
_OF_SUBQUERIES = ("sqlalchemy.util._collections.PopulateDict", "collections.defaultdict")
#: ... and no frame, which would hold its variables, nor anything that holds a body.
_NEVER = frozenset({"builtins.frame", "builtins.traceback", "builtins.bytes", "builtins.str", "builtins.function"})


def request(app: Any, route: Known) -> int:
    """Send the route's request to the application, read the reply, and return its status."""
    body = b"" if route.body is None else json.dumps(route.body).encode()
    statuses: list[str] = []
    environ = {
        "REQUEST_METHOD": route.method, "PATH_INFO": route.path, "QUERY_STRING": "", "SCRIPT_NAME": "",
        "SERVER_NAME": "localhost", "SERVER_PORT": "80", "SERVER_PROTOCOL": "HTTP/1.1", "HTTP_HOST": "localhost:80",
        "REMOTE_ADDR": "192.0.2.77", "CONTENT_TYPE": "application/json", "CONTENT_LENGTH": str(len(body)),
        "HTTP_X_OPENSTACK_IRONIC_API_VERSION": versions.MAX_STRING, "wsgi.input": io.BytesIO(body),
        "wsgi.errors": io.StringIO(), "wsgi.url_scheme": "http", "wsgi.version": (1, 0), "wsgi.multithread": True,
        "wsgi.multiprocess": False, "wsgi.run_once": False}
    reply = app(environ, lambda status, headers, exc_info=None: statuses.append(status))
    collections.deque(reply, maxlen=0)
    if hasattr(reply, "close"):
        reply.close()
    return int(statuses[0].partition(" ")[0])


@pytest.fixture
def few_objects() -> Iterator[None]:
    """Collections that look only at what is made from now on."""
    gc.collect()
    gc.disable()
    gc.freeze()
    yield
    gc.set_debug(0)
    gc.garbage.clear()
    gc.enable()


def allowed_of(route: str) -> tuple[str, ...]:
    """Return the beginnings of the names of types that a request may leave."""
    return (*_OF_STATEMENTS, *_OF_SUBQUERIES) if route in _WITH_SUBQUERY else _OF_STATEMENTS


def left_by(app: Any, route: Known) -> collections.Counter[str]:
    """Return how many objects of each type only the collector finds after a request."""
    for _ in range(2):  # what the first ones prepare stays
        request(app, route)
    gc.collect()
    gc.set_debug(gc.DEBUG_SAVEALL)
    assert request(app, route)
    gc.collect()
    gc.set_debug(0)
    kinds = collections.Counter(f"{type(left).__module__}.{type(left).__name__}" for left in gc.garbage)
    gc.garbage.clear()
    return kinds


def test_no_request_leaves_garbage(app: Client, stocked: object, few_objects: None) -> None:
    # Those that delete come last.
    routes = sorted(ROUTES, key=lambda route: ("GET", "POST", "PATCH", "PUT", "DELETE").index(route.method))
    found = {str(route): left_by(app.app, route) for route in routes}
    assert len(found) == len(ROUTES)
    # Even what leaves an error of the database: its frames have no variables any more.
    assert not {route: kinds for route, kinds in found.items()
                if any(kind in _NEVER or not kind.startswith(allowed_of(route)) for kind in kinds)}
    assert {route: kinds.total() for route, kinds in found.items()
            if kinds.total() > _WITH_SUBQUERY.get(route, _MOST_OF_STATEMENTS)} == {}


def test_the_largest_reply_is_gone_when_it_is_sent(app: Client, make_node: Any, few_objects: None) -> None:
    # Lists are made of 30 nodes at a time. The last ones are more than 20: CPython keeps smaller tuples for re-use.
    for number in range(55):
        make_node(name=f"node-{number}", extra={"text": "x" * 10_000})
    route = Known("GET", "/v1/nodes/detail", "/v1/nodes/detail", None)
    request(app.app, route)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(20):
            assert request(app.app, route) == 200
        # One reply has more than 500,000 bytes.
        assert tracemalloc.get_traced_memory()[0] - before < 250_000
    finally:
        tracemalloc.stop()
