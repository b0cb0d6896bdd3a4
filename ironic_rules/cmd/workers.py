"""Several conductor processes under one command: started, watched, started again when they die, and ended together.

cotyledon does the watching. Each process is a conductor of its own, with its own locks and its own signs of life, so
that the death of one is noticed and repaired as that of any other conductor.
"""

from __future__ import annotations

import math
import os
import signal

import cotyledon
from cotyledon.types import WorkerId
from oslo_config import cfg

from ironic_rules import service
from ironic_rules.cmd import lifecycle
from ironic_rules.rpc import transport as rpc_transport

#: Seconds on top of the grace that the processes give their work, until those that have not ended are killed.
_MARGIN_S = 5


class ConductorProcess(cotyledon.Service):
    """One of the processes, in the process itself.

    :param worker_id: counts from 0; a process that is started again gets the number of the one that died
    """

    name = "conductor"

    def __init__(self, worker_id: WorkerId, conf: cfg.ConfigOpts) -> None:
        super().__init__(worker_id)
        self._conf = conf
        self._host = conf.host if worker_id == 0 else f"{conf.host}:{worker_id + 1}"
        self._conductor = service.make_conductor_service(
            conf, service.make_database(conf), rpc_transport.get_transport(conf), displaced=_end_all, host=self._host)

    def run(self) -> None:
        """Begin to work; it goes on in threads."""
        self._conductor.start()
        print(f"ironic-rules-conductor {self._host} is at work", flush=True)
        lifecycle.settle()

    def reload(self) -> None:
        """Read the configuration again; called on SIGHUP. What is read at the start only stays as it is."""
        lifecycle.reload(self._conf)

    def terminate(self) -> None:
        """Stop working; called on SIGTERM."""
        self._conductor.stop()
        lifecycle.exit_now(1 if self._conductor.is_displaced else 0)


def _end_all() -> None:
    # Another command runs with this name. Its process and ours would take the name from each other again and again.
    os.kill(os.getppid(), signal.SIGTERM)


def run(conf: cfg.ConfigOpts) -> int:
    """Run ``[conductor]workers`` processes until SIGTERM or Ctrl-C.

    :raises ConfigurationError: as from ``service.make_conductor``; no process is started then
    """
    # What is wrong with the configuration shall be told once, here, and not by processes that die again and again.
    db = service.make_database(conf)
    service.make_conductor(conf, db)
    rpc_transport.get_transport(conf).cleanup()
    db.dispose()  # connections are not shared with the processes
    manager = cotyledon.ServiceManager(
        graceful_shutdown_timeout=math.ceil(max(conf.conductor.shutdown_grace, 1) + _MARGIN_S))
    manager.add(ConductorProcess, workers=conf.conductor.workers, args=(conf,))
    manager.run()
    return 0
