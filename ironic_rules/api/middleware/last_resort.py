"""Turns whatever escaped everything else into a 500 in the usual error form."""

from __future__ import annotations

from typing import Any

from ironic_rules.api import faults


class LastResort:
    """Catches errors outside of controllers: in other middleware and in pecan itself."""

    def __init__(self, app: Any) -> None:
        self._app = app

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        try:
            return self._app(environ, start_response)
        except Exception as error:  # noqa: BLE001  (this is where errors end)
            return faults.send(faults.from_error(error), start_response)
