"""Several conductor processes of one command.

Each process is a separate conductor, with its own locks and its own heartbeats, so that the death of one is detected
and handled like that of any other conductor.
"""

from __future__ import annotations

import os
import signal

from cotyledon.types import WorkerId
from oslo_config import cfg

from ironic_rules import service
from ironic_rules.cmd import lifecycle, workers
from ironic_rules.rpc import transport as rpc_transport


class ConductorProcess(workers.Process):
    """One of the conductors. The first has the name of the host, the next ones have it with their number."""

    name = "conductor"

    def __init__(self, worker_id: WorkerId, conf: cfg.ConfigOpts) -> None:
        super().__init__(worker_id, conf)
        self._host = conf.host if worker_id == 0 else f"{conf.host}:{worker_id + 1}"
        self._conductor = service.make_conductor_service(
            conf, service.make_database(conf), rpc_transport.get_transport(conf), displaced=_end_all, host=self._host,
            numbers=self._numbers)

    def start(self) -> str:
        self._conductor.start()
        return f"{self._host} is running"

    def stop(self) -> int:
        self._conductor.stop()
        return 1 if self._conductor.is_displaced else 0

    def is_well(self) -> bool:
        return self._conductor.is_well()


def _end_all() -> None:
    # Another command runs with this name. Its process and ours would repeatedly take the name from each other.
    os.kill(os.getppid(), signal.SIGTERM)


def run(conf: cfg.ConfigOpts) -> int:
    """Run ``[conductor]workers`` processes until SIGTERM or Ctrl-C.

    :raises ConfigurationError: as from ``service.make_conductor``; no process is started then
    """
    # Errors in the configuration are reported once, here, and not by processes that repeatedly die.
    db = service.make_database(conf)
    service.make_conductor(conf, db)
    transport = rpc_transport.get_transport(conf)
    lifecycle.reach_broker(conf)
    transport.cleanup()
    db.dispose()  # connections are not shared with the processes
    grace_s = max(conf.conductor.shutdown_grace, 1)
    workers.make_manager(ConductorProcess, conf.conductor.workers, grace_s, conf).run()
    return 0
