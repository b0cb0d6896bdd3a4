"""``/healthcheck``: whether this process can serve requests, and whether a conductor is alive."""

from __future__ import annotations

from typing import Any, ClassVar

import orjson
import pecan
from oslo_db import exception as db_exc

from ironic_rules.api.expose import expose
from ironic_rules.api.resource import Resource
from ironic_rules.db import conductors, inspection_rules
from ironic_rules.exceptions import NotFound


class LiveController(Resource):
    """``/healthcheck/live``, for liveness probes: to restart this process would not help against what is not here."""

    @expose(public=True)
    def get_all(self) -> dict[str, Any]:
        """Return ``{"status": "OK"}``: the process answers. Nothing else is checked."""
        _require_enabled()
        return {"status": "OK"}


class HealthcheckController(Resource):
    """Two small queries without authentication, for load balancers and readiness probes."""

    below: ClassVar = {"live": LiveController()}

    @expose(public=True)
    def get_all(self) -> bytes:
        """Return ``{"status", "database", "broker", "conductors", "invalid_rules", "checks"}``.

        503 if the database or the message broker is unavailable or no conductor alive. ``checks`` has the state of each
        of these, and the age of this information in seconds; ``broker`` is null until its first check has ended. Of
        rules that are no longer valid, only the number is told.
        """
        _require_enabled()
        conf = pecan.request.conf
        try:
            with pecan.request.db.reader() as conn:
                alive: int | None = len(conductors.alive(conn, conf.conductor.heartbeat_timeout))
                revision = inspection_rules.revision(conn)
            invalid: int | None = len(pecan.request.rule_cache.broken(revision))
        except db_exc.DBError:
            alive = invalid = None
        broker = pecan.request.broker.state()
        checks = {"database": _check(alive is not None, 0.0), "conductors": _check(bool(alive), 0.0),
                  "broker": _check(*broker)}
        healthy = bool(alive) and broker.is_ok is not False
        reply: dict[str, Any] = {
            "status": "OK" if healthy else "UNAVAILABLE", "database": alive is not None, "broker": broker.is_ok,
            "conductors": alive or 0, "invalid_rules": invalid, "checks": checks}
        if not healthy:
            pecan.response.status_override = 503
        return orjson.dumps(reply)


def _check(is_ok: bool | None, age_s: float | None) -> dict[str, Any]:
    state = "UNKNOWN" if is_ok is None else "OK" if is_ok else "UNAVAILABLE"
    return {"state": state, "age": age_s if age_s is None else round(age_s, 1)}


def _require_enabled() -> None:
    if not pecan.request.conf.api.enable_healthcheck:
        raise NotFound()
