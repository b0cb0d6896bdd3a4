"""``ironic-rules-conductor``: the processes that work on nodes."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from oslo_config import cfg

from ironic_rules import service
from ironic_rules.cmd import lifecycle, systemd, workers
from ironic_rules.metrics.numbers import Numbers
from ironic_rules.rpc import transport as rpc_transport


def main(argv: Sequence[str] | None = None) -> int:
    """Run until SIGTERM or Ctrl-C; return the exit status: 3 if another process took over this conductor's name."""
    return lifecycle.guarded(_run, argv, unavailable=lifecycle.UNAVAILABLE)


def _run(argv: Sequence[str]) -> int:
    conf = service.prepare_config(argv, conductor=True)
    service.setup_logging(conf)
    if conf.conductor.workers == 1:
        return _work(conf)
    return workers.run_conductors(conf)


def _work(conf: cfg.ConfigOpts) -> int:
    signals = lifecycle.StopSignals(conf)
    db = service.make_database(conf)
    transport = rpc_transport.get_transport(conf)
    numbers = Numbers()
    conductor = service.make_conductor_service(conf, db, transport, displaced=signals.stop, numbers=numbers)
    lifecycle.reach_broker(conf)
    service.serve_metrics(numbers, conf, "conductor", is_well=conductor.is_well)
    presence = service.be_present(conf, db, "conductor")
    try:
        conductor.start()
        print(f"ironic-rules-conductor {conf.host} is running", flush=True)
        lifecycle.settle()
        systemd.ready(conductor.is_well)
        signals.wait()
        systemd.tell("STOPPING=1")
    finally:
        conductor.stop()
        presence.stop()
    lifecycle.end_of_conductor(conf, is_displaced=conductor.is_displaced)
    return 0


if __name__ == "__main__":
    sys.exit(main())
