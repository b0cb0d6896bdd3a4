"""The composition root: from a configuration to a database, a message transport, an API and a conductor.

Nothing else puts parts together; everything below gets what it needs as arguments. Code that only some commands run is
imported by the functions that make it: API and conductor would be a third of a PXE filter's memory.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import logging as std_logging
import os
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import oslo_messaging as messaging
from oslo_config import cfg
from oslo_log import log as logging

from ironic_rules import conf as service_conf
from ironic_rules import exceptions, log_lines, tracing
from ironic_rules.certificates import Certificates, Files
from ironic_rules.conf import arguments, sources, unread, validation
from ironic_rules.conf import pxe_filter as pxe_filter_conf
from ironic_rules.db import clock, conductors, migration, outbox, sqlite, unusable
from ironic_rules.db.processes import Presence
from ironic_rules.db.session import Database
from ironic_rules.metrics.numbers import Numbers
from ironic_rules.models import known_secrets, secrets, states
from ironic_rules.rpc import memory, notifications
from ironic_rules.rpc import pxe_filter as pxe_filter_rpc
from ironic_rules.rpc import transport as rpc_transport
from ironic_rules.rpc.api import ConductorAPI
from ironic_rules.rpc.pxe_filter import PXEFilterAPI
from ironic_rules.text import printable

if TYPE_CHECKING:
    import socket
    from wsgiref.types import WSGIApplication

    from ironic_rules.api.app import Listener
    from ironic_rules.api.routes import Audience
    from ironic_rules.conductor.conductor import Conductor, StateWork
    from ironic_rules.conductor.service import ConductorService
    from ironic_rules.httpd.server import ApiServers
    from ironic_rules.inspection.pipeline import Pipeline
    from ironic_rules.inspection.rule_sets import RuleCaches
    from ironic_rules.pxe_filter.service import FilterService

LOG = logging.getLogger(__name__)
#: The configuration that was read last, so that the errors of parts that only have values can name its file.
_prepared: deque[cfg.ConfigOpts] = deque(maxlen=1)
PROJECT = "ironic-rules"
NO_DATABASE = ("[database]connection is not set: set the URL of a database, such as "
               "mysql+pymysql://USER:PASSWORD@HOST/NAME. For the one of ironic-rules in one process, set "
               "sqlite:////FOLDER/ironic-rules.sqlite with the absolute path of its state folder; commands beside it "
               "find it by [DEFAULT]state_path or --state-dir, once ironic-rules has been started.")
#: Argument of commands that may run beside ``ironic-rules``; see ``use_database_of_one_process``.
STATE_DIR = cfg.StrOpt("state-dir", dest="cli_state_dir", metavar="FOLDER",
                       help="State folder of ironic-rules in one process (overrides state_path), whose database is "
                            "used if [database]connection is not set.")
#: Maximum number of groups and options that nothing reads, and that are logged at the start.
_MAX_UNREAD = 50
_QUIET = ("amqp=WARNING", "kombu=WARNING", "oslo.messaging=WARNING", "oslo_messaging=WARNING", "sqlalchemy=WARNING",
          "stevedore=WARNING", "alembic=WARNING", "oslo_policy=WARNING", "futurist=WARNING", "httpx=WARNING",
          # Tracebacks of errors that it converts and raises again; who handles these logs them.
          "oslo_db.sqlalchemy.exc_filters=CRITICAL")


def version() -> str:
    """Return the version of the installed package."""
    return importlib.metadata.version(PROJECT)


def prepare_config(argv: Sequence[str], cli_opts: Sequence[cfg.Opt] = (), *, config_files: list[str] | None = None,
                   groups: Sequence[str] = (), api: bool = False, conductor: bool = False,
                   one_process: bool = False) -> cfg.ConfigOpts:
    """Return the configuration that ``argv`` and the configuration files give, with logging not yet set up.

    Every option has been read. ``groups``, ``api`` and ``conductor`` are as of ``validation.check``.

    :param one_process: the transport is the in-memory one unless the configuration sets another
    :param config_files: instead of the files that are found by default (``/etc/ironic-rules/ironic-rules.conf``, …)
    :raises SystemExit: bad arguments
    :raises ConfigurationError: options have values that are not allowed, with all of them, or a file cannot be read
    """

    def check(conf: cfg.ConfigOpts) -> None:
        if not groups:
            # Either is one of the problems.
            with contextlib.suppress(messaging.InvalidTransportURL, ValueError, cfg.Error):
                rpc_transport.register_opts(conf, memory.DEFAULT_URL if one_process else None)
        problems = validation.problems(conf, groups=groups, api=api, conductor=conductor)
        if not groups and (reason := rpc_transport.problem_of(conf)):
            problems.append(validation.told(conf, "DEFAULT", "transport_url", reason))
        if not groups:
            with contextlib.suppress(messaging.InvalidTransportURL, ValueError, cfg.Error):
                if (notified := notifications.problem_of(conf)) is not None:
                    problems.append(validation.told(conf, notifications.GROUP, *notified))
        with contextlib.suppress(cfg.Error):  # which is one of the problems
            if conf.database.connection and (reason := unusable.problem_of(conf.database.connection)):
                problems.append(validation.told(conf, "database", "connection", reason))
        if conductor:
            problems += _hook_problems(conf)
        if problems:
            raise exceptions.ConfigurationError("\n".join(problems))

    conf = cfg.ConfigOpts()
    service_conf.register_opts(conf)
    logging.register_options(conf)
    conf.register_cli_opts(cli_opts)
    try:
        arguments.parse(conf, argv, project=PROJECT, version=version(), default_config_files=config_files)
    except arguments.WrongArguments as exc:
        check(validation.of_files(conf, argv, config_files))
        raise exc.end() from exc
    except cfg.NoSuchOptError:  # to which an option refers that is an argument, too
        check(validation.of_files(conf, argv, config_files))
        raise
    pxe_filter_conf.register_targets(conf)
    check(conf)
    secrets.configure(conf.secret_words)
    known_secrets.KNOWN.keep(sources.secrets_of(conf))
    _prepared.append(conf)
    return conf


def placed(text: str) -> str:
    """Return a text that begins with ``[group]name`` after the file that has the option, in what was read last."""
    return validation.placed(_prepared[-1], text) if _prepared else text


def explained(error: BaseException) -> str:
    """Return a text about an error of the database, with the file that sets the connection."""
    return placed(unusable.explained(error, _prepared[-1].database.connection if _prepared else None))


def _hook_problems(conf: cfg.ConfigOpts) -> list[str]:
    """Return the problems of options that hooks check themselves, and whose names are installed."""
    from ironic_rules.inspection import hook_settings
    from ironic_rules.inspection.hooks import loader

    try:
        names = loader.parse(conf.inspector.hooks)
    except (cfg.Error, ValueError):
        return []  # which is one of the problems already
    return [validation.placed(conf, text) for text in loader.problems(names, hook_settings.readable(conf))]


def setup_logging(conf: cfg.ConfigOpts) -> None:
    """Start logging as the configuration says; log what nothing reads of it.

    :raises ConfigurationError: the log file cannot be written, or the options do not fit
    """
    logging.set_defaults(default_log_levels=[*logging.get_default_log_levels(), *_QUIET])
    std_logging.raiseExceptions = False  # or a full disk makes kilobytes of tracebacks for each line
    try:
        logging.setup(conf, "ironic_rules", version())
    except Exception as exc:  # also of what the file of log_config_append evaluates
        raise validation.error_of_setup(conf, exc) from exc
    log_lines.prepare_handlers()
    lines = [*unread.repeated(conf), *unread.lines(conf)]
    for line in lines[:_MAX_UNREAD]:
        LOG.warning("%s", line)
    if len(lines) > _MAX_UNREAD:
        LOG.warning("... and %d more groups and options; ironic-rules-status upgrade check lists all",
                    len(lines) - _MAX_UNREAD)


def use_one_process_defaults(conf: cfg.ConfigOpts) -> None:
    """Let the configuration fall back to SQLite in ``state_path``, unmanaged boot, the page, and one DHCP server.

    :raises ConfigurationError: the folder cannot be made
    """
    try:
        os.makedirs(conf.state_path, mode=0o750, exist_ok=True)
    except OSError as exc:
        raise exceptions.ConfigurationError(
            f"[DEFAULT]state_path: the state folder {printable(conf.state_path)} cannot be made: {exc.strerror}: set "
            "another one, or --state-dir.") from exc
    conf.set_default("connection", f"sqlite:///{_one_process_database(conf)}", group="database")
    conf.set_default("require_managed_boot", False, group="inspector")
    conf.set_default("enable_ui", True, group="api")
    conf.set_default("allow_all_ramdisks", True, group="pxe_filter")


def _one_process_database(conf: cfg.ConfigOpts) -> str:
    return os.path.join(os.path.abspath(conf.state_path), "ironic-rules.sqlite")


def use_defaults_beside_one_process(conf: cfg.ConfigOpts) -> None:
    """Let the configuration of a command that has ``STATE_DIR`` fall back to the database of ``ironic-rules``.

    Nothing but that process has such a database, so that there is no broker unless one is configured.
    """
    use_database_of_one_process(conf)
    if not is_sqlite(conf):
        return
    conf.set_default("allow_all_ramdisks", True, group="pxe_filter")
    place = conf.get_location("transport_url")
    if place is None or place.location == cfg.Locations.opt_default:
        rpc_transport.set_default_url(conf, memory.DEFAULT_URL)


def use_database_of_one_process(conf: cfg.ConfigOpts) -> bool:
    """Use the database of ``ironic-rules`` in ``state_path``, or in ``--state-dir``, if no other one is configured.

    :returns: whether that is used
    """
    if conf.cli_state_dir is not None:
        conf.set_override("state_path", conf.cli_state_dir)
    path = _one_process_database(conf)
    if conf.database.connection or not os.path.exists(path):
        return False
    conf.set_default("connection", f"sqlite:///{path}", group="database")
    return True


def is_sqlite(conf: cfg.ConfigOpts) -> bool:
    """Return whether the database is a file of SQLite."""
    return str(conf.database.connection or "").startswith("sqlite")


def make_database(conf: cfg.ConfigOpts, *, upgrade: bool = False) -> Database:
    """Return the database of ``[database]connection``.

    :param upgrade: create or upgrade the schema first
    :raises ConfigurationError: no connection is configured, the schema is not the current one, or it is that of a newer
        version or of another program
    """
    _prepared.append(conf)  # upgrade check reads the files itself
    if not conf.database.connection:
        raise exceptions.ConfigurationError(NO_DATABASE)
    db = Database(conf)
    with contextlib.ExitStack() as on_failure:
        on_failure.callback(db.dispose)
        if not migration.is_current(db.engine):
            if not upgrade:
                raise exceptions.ConfigurationError(
                    "The database schema is not the current one: run 'ironic-rules-dbsync upgrade'.")
            migration.upgrade(db.engine, timeout_s=conf.conductor.heartbeat_timeout, patient=True)
        if conf.notification_level is not None or conf.events.webhooks:
            outbox.want(db.engine, outbox.Wanted(conf.notification_level, conf.events.webhooks, conf.host))
        on_failure.pop_all()
    return db


def be_present(conf: cfg.ConfigOpts, db: Database, kind: str, host: str | None = None) -> Presence:
    """Report this process to the others until the result is stopped; see ``db.processes``.

    :param kind: its command, such as ``api``
    :param host: of a conductor, its name; that of the configuration by default
    """
    presence = Presence(db, kind, host or conf.host, version(), migration.HEAD, conf.conductor.heartbeat_interval)
    presence.start()
    return presence


def conductor_work() -> dict[str, StateWork]:
    """Return what a conductor does in each provision state."""
    from ironic_rules.conductor import inspection, state_handlers, workflows
    from ironic_rules.conductor.conductor import StateWork
    from ironic_rules.conductor.provisioning import finish_abort

    aborts = {"abort": finish_abort}
    return {
        states.VERIFYING: StateWork(state_handlers.verify),
        states.INSPECTING: StateWork(inspection.inspect, inspection.clean_up, inspection.failed),
        states.INSPECTWAIT: StateWork(
            clean_up=inspection.clean_up, on_failure=inspection.failed,
            unfinished={"abort": inspection.finish_abort}),
        states.CLEANING: StateWork(workflows.clean, workflows.clean_up_cleaning),
        states.CLEANWAIT: StateWork(clean_up=workflows.clean_up_cleaning, unfinished=aborts),
        states.CLEANHOLD: StateWork(clean_up=workflows.clean_up_cleaning, unfinished=aborts),
        states.DEPLOYING: StateWork(workflows.deploy, workflows.clean_up_deployment),
        states.DEPLOYWAIT: StateWork(clean_up=workflows.clean_up_deployment, unfinished=aborts),
        states.DEPLOYHOLD: StateWork(clean_up=workflows.clean_up_deployment, unfinished=aborts),
        states.DELETING: StateWork(state_handlers.tear_down),
        states.ADOPTING: StateWork(state_handlers.adopt),
        states.RESCUING: StateWork(workflows.rescue, workflows.clean_up_rescue),
        states.RESCUEWAIT: StateWork(clean_up=workflows.clean_up_rescue, unfinished=aborts),
        states.UNRESCUING: StateWork(workflows.unrescue),
        states.SERVICING: StateWork(workflows.service, workflows.clean_up_service),
        states.SERVICEWAIT: StateWork(clean_up=workflows.clean_up_service, unfinished=aborts),
        states.SERVICEHOLD: StateWork(clean_up=workflows.clean_up_service, unfinished=aborts),
    }


def make_rules(conf: cfg.ConfigOpts, db: Database, numbers: Numbers) -> RuleCaches:
    """Return the rules of a process, and their statistics, which its API and its conductor share.

    :param numbers: where runs of rules are counted, with what else is counted in this process
    :raises ConfigurationError: as from rule_settings.prepare
    """
    from ironic_rules.inspection import fact_sets, rule_sets
    from ironic_rules.inspection.rule_sets import RuleCaches
    from ironic_rules.inspection.rule_statistics import RuleStatistics

    fact_sets.install_built_in(db)
    settings = rule_sets.prepare_rules(conf, db)
    return RuleCaches(db, settings, RuleStatistics(
        db, conf.inspection_rules.statistics_interval, numbers, settings.built_in))


def make_conductor(conf: cfg.ConfigOpts, db: Database, host: str | None = None,
                   rules: RuleCaches | None = None, pxe_filter: PXEFilterAPI | None = None,
                   numbers: Numbers | None = None) -> Conductor:
    """Return a conductor that does not serve RPC.

    :param host: its name; that of the configuration by default
    :param rules: from :func:`make_rules`, where the process has them already
    :param pxe_filter: sends messages to the PXE filters; without it none are sent
    :param numbers: where its work is counted, with what else is counted in this process
    :raises ConfigurationError: a hook, hardware type or interface is missing or does not fit, or rule_settings.prepare
    """
    from ironic_rules.conductor import worker_pool
    from ironic_rules.conductor.conductor import Conductor
    from ironic_rules.conductor.worker_pool import WorkerPool
    from ironic_rules.hardware.enabled import EnabledHardware
    from ironic_rules.inspection.rule_statistics import RuleStatistics

    numbers = numbers or Numbers()
    rules = rules or make_rules(conf, db, numbers)
    return Conductor(
        host=host or conf.host, group=conf.conductor.conductor_group, conf=conf, db=db, hardware=EnabledHardware(conf),
        pipeline=_make_pipeline(conf), rules=rules.inspection, legacy_rules=rules.legacy,
        workers=WorkerPool(conf.conductor.workers_pool_size, conf.conductor.queue_size, worker_pool.limits_s(conf),
                           recovery_size=conf.conductor.recovery_workers, numbers=numbers,
                           operation_size=conf.conductor.operation_workers,
                           poll_size=conf.conductor.step_poll_workers),
        work=conductor_work(),
        pxe_filter=pxe_filter or PXEFilterAPI(),
        rule_statistics=rules.statistics or RuleStatistics(
            db, conf.inspection_rules.statistics_interval, numbers, rules.settings.built_in),
        numbers=numbers)


def _make_pipeline(conf: cfg.ConfigOpts) -> Pipeline:
    """Return the enabled hooks.

    :raises ConfigurationError: one is missing or does not fit
    """
    from ironic_rules.inspection import hook_settings
    from ironic_rules.inspection.hooks import loader
    from ironic_rules.inspection.pipeline import Pipeline

    settings = hook_settings.from_conf(conf)
    return Pipeline(loader.load(loader.parse(conf.inspector.hooks), settings), settings)


def make_conductor_service(conf: cfg.ConfigOpts, db: Database, transport: messaging.RPCTransport,
                           displaced: Callable[[], None] = lambda: None, host: str | None = None,
                           rules: RuleCaches | None = None, numbers: Numbers | None = None,
                           pxe_filter: PXEFilterAPI | None = None) -> ConductorService:
    """Return a conductor that serves RPC, not started.

    :param displaced: called when the process must end, because another one serves under the same host name
    :param host: its name; that of the configuration by default
    :param rules: from :func:`make_rules`, where the process has them already
    :param numbers: where its work is counted, with what else is counted in this process
    :param pxe_filter: sends messages to the PXE filters; by default as configured
    """
    from ironic_rules.conductor.service import ConductorService

    tracing.start(conf, db.engine)
    pxe_filter = pxe_filter or pxe_filter_rpc.make_client(transport, conf)
    conductor = make_conductor(conf, db, host, rules, pxe_filter, numbers)
    return ConductorService(conductor, transport, displaced)


def make_wsgi_app(conf: cfg.ConfigOpts, db: Database, transport: messaging.RPCTransport,
                  audience: Audience | None = None, numbers: Numbers | None = None) -> WSGIApplication:
    """Return the API as a WSGI application, for another WSGI server.

    :param audience: None: all clients
    :param numbers: where its requests are counted, with what else is counted in this process
    :raises ConfigurationError: as from rule_settings.prepare and discovery.check
    """
    from ironic_rules.api.app import Listener

    listener = Listener() if audience is None else Listener(audience)
    return _make_wsgi_apps(conf, db, transport, None, numbers, None, [listener])[0]


def _make_wsgi_apps(conf: cfg.ConfigOpts, db: Database, transport: messaging.RPCTransport, rules: RuleCaches | None,
                    numbers: Numbers | None, pxe_filter: PXEFilterAPI | None,
                    listeners: list[Listener]) -> list[WSGIApplication]:
    from ironic_rules.api import app as api_app
    from ironic_rules.api.fleet_gauges import FleetGauges
    from ironic_rules.extra_specs import installed
    from ironic_rules.inspection import discovery

    discovery.check(conf)
    tracing.start(conf, db.engine)
    for warning in installed.extra_specs().warnings:
        LOG.warning("Extra specs of %s (%s): %s", warning.distribution or "a package", warning.entry_point,
                    warning.text)

    def is_served(group: str) -> bool:
        with db.reader() as conn:
            # The clock by which the call will expire. Without this, it would lose the time for which a machine sleeps.
            clock.follow(conn)
            return conductors.serves(conn, group, conf.conductor.heartbeat_timeout)

    # A quarter of the threads, and at least one, remains for requests that need no conductor.
    most_waiting = max(1, conf.api.threads - max(1, conf.api.threads // 4))
    numbers = numbers or Numbers()
    rules = rules or make_rules(conf, db, numbers)
    FleetGauges(db, conf.conductor.heartbeat_timeout, rules.settings.built_in).offer(numbers)
    return api_app.make_apps(conf, db, ConductorAPI(transport, conf, is_served, most_waiting, numbers, clock.now),
                             rules, pxe_filter or pxe_filter_rpc.make_client(transport, conf),
                             numbers, lambda: _make_pipeline(conf), listeners)


def make_api(conf: cfg.ConfigOpts, db: Database, transport: messaging.RPCTransport,
             rules: RuleCaches | None = None, numbers: Numbers | None = None,
             shared: Sequence[socket.socket] = (), pxe_filter: PXEFilterAPI | None = None) -> ApiServers:
    """Return the API with its own HTTP servers, not started: one, or two with ``[api]public_port``.

    :param rules: from :func:`make_rules`, where the process has them already
    :param numbers: where its requests are counted, with what else is counted in this process
    :param shared: from ``httpd.server.listen``, for one of several processes
    :param pxe_filter: sends messages to the PXE filters; by default as configured
    :raises ConfigurationError: as from :func:`make_wsgi_app` and :func:`make_certificates`
    """
    from ironic_rules.api.app import Listener
    from ironic_rules.api.routes import Audience
    from ironic_rules.httpd.server import ApiServer, ApiServers, addresses

    numbers = numbers or Numbers()
    certificates = make_certificates(conf)
    where = addresses(conf)
    audiences = [Audience.ALL] if len(where) == 1 else [Audience.OPERATORS, Audience.RAMDISKS]
    apps = _make_wsgi_apps(conf, db, transport, rules, numbers, pxe_filter, [
        Listener(audience, address.host) for audience, address in zip(audiences, where, strict=True)])
    # Ramdisks have no certificates.
    of_ramdisks = certificates and make_certificates(conf, clients=False)
    of_each = [certificates, of_ramdisks if conf.api.public_use_tls else None]
    return ApiServers([
        ApiServer(conf, app, numbers, shared[index] if shared else None, of_each[index], address)
        for index, (app, address) in enumerate(zip(apps, where, strict=True))])


def make_certificates(conf: cfg.ConfigOpts, *, clients: bool = True) -> Certificates | None:
    """Return the certificates of the API's own HTTP server; None: it speaks http.

    :param clients: whether clients need one of ``ssl_ca_file``, if that is set
    :raises ConfigurationError: they cannot be used
    """
    options = conf.api
    if options.ssl_cert_file:
        files = Files(options.ssl_cert_file, options.ssl_key_file or options.ssl_cert_file,
                      options.ssl_ca_file if clients else None)
        return Certificates(files, "[api]ssl_cert_file")
    for name in ("ssl_key_file", "ssl_ca_file"):
        if options[name]:
            raise exceptions.ConfigurationError(f"[api]{name} has no effect without [api]ssl_cert_file: set it, too.")
    return None


def certificates_of_metrics(conf: cfg.ConfigOpts, group: str) -> Certificates | None:
    """Return the certificates with which the metrics of ``group`` are served; None: with http.

    :raises ConfigurationError: there are none, or they cannot be used
    """
    if not conf[group].metrics_tls:
        return None
    certificates = make_certificates(conf)
    if certificates is None:
        raise exceptions.ConfigurationError(f"[{group}]metrics_tls needs [api]ssl_cert_file: set it, too.")
    return certificates


def serve_metrics(numbers: Numbers, conf: cfg.ConfigOpts, group: str, port: int = 0,
                  is_well: Callable[[], bool] | None = None) -> None:
    """Serve the metrics of this process if a port is configured for them.

    :param group: the one of ``metrics_host`` and ``metrics_port``: api or conductor
    :param port: instead of ``metrics_port``, if that is set
    :param is_well: tells whether the process works, for a health check beside the metrics; None: there is none
    :raises ConfigurationError: the library is missing, or the port is in use
    """
    options = conf[group]
    if options.metrics_port:
        from ironic_rules.metrics import exporter

        page = exporter.page_of(exporter.NumbersCollector(numbers), "metrics_port")
        exporter.serve(page, options.metrics_host, port or options.metrics_port, group,
                       certificates_of_metrics(conf, group), is_well)


def make_pxe_filter(conf: cfg.ConfigOpts, alive: Callable[[], None] = lambda: None,
                    alive_interval_s: float = 3600.0, db: Database | None = None) -> FilterService:
    """Return a PXE filter, not started. It listens for messages if the transport brings any.

    Otherwise it follows the changes of SQLite's file.

    :param alive: called while the filter is well, at least every ``alive_interval_s`` seconds
    :param db: of this process, whose messages it gets
    :raises ConfigurationError: no folder is configured, or as from :func:`make_database`
    """
    from ironic_rules.pxe_filter import settings as pxe_filter_settings
    from ironic_rules.pxe_filter.service import FilterService
    from ironic_rules.pxe_filter.sync import Keeper

    keeper = Keeper(pxe_filter_settings.from_conf(conf), db or make_database(conf))
    transport = None if db or pxe_filter_rpc.is_local(conf) else rpc_transport.get_transport(conf)
    watched = sqlite.Commits(conf.database.connection) if is_sqlite(conf) and db is None else None
    return FilterService(conf, keeper, transport, alive=alive, alive_interval_s=alive_interval_s,
                         has_changed=watched.are_new if watched else None,
                         answers_at=Path(conf.state_path) / pxe_filter_rpc.SOCKET if watched else None)


def make_own_filter(conf: cfg.ConfigOpts, db: Database, transport: messaging.RPCTransport,
                    ) -> tuple[FilterService | None, PXEFilterAPI]:
    """Return the filter that ``ironic-rules`` runs itself, not started, and what sends messages to it and to others.

    :raises ConfigurationError: as from :func:`make_pxe_filter`
    """
    own = make_pxe_filter(conf, db=db) if conf.pxe_filter.in_process else None
    return own, pxe_filter_rpc.make_client(transport, conf, own)
