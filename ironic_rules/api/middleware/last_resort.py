"""Turns whatever escaped everything else into a 500 in the usual error form.

``expose`` sees only what happens inside of a method. Outside of it are pecan, keystonemiddleware, the password file,
and the server's own errors while a body is read; web servers answer those with a page of theirs, without version
headers, so that clients take this service for something else.
"""

from __future__ import annotations

from typing import Any

from ironic_rules.api import faults


class LastResort:
    """Catches errors outside of controllers. Nothing else in the API but ``expose`` ends what it does not expect."""

    def __init__(self, app: Any) -> None:
        self._app = app

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        try:
            return self._app(environ, start_response)
        except Exception as error:  # noqa: BLE001  (this is where errors end)
            return faults.send(faults.from_error(error), start_response)
