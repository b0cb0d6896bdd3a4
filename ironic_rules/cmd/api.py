"""``ironic-rules-api``: the REST API with its own HTTP server."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ironic_rules import service
from ironic_rules.api import authorization
from ironic_rules.cmd import lifecycle, systemd, workers
from ironic_rules.metrics.numbers import Numbers
from ironic_rules.rpc import transport as rpc_transport


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM or Ctrl-C; return the exit status."""
    return lifecycle.guarded(_run, argv, unavailable=lifecycle.UNAVAILABLE)


def _run(argv: Sequence[str]) -> int:
    conf = service.prepare_config(argv, lifecycle.LISTEN_OPTS, api=True)
    lifecycle.apply_listen_opts(conf)
    service.setup_logging(conf)
    lifecycle.give_memory_back()
    if conf.api.workers > 1:
        return workers.run_api(conf)
    signals = lifecycle.StopSignals(conf)
    db = service.make_database(conf)
    transport = rpc_transport.get_transport(conf)
    lifecycle.reach_broker(conf)
    numbers = Numbers()
    api = service.make_api(conf, db, transport, numbers=numbers)
    service.serve_metrics(numbers, conf, "api", is_well=api.is_answering)
    authorization.warn_if_open(conf)
    presence = service.be_present(conf, db, "api")
    api.start()
    print(f"ironic-rules-api listens on {api.text}", flush=True)
    lifecycle.settle()
    systemd.ready(api.is_answering)
    signals.wait()
    systemd.tell("STOPPING=1")
    api.stop()
    presence.stop()
    lifecycle.exit_now()
    return 0


if __name__ == "__main__":
    sys.exit(main())
