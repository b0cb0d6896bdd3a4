"""What every request carries: ``pecan.request.context``, ``.db``, ``.rpc``, ``.conf`` and ``.version`` (the minor)."""

from __future__ import annotations

from typing import Any

from oslo_config import cfg
from pecan import hooks

from ironic_rules.api import auth
from ironic_rules.db.session import Database


class DependenciesHook(hooks.PecanHook):
    """Puts the dependencies and the caller's context onto the request, before any controller runs."""

    priority = 10

    def __init__(self, conf: cfg.ConfigOpts, db: Database, rpc: Any) -> None:
        self._conf = conf
        self._db = db
        self._rpc = rpc

    def on_route(self, state: Any) -> None:
        request = state.request
        request.conf = self._conf
        request.db = self._db
        request.rpc = self._rpc
        request.version = request.environ["ironic_rules.version"]
        request.context = auth.context(request.environ, self._conf.auth_strategy)
