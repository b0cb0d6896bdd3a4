"""``ironic-pxe-filter``: maintains the hosts files of the local dnsmasq."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from oslo_config import cfg
from oslo_db import exception as db_exc

from ironic_rules import service
from ironic_rules.cmd import lifecycle, output, systemd
from ironic_rules.db.session import Database
from ironic_rules.exceptions import ConfigurationError
from ironic_rules.pxe_filter import report, statistics
from ironic_rules.pxe_filter import service as service_pxe_filter
from ironic_rules.pxe_filter import settings as filter_settings
from ironic_rules.pxe_filter.service import FilterService
from ironic_rules.pxe_filter.sync import Keeper
from ironic_rules.rpc import pxe_filter as pxe_filter_rpc
from ironic_rules.rpc import transport as rpc_transport

_CLI_OPTS: list[cfg.Opt] = [
    cfg.BoolOpt("once", dest="cli_once", default=False, help="Bring the files up to date, and exit."),
    cfg.BoolOpt("status", dest="cli_status", default=False,
                help="Print whether each address is to be allowed or denied, and why; write nothing."),
    service.STATE_DIR,
]


def main(argv: Sequence[str] | None = None) -> int:
    """Run until SIGTERM or Ctrl-C; return the exit status. With ``--once`` it is 1 if a file could not be written."""
    return lifecycle.guarded(_run, argv, unavailable=lifecycle.UNAVAILABLE)


def _run(argv: Sequence[str]) -> int:
    conf = service.prepare_config(argv, _CLI_OPTS)
    service.use_defaults_beside_one_process(conf)
    if conf.cli_once or conf.cli_status:
        conf.set_default("use_stderr", True)  # the output of these is for users or programs
    service.setup_logging(conf)
    settings = filter_settings.from_conf(conf)
    if conf.cli_status:
        return _status(settings, service.make_database(conf))
    if conf.cli_once:
        return _once(Keeper(settings, service.make_database(conf)))
    return _work(conf)


def _status(settings: filter_settings.FilterSettings, db: Database) -> int:
    try:
        for line in report.status(settings, db):
            print(line)
        if sys.stdout is not None:
            sys.stdout.flush()
    except output.Unwritable as exc:
        if not exc.has_no_reader:
            raise
        output.discard(sys.stdout)
    finally:
        db.dispose()
    return 0


def _once(keeper: Keeper) -> int:
    keeper.open()
    try:
        keeper.sync(periodic=True)
        numbers = keeper.statistics
        print(f"{numbers.addresses} addresses are in the files; {numbers.written} files were written")
        return 1 if keeper.is_behind else 0
    finally:
        keeper.close()


def _work(conf: cfg.ConfigOpts) -> int:
    signals = lifecycle.StopSignals(conf)
    filter_service = _made(conf)
    if conf.pxe_filter.metrics_port:
        statistics.serve(filter_service.statistics, conf.pxe_filter.metrics_host, conf.pxe_filter.metrics_port,
                         service.certificates_of_metrics(conf, "pxe_filter"), filter_service.is_well)
    _warn_without_messages(conf)
    # Each commit to a file of SQLite would wake the filter.
    presence = None if service.is_sqlite(conf) else service.be_present(conf, service.make_database(conf), "pxe-filter")
    filter_service.start()
    print(f"ironic-pxe-filter {conf.host} is running", flush=True)
    systemd.tell("READY=1")
    lifecycle.settle()
    signals.wait()
    systemd.tell("STOPPING=1")
    filter_service.stop()
    # Let a running write finish; do not wait for the broker.
    filter_service.wait(2)
    if presence is not None:
        presence.stop()
    lifecycle.exit_now()
    return 0


def _made(conf: cfg.ConfigOpts) -> FilterService:
    """Return the filter; wait for the database without a limit."""
    # The attempts are made, and logged, here.
    conf.set_override("max_retries", 0, group="database")
    return service_pxe_filter.eventually(
        lambda: service.make_pxe_filter(conf, _alive, systemd.watchdog_interval_s() or 3600.0),
        db_exc.DBConnectionError, lambda text: lifecycle.warn(service.placed(f"[database]connection: {text}")))


def _warn_without_messages(conf: cfg.ConfigOpts) -> None:
    """Warn if RabbitMQ refuses the filter, which then reads changes from the database only. No reason to end."""
    if pxe_filter_rpc.is_local(conf):
        return
    transport = rpc_transport.get_transport(conf)
    try:
        lifecycle.reach_broker(conf)
    except ConfigurationError as exc:
        lifecycle.warn(f"{service.placed(str(exc))} The filter gets no messages, and reads the database every "
                       f"{conf.pxe_filter.sync_period} seconds.")
    finally:
        transport.cleanup()


def _alive() -> None:
    systemd.tell("WATCHDOG=1")


if __name__ == "__main__":
    sys.exit(main())
