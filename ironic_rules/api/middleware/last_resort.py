"""Turns every exception that nothing else handled into a 500 in the usual error format.

``expose`` handles only errors of methods. Other sources are pecan, keystonemiddleware, the password file, and the
server's own errors while a body is read; web servers reply to those with their own page, without version headers, so
that clients do not recognise the service.
"""

from __future__ import annotations

from collections.abc import Iterable
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from ironic_rules.httpd import faults


class LastResort:
    """Catches errors outside controllers. In the API, only this class and ``expose`` catch unexpected exceptions."""

    def __init__(self, app: WSGIApplication) -> None:
        self._app = app

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        try:
            return self._app(environ, start_response)
        except Exception as error:  # noqa: BLE001  (the outermost handler)
            return faults.send(faults.from_error(error), environ, start_response)
