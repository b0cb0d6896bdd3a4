"""``/healthcheck``: whether this process can serve requests, and whether a conductor is alive."""

from __future__ import annotations

from typing import Any

import orjson
import pecan
from oslo_db import exception as db_exc

from ironic_rules.api.expose import expose
from ironic_rules.api.resource import Resource
from ironic_rules.db import conductors, inspection_rules
from ironic_rules.exceptions import NotFound


class HealthcheckController(Resource):
    """Two small queries without authentication, for load balancers and readiness probes."""

    @expose(public=True)
    def get_all(self) -> bytes:
        """Return ``{"status", "database", "conductors", "invalid_rules"}``.

        503 if the database is unavailable or no conductor alive. Of rules that are no longer valid, only the number is
        told.
        """
        conf = pecan.request.conf
        if not conf.api.enable_healthcheck:
            raise NotFound()
        try:
            with pecan.request.db.reader() as conn:
                alive: int | None = len(conductors.alive(conn, conf.conductor.heartbeat_timeout))
                revision = inspection_rules.revision(conn)
            invalid: int | None = len(pecan.request.rule_cache.broken(revision))
        except db_exc.DBError:
            alive = invalid = None
        healthy = bool(alive)
        reply: dict[str, Any] = {"status": "OK" if healthy else "UNAVAILABLE", "database": alive is not None,
                                 "conductors": alive or 0, "invalid_rules": invalid}
        if not healthy:
            pecan.response.status_override = 503
        return orjson.dumps(reply)
