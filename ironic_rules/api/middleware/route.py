"""Finds the controller before anything else processes the request: authentication depends on whether it is public."""

from __future__ import annotations

import re
from collections.abc import Iterable
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from ironic_rules.api import compute_versions, resource, versions
from ironic_rules.httpd import faults

#: The node is last: tempest requests the state of a console so. Without the version of the API: links "bookmark".
_OF_STATES = re.compile(r"/nodes/states/([^/]+)/([^/]+)\Z")


class Routing:
    """Sets ``ironic_rules.found`` (:class:`~ironic_rules.api.resource.Found`); a path that is not UTF-8 is 400."""

    def __init__(self, app: WSGIApplication, root: resource.Resource) -> None:
        self._app = app
        self._root = root

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
        environ["ironic_rules.found"] = _find(self._root, environ["REQUEST_METHOD"], path)
        return self._app(environ, start_response)

    def _may_have_suffix(self, environ: WSGIEnvironment, plain: str) -> bool:
        """Return whether ``plain``, a path without its ``.json``, is that of the resource that is meant.

        At the end of an ident, the suffix may belong to a name: :mod:`ironic_rules.api.expose` decides.
        """
        if plain.endswith("/") or compute_versions.is_compute(environ):
            return False
        is_old = environ["ironic_rules.version"] < versions.NO_SUFFIX
        return is_old and resource.ends_with_name(*_normal(self._root, plain))


def _normal(root: resource.Resource, path: str) -> tuple[resource.Resource, str]:
    """Return where to look for a path, and the path: also of the two other forms that Ironic's clients use."""
    path = _OF_STATES.sub(r"/nodes/\2/states/\1", path)
    first = path.lstrip("/").partition("/")[0]
    if first and first not in root.below:
        return root.below["v1"], path
    return root, path


def _find(root: resource.Resource, method: str, path: str) -> resource.Found:
    start, path = _normal(root, path)
    return resource.find(start, method, path)
