"""The composition root: from a configuration to a database, a message transport, an API and a conductor.

Nothing else puts parts together; everything below gets what it needs as arguments.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
from collections.abc import Callable, Sequence
from typing import Any

import oslo_messaging as messaging
from oslo_config import cfg
from oslo_db import options as db_options
from oslo_log import log as logging

from ironic_rules import conf as service_conf
from ironic_rules import exceptions
from ironic_rules.api import app as api_app
from ironic_rules.api.server import ApiServer
from ironic_rules.conductor.engine import Engine
from ironic_rules.conductor.service import ConductorService
from ironic_rules.conductor.workers import Workers
from ironic_rules.db import conductors, migration
from ironic_rules.db.session import Database
from ironic_rules.hardware.registry import Hardware
from ironic_rules.inspection import rule_settings
from ironic_rules.inspection import settings as inspection_settings
from ironic_rules.inspection.hooks import loader
from ironic_rules.inspection.pipeline import Pipeline
from ironic_rules.inspection.rule_cache import RuleCache
from ironic_rules.rpc import transport as rpc_transport
from ironic_rules.rpc.api import ConductorAPI

PROJECT = "ironic-rules"
_QUIET = ("amqp=WARNING", "kombu=WARNING", "oslo.messaging=WARNING", "oslo_messaging=WARNING", "sqlalchemy=WARNING",
          "stevedore=WARNING", "alembic=WARNING", "oslo_policy=WARNING", "futurist=WARNING", "httpx=WARNING")
#: What oslo.messaging says of the in-memory transport with each connection.
_MEMORY_REMARKS = re.compile("Heartbeat support requested but it is not supported|Selecting the kombu transport")


def version() -> str:
    """Return the version of the installed package."""
    return importlib.metadata.version(PROJECT)


def prepare_config(argv: Sequence[str], cli_opts: Sequence[cfg.Opt] = (), *,
                   config_files: list[str] | None = None) -> cfg.ConfigOpts:
    """Return the configuration that ``argv`` and the configuration files give, with logging not yet set up.

    :param config_files: instead of the files that are found by default (``/etc/ironic-rules/ironic-rules.conf``, …)
    :raises SystemExit: bad arguments
    """
    conf = cfg.ConfigOpts()
    service_conf.register_opts(conf)
    db_options.set_defaults(conf)
    logging.register_options(conf)
    conf.register_cli_opts(cli_opts)
    try:
        conf(list(argv), project=PROJECT, version=version(), default_config_files=config_files)
    except cfg.ConfigFilesNotFoundError as exc:
        raise exceptions.ConfigurationError(str(exc)) from exc
    return conf


def setup_logging(conf: cfg.ConfigOpts) -> None:
    """Start logging as the configuration says."""
    logging.set_defaults(default_log_levels=[*logging.get_default_log_levels(), *_QUIET])
    logging.setup(conf, "ironic_rules", version())
    logging.getLogger("oslo.messaging._drivers.impl_rabbit").logger.addFilter(
        lambda record: _MEMORY_REMARKS.search(record.getMessage()) is None)


def use_one_process_defaults(conf: cfg.ConfigOpts) -> None:
    """Let the configuration fall back to SQLite in ``state_path``, the in-memory transport, and unmanaged boot.

    :raises ConfigurationError: the folder cannot be made
    """
    try:
        os.makedirs(conf.state_path, mode=0o750, exist_ok=True)
    except OSError as exc:
        raise exceptions.ConfigurationError(f"The state folder cannot be made: {exc}") from exc
    path = os.path.join(os.path.abspath(conf.state_path), "ironic-rules.sqlite")
    conf.set_default("connection", f"sqlite:///{path}", group="database")
    conf.set_default("require_managed_boot", False, group="inspector")
    rpc_transport.set_default_url(conf, "kombu+memory://localhost/")


def make_database(conf: cfg.ConfigOpts, *, upgrade: bool = False) -> Database:
    """Return the database of ``[database]connection``.

    :param upgrade: create or upgrade the schema first
    :raises ConfigurationError: no connection is configured, or the schema is not the current one
    """
    if not conf.database.connection:
        raise exceptions.ConfigurationError("[database]connection is not set.")
    db = Database(conf)
    if not migration.is_current(db.engine):
        if not upgrade:
            raise exceptions.ConfigurationError(
                "The database schema is not the current one: run 'ironic-rules-dbsync upgrade'.")
        migration.upgrade(db.engine)
    return db


def make_engine(conf: cfg.ConfigOpts, db: Database) -> Engine:
    """Return the parts of a conductor.

    :raises ConfigurationError: a hook, hardware type or interface is missing or does not fit, or rule_settings.prepare
    """
    rules = rule_settings.prepare(conf)
    settings = inspection_settings.from_conf(conf)
    hooks = loader.load(loader.parse(conf.inspector.hooks), settings)
    return Engine(
        host=conf.host, group=conf.conductor.conductor_group, conf=conf, db=db, hardware=Hardware(conf),
        pipeline=Pipeline(hooks, settings), rules=RuleCache(rules),
        workers=Workers(conf.conductor.workers_pool_size, conf.conductor.queue_size))


def make_conductor(conf: cfg.ConfigOpts, db: Database, transport: messaging.RPCTransport,
                   displaced: Callable[[], None] = lambda: None) -> ConductorService:
    """Return a conductor, not started.

    :param displaced: called when the process must end, because another one serves under the same host name
    """
    return ConductorService(make_engine(conf, db), transport, displaced)


def make_wsgi_app(conf: cfg.ConfigOpts, db: Database, transport: messaging.RPCTransport) -> Any:
    """Return the API as a WSGI application.

    :raises ConfigurationError: as from rule_settings.prepare
    """
    rules = rule_settings.prepare(conf)

    def is_served(group: str) -> bool:
        with db.reader() as conn:
            return conductors.serves(conn, group, conf.conductor.heartbeat_timeout)

    return api_app.make_app(conf, db, ConductorAPI(transport, conf, is_served), rules)


def make_api(conf: cfg.ConfigOpts, db: Database, transport: messaging.RPCTransport) -> ApiServer:
    """Return the API with its own HTTP server, not started."""
    return ApiServer(conf, make_wsgi_app(conf, db, transport))
