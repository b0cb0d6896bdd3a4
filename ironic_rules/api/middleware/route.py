"""Finds the controller before anything else processes the request: authentication depends on whether it is public."""

from __future__ import annotations

import re
from typing import Any

from ironic_rules.api import faults, resource

#: The node is last: tempest requests the state of a console so. Without the version of the API: links "bookmark".
_OF_STATES = re.compile(r"/nodes/states/([^/]+)/([^/]+)\Z")


class Route:
    """Sets ``ironic_rules.found`` (:class:`~ironic_rules.api.resource.Found`); a path that is not UTF-8 is 400."""

    def __init__(self, app: Any, root: resource.Resource) -> None:
        self._app = app
        self._root = root

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        try:
            path = environ.get("PATH_INFO", "").encode("latin-1").decode()
        except UnicodeDecodeError:
            return faults.send(faults.from_status(400, "The path is not valid UTF-8."), environ, start_response)
        if not path.isprintable():
            fault = faults.from_status(400, "The path contains control characters.")
            return faults.send(fault, environ, start_response)
        environ["ironic_rules.found"] = _find(self._root, environ["REQUEST_METHOD"], path)
        return self._app(environ, start_response)


def _find(root: resource.Resource, method: str, path: str) -> resource.Found:
    """Return the controller for a path, also for the two other forms of paths that Ironic's clients use."""
    path = _OF_STATES.sub(r"/nodes/\2/states/\1", path)
    first = path.lstrip("/").partition("/")[0]
    if first and first not in root.below:
        return resource.find(root.below["v1"], method, path)
    return resource.find(root, method, path)
