"""The tree of URLs. Controllers are named methods on ``Resource`` classes; this module finds the one for a request.

A path is read segment by segment: a name in ``below`` leads to that resource; ``<ident>/<name>`` with the name in
``below_item`` leads to a resource of that one item and passes it the ident; the rest are the method's arguments.

=======  ==========================================  =================================================
GET      ``get_all``, ``get_one``, ``get``           the one whose parameters match the arguments
POST     ``post``                                    PUT ``put``, PATCH ``patch``
DELETE   ``delete_all``, ``delete``                  also by the number of arguments
=======  ==========================================  =================================================

Nothing else is reachable: no attribute of a Python object is looked up by a name from the URL. The controller is found
before anything else processes the request, because authentication depends on whether it is public.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from ironic_rules.api import versions
from ironic_rules.httpd import faults
from ironic_rules.policies.base import RAMDISK_POLICIES

NO_RESOURCE = "There is no such resource."
METHODS: dict[str, tuple[str, ...]] = {
    "GET": ("get_all", "get_one", "get"),
    "POST": ("post",),
    "PUT": ("put",),
    "PATCH": ("patch",),
    "DELETE": ("delete_all", "delete"),
}


class Resource:
    """Base of all controllers."""

    #: Path segment -> the resource right below this one.
    below: ClassVar[Mapping[str, Resource]] = {}
    #: Path segment after an ident -> the resource below that item; its methods get the ident as first argument.
    below_item: ClassVar[Mapping[str, Resource]] = {}
    #: HTTP methods that are not allowed (405), as in Ironic, at names below this one that do not exist (else 404).
    not_allowed_below: ClassVar[Sequence[str]] = ()
    #: HTTP method -> (fewest arguments, most arguments, name of the Python method); made from the exposed methods.
    methods: ClassVar[Mapping[str, list[tuple[int, int, str]]]] = {}

    def __init_subclass__(cls) -> None:
        cls.methods = _methods_of(cls)


class FoundRoute(NamedTuple):
    """The result for a path. Without ``controller`` the reply is 404, or 405 if there are other methods (``allow``)."""

    controller: Callable[..., Any] | None
    arguments: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    #: Without ``controller``: below this minor version of the API there is no such resource.
    since: int = 0


class Walked(NamedTuple):
    """One route: HTTP method, path with ``{names}``, and the exposed method."""

    method: str
    path: str
    controller: Callable[..., Any]


def find(root: Resource, method: str, path: str) -> FoundRoute:
    """Return the controller for a request. Trailing slashes are allowed; HEAD is served as GET."""
    resource, arguments, rest = _walk(root, path)
    arguments += rest
    table = resource.methods
    count = len(arguments)
    for fewest, most, name in table.get("GET" if method == "HEAD" else method, ()):
        if fewest <= count <= most:
            return FoundRoute(getattr(resource, name), tuple(arguments))
    served = {verb: getattr(resource, name).route for verb, entries in table.items()
              for fewest, most, name in entries if fewest <= count <= most}
    if rest and method in resource.not_allowed_below:
        return FoundRoute(None, allow=tuple(table))
    writing = [route for verb, route in served.items() if verb != "GET"]
    hidden = bool(writing) and all(route.hidden for route in writing)
    return FoundRoute(None, allow=tuple(served), since=min(route.since for route in served.values()) if hidden else 0)


def ends_with_name(root: Resource, path: str) -> bool:
    """Return whether the last segment of a path is the name of a resource, not an ident."""
    resource, _, rest = _walk(root, path)
    return resource is not root and not rest


def _walk(root: Resource, path: str) -> tuple[Resource, list[str], list[str]]:
    """Return the resource to which the names in a path lead, the idents before it, and the segments after it."""
    resource = root
    segments = [segment for segment in path.split("/") if segment]
    arguments: list[str] = []
    position = 0
    while position < len(segments):
        child = resource.below.get(segments[position])
        if child is not None:
            resource = child
            position += 1
            continue
        child = resource.below_item.get(segments[position + 1]) if position + 1 < len(segments) else None
        if child is None:
            break
        arguments.append(segments[position])
        resource = child
        position += 2
    return resource, arguments, segments[position:]


def walk_routes(root: Resource, path: str = "") -> Iterator[Walked]:
    """Yield every route below ``root``."""
    for method, entries in root.methods.items():
        for _, _, name in entries:
            controller = getattr(root, name)
            names = controller.route.path_arguments[path.count("{"):]
            yield Walked(method, path + "".join(f"/{{{name}}}" for name in names) or "/", controller)
    for segment, child in root.below.items():
        yield from walk_routes(child, f"{path}/{segment}")
    for segment, child in root.below_item.items():
        yield from walk_routes(child, f"{path}/{{ident}}/{segment}")


def _methods_of(cls: type[Resource]) -> dict[str, list[tuple[int, int, str]]]:
    table: dict[str, list[tuple[int, int, str]]] = {}
    for method, names in METHODS.items():
        for name in names:
            route = getattr(getattr(cls, name, None), "route", None)
            if route is not None:
                table.setdefault(method, []).append((route.fewest_arguments, len(route.path_arguments), name))
    return table


#: The node is last: tempest requests the state of a console so. Without the version of the API: links "bookmark".
_OF_STATES = re.compile(r"/nodes/states/([^/]+)/([^/]+)\Z")


class Audience(enum.Enum):
    """The clients of a listener. Other routes do not exist there, with whatever credentials."""

    ALL = "all"
    #: the routes of ramdisks, the documents of versions, from which they learn which one to use, and liveness
    RAMDISKS = "ramdisks"
    #: everything but the routes of ramdisks
    OPERATORS = "operators"

    def is_served(self, route: FoundRoute, path: str) -> bool:
        """Return whether a route exists for these clients."""
        if self is Audience.ALL:
            return True
        policy = getattr(getattr(route.controller, "route", None), "policy", None)
        is_of_ramdisks = policy in RAMDISK_POLICIES
        if self is Audience.OPERATORS:
            return not is_of_ramdisks
        return is_of_ramdisks or (route.controller is not None and path.strip("/") in _FOR_ALL)


#: Paths that ramdisks and load balancers also use: the documents of versions, and liveness.
_FOR_ALL = ("", "v1", "healthcheck/live")


class Routing:
    """Sets ``ironic_rules.found`` (:class:`~ironic_rules.api.routes.FoundRoute`); a path that is not UTF-8 is 400.

    :param audience: a route that does not exist for it is 404, before anyone looks at credentials
    """

    def __init__(self, app: WSGIApplication, root: Resource, audience: Audience = Audience.ALL) -> None:
        self._app = app
        self._root = root
        self._audience = audience

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        try:
            path = environ.get("PATH_INFO", "").encode("latin-1").decode()
        except UnicodeDecodeError:
            return faults.send(faults.from_status(400, "The path is not valid UTF-8."), environ, start_response)
        if not path.isprintable():
            fault = faults.from_status(400, "The path contains control characters.")
            return faults.send(fault, environ, start_response)
        plain = path.rstrip("/").removesuffix(versions.SUFFIX)
        if plain != path.rstrip("/") and self._may_have_suffix(environ, plain):
            path, environ["PATH_INFO"] = plain, plain.encode().decode("latin-1")
        route = environ["ironic_rules.found"] = _find(self._root, environ["REQUEST_METHOD"], path)
        if not self._audience.is_served(route, path):
            return faults.send(faults.from_status(404, NO_RESOURCE), environ, start_response)
        return self._app(environ, start_response)

    def _may_have_suffix(self, environ: WSGIEnvironment, plain: str) -> bool:
        """Return whether ``plain``, a path without its ``.json``, is that of the resource that is meant.

        At the end of an ident, the suffix may belong to a name: :mod:`ironic_rules.api.expose` decides.
        """
        if plain.endswith("/") or versions.is_compute_request(environ):
            return False
        is_old = environ["ironic_rules.version"] < versions.NO_SUFFIX
        return is_old and ends_with_name(*_normal(self._root, plain))


def _normal(root: Resource, path: str) -> tuple[Resource, str]:
    """Return where to look for a path, and the path: also of the two other forms that Ironic's clients use."""
    path = _OF_STATES.sub(r"/nodes/\2/states/\1", path)
    first = path.lstrip("/").partition("/")[0]
    if first and first not in root.below:
        return root.below["v1"], path
    return root, path


def _find(root: Resource, method: str, path: str) -> FoundRoute:
    start, path = _normal(root, path)
    return find(start, method, path)
