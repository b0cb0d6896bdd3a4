"""The decorator of all controller methods.

In this order, and nowhere else: version, policy, preconditions, query parameters, body, the method, errors, JSON. The
policy is checked before any input is read, so that unauthorised clients learn nothing. Callers in a project are an
exception, if the policy depends on whose a node is: ``confinement``.

A request that ends with :class:`~ironic_rules.exceptions.NodeLocked` has done nothing. It is begun again for a moment,
as in Ironic: clients see, for example, the new power state of a node and send the next request while the lock is being
released.
"""

from __future__ import annotations

import functools
import inspect
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import orjson

from ironic_rules.api import authorization, body, etags, versions
from ironic_rules.api.authorization import Confinement
from ironic_rules.api.filters import Query
from ironic_rules.api.request import Request
from ironic_rules.api.schema import Schema
from ironic_rules.db import nodes
from ironic_rules.exceptions import (
    Forbidden,
    Invalid,
    MethodNotAllowed,
    NodeLocked,
    NodeNotFound,
    NotAcceptable,
    NotFound,
    encoding_unsupported,
)
from ironic_rules.httpd import faults
from ironic_rules.models.documents import JSON, JSONObject
from ironic_rules.models.json_text import Oddity
from ironic_rules.text import forget_locals

#: For ``body=``: pass the parsed JSON unchanged; the method checks it.
RAW: Final = Schema(nullable=True)
_NO_QUERY = Query()
#: Parameters of methods that are not idents of the path.
_GIVEN = ("body", "query", "conditions", "oddities")
_READING = ("GET", "HEAD")
_JSON = [faults.CONTENT_TYPE]

#: Status, headers and body of a reply; a body in pieces is not copied into one.
Sent = tuple[int, faults.Headers, bytes]


@dataclass(frozen=True, slots=True)
class Route:
    """The declaration of a method. Every exposed method has one as ``.route``."""

    since: int
    hidden: bool
    unacceptable: bool
    policy_first: bool
    policy: str | None
    body: Schema | None
    query: Query
    status: int
    public: bool
    allow_nul: bool
    refused: Callable[[Request, Invalid], None] | None
    #: True if the method checks preconditions.
    conditional: bool
    #: True if the method gets the odd values of the body.
    tolerant: bool
    #: Names of the parameters in the path, and the number of required ones.
    path_arguments: tuple[str, ...]
    fewest_arguments: int


def expose(*, since: int = versions.MIN, policy: str | None = None, body: Schema | None = None,
           query: Query | None = None, status: int = 200, public: bool = False,
           allow_nul: bool = False, hidden: bool = False, unacceptable: bool = False,
           policy_first: bool = False, refused: Callable[[Request, Invalid], None] | None = None,
           ident: str | None = None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Expose a method of a :class:`~ironic_rules.api.routes.Resource`.

    The method's parameters are the request, the idents of the path in order, then those of ``body``, ``query`` and
    ``conditions`` (preconditions) that it takes. One that takes ``oddities`` gets bodies that are nearly JSON, too, and
    what is odd in them: see ``body.parse_report``. It returns an object to be encoded as JSON; bytes are JSON already,
    None is an empty reply. A request for a change by a method that does not take ``conditions`` is refused if it has
    any. An exposed method takes the request and the idents, and returns the reply.

    :param since: first API minor version; below it GET is 404, and everything else 405, or 404 if ``hidden``; all of
        them are 406 if ``unacceptable``. Ironic has all three
    :param policy: name of the policy rule; may be None only on public routes
    :param body: schema of the body; None: only an empty body is accepted
    :param query: the query parameters; None: no parameters are accepted
    :param public: no authentication (the policy still applies)
    :param allow_nul: strings in the body may contain NUL characters
    :param hidden: below ``since`` the resource does not exist for this method
    :param unacceptable: below ``since`` this method is not acceptable
    :param refused: called with a request whose body is refused, and why
    :param policy_first: the policy is checked before the version, as in Ironic
    :param ident: what a route calls its only ident; None: the names are those of the parameters
    """
    def decorate(method: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(method)
        parameters = [p for p in signature.parameters.values() if p.name not in _GIVEN]
        path = parameters[2:]  # without self and the request
        names = tuple(p.name for p in path)
        takes_body, takes_query, takes_conditions, takes_oddities = (name in signature.parameters for name in _GIVEN)
        route = Route(since, hidden, unacceptable, policy_first, policy, body, query or _NO_QUERY, status, public,
                      allow_nul, refused, takes_conditions, takes_oddities, names if ident is None else (ident,),
                      sum(p.default is p.empty for p in path))

        @functools.wraps(method)
        def serve(self: object, request: Request, *arguments: str) -> Sent:
            def call() -> Any:
                # Read for each attempt: a method may change what it is given.
                try:
                    query_values = route.query.load(request.environ.get("QUERY_STRING", ""))
                    body_value, oddities = _load_body(route, request)
                except Invalid:
                    if request.confinement is not None and route.path_arguments[:1] == ("node",):
                        _check_node(request, request.confinement, arguments[0])
                    raise
                keywords: JSONObject = {}
                if takes_query:
                    keywords["query"] = query_values
                if takes_body:
                    keywords["body"] = body_value
                if takes_oddities:
                    keywords["oddities"] = oddities
                if takes_conditions:
                    keywords["conditions"] = etags.read(request.environ)
                result = _call(method, self, arguments, keywords, request)
                if request.confinement is not None and not request.confinement.is_decided:
                    # Not to be reached: a method that checks no node has no policy that depends on nodes.
                    raise Forbidden(policy=route.policy)
                return result

            try:
                _check(route, request)
                # Ramdisks repeat their requests themselves, and anybody can send such.
                return _sent(request, route.status, call() if route.public else request.lock_patience.call(call))
            except Exception as error:  # noqa: BLE001  (the outermost handler)
                fault = faults.from_error(error, debug=request.conf.pecan_debug,
                                          changes=request.method not in _READING)
                forget_locals(error)
                return fault

        serve.route = route  # type: ignore[attr-defined]
        return serve

    return decorate


def _call(method: Callable[..., Any], controller: object, arguments: tuple[str | None, ...], keywords: JSONObject,
          request: Request) -> Any:
    """Return what a method returns. Below 1.91, as in Ironic, the URL of a resource may have ``.json`` at its end.

    A name may end with it, too, so that the resource with the whole name comes first.
    """
    try:
        return method(controller, request, *arguments, **keywords)
    except NotFound:
        # The last one is None where it is optional.
        ident = (arguments[-1] or "").removesuffix(versions.SUFFIX) if arguments else ""
        at_end = request.environ["PATH_INFO"].endswith(versions.SUFFIX)
        if request.version >= versions.NO_SUFFIX or not ident or not at_end or ident == arguments[-1]:
            raise
        return method(controller, request, *arguments[:-1], ident, **keywords)


def _check(route: Route, request: Request) -> None:
    if route.policy_first and route.policy is not None:
        request.confinement = authorization.of_request(request.conf, route.policy, request.context)
    if request.version < route.since:
        text = versions.required(route.since)
        if route.unacceptable:
            raise NotAcceptable(text)
        is_absent = route.hidden or request.method in _READING
        raise NotFound(text) if is_absent else MethodNotAllowed(text)
    if route.policy is not None and not route.policy_first:
        request.confinement = authorization.of_request(request.conf, route.policy, request.context)
    if request.method not in _READING and not route.conditional:
        etags.refuse(request.environ)


def _check_node(request: Request, confined: Confinement, ident: str) -> None:
    """Check the access to a node, so that the caller learns nothing about input for a node that is not theirs.

    :raises NodeNotFound: 404;  Forbidden: 403
    """
    with request.db.reader() as conn:
        confined.check_node(nodes.get(conn, ident), NodeNotFound(node=ident))


def _load_body(route: Route, request: Request) -> tuple[JSON, list[Oddity]]:
    """Return the body, and what is odd in it, of a route that accepts that."""
    try:
        return _loaded_body(route, request)
    except Invalid as error:
        if route.refused is not None:
            route.refused(request, error)
        raise


def _loaded_body(route: Route, request: Request) -> tuple[JSON, list[Oddity]]:
    raw: bytes = request.environ.get("ironic_rules.body", b"")
    limits = request.conf.api
    most = body.most_values(limits.max_anonymous_body_size) if route.public else body.MAX_VALUES
    try:
        value: JSON
        oddities: list[Oddity] = []
        if route.tolerant:
            value, oddities = body.parse_report(raw, limits.max_json_depth, max_values=most)
        else:
            value = body.parse(raw, limits.max_json_depth, allow_nul=route.allow_nul, max_values=most)
    except Invalid as error:
        request.numbers.count("api_bodies_refused", "not acceptable as JSON")
        if "HTTP_CONTENT_ENCODING" in request.environ:  # the header of a body that can be read does no harm
            raise encoding_unsupported() from error
        raise
    if route.body is not None:
        return route.body.load(value), oddities
    if value:
        raise Invalid("This request takes no body.")
    return None, oddities


def _sent(request: Request, status: int, result: object) -> Sent:
    """Return the reply with the result of a method."""
    environ, head = request.environ, request.reply
    status, headers = head.status or status, head.headers
    if result is None:
        return status, headers, b""
    body = result if isinstance(result, bytes) else orjson.dumps(result)
    if ("HTTP_IF_NONE_MATCH" in environ and status == 200 and request.method in _READING
            and all(name != "ETag" for name, _ in headers)):
        # Only for those who ask: a tag of a large list takes some of the time that the list takes.
        tag = etags.tag(body)
        headers = [*headers, ("ETag", tag)]
        if etags.read(environ).has(tag):
            return 304, headers, b""
    kind = _JSON if head.media_type is None else [("Content-Type", head.media_type)]
    return status, kind + headers, body


T = TypeVar("T")

_FIRST_PAUSE_S = 0.05
_GROWTH = 1.5
_LONGEST_PAUSE_S = 0.5


class LockPatience:
    """Repeats requests until the node is free, for at most ``patience_s`` seconds; 0: they fail at once.

    At most ``at_once`` of them wait at the same time: a node whose BMC does not answer stays locked, and must not take
    the threads of other requests. Those beyond it fail at once.
    """

    def __init__(self, patience_s: float, at_once: int, sleep: Callable[[float], None] = time.sleep,
                 clock: Callable[[], float] = time.monotonic) -> None:
        self._patience_s = patience_s
        self._room = threading.Semaphore(at_once)
        self._sleep = sleep
        self._clock = clock

    def call(self, method: Callable[[], T]) -> T:
        """Return what ``method`` returns, which is called again while it raises ``NodeLocked``.

        :raises NodeLocked: the node is still locked
        """
        try:
            return method()
        except NodeLocked:
            if not self._patience_s or not self._room.acquire(blocking=False):
                raise
        try:
            return self._repeat(method)
        finally:
            self._room.release()

    def _repeat(self, method: Callable[[], T]) -> T:
        until, pause_s = self._clock() + self._patience_s, _FIRST_PAUSE_S
        while True:
            self._sleep(pause_s)
            try:
                return method()
            except NodeLocked:
                if self._clock() >= until:
                    raise
            pause_s = min(pause_s * _GROWTH, _LONGEST_PAUSE_S)
