"""``/healthcheck``: whether this process can serve requests, and whether a conductor is alive."""

from __future__ import annotations

from typing import ClassVar

import orjson

from ironic_rules.api.expose import expose
from ironic_rules.api.request import Request
from ironic_rules.api.resource import Resource
from ironic_rules.exceptions import NotFound
from ironic_rules.models.documents import JSONObject


class LiveController(Resource):
    """``/healthcheck/live``, for liveness probes: to restart this process would not help against what is not here."""

    @expose(public=True)
    def get_all(self, request: Request) -> JSONObject:
        """Return ``{"status": "OK"}``: the process answers. Nothing else is checked."""
        _require_enabled(request)
        return {"status": "OK"}


class HealthcheckController(Resource):
    """Without authentication, for load balancers and readiness probes. Answers soon, whatever hangs."""

    below: ClassVar = {"live": LiveController()}

    @expose(public=True)
    def get_all(self, request: Request) -> bytes:
        """Return ``{"status", "database", "broker", "conductors", "invalid_rules", "checks"}``.

        503 if the database or the message broker is unavailable or no conductor alive. ``checks`` has the state of each
        of these, and the age of this information in seconds; ``broker`` is null until its first check has ended. What
        is in the database is read for each request; if that takes longer than a moment, the reply is what was read
        before, in the last 15 seconds. Of rules that are no longer valid, and of legacy rules that are disabled, only
        the number is told.
        """
        _require_enabled(request)
        database, broker = request.database.state(), request.broker.state()
        found = database.found
        alive, invalid = (None, None) if found is None else found
        checks = {"database": _check(database.is_ok, database.age_s),
                  "conductors": _check(bool(alive) if found else None, database.age_s), "broker": _check(*broker)}
        healthy = bool(alive) and broker.is_ok is not False
        reply: JSONObject = {
            "status": "OK" if healthy else "UNAVAILABLE", "database": bool(database.is_ok), "broker": broker.is_ok,
            "conductors": alive or 0, "invalid_rules": invalid, "checks": checks}
        if not healthy:
            request.reply.status = 503
        return orjson.dumps(reply)


def _check(is_ok: bool | None, age_s: float | None) -> JSONObject:
    state = "UNKNOWN" if is_ok is None else "OK" if is_ok else "UNAVAILABLE"
    return {"state": state, "age": age_s if age_s is None else round(age_s, 1)}


def _require_enabled(request: Request) -> None:
    if not request.conf.api.enable_healthcheck:
        raise NotFound()
