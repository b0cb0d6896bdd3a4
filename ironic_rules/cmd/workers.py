"""Several conductor processes of one command: started, monitored, restarted when they die, and stopped together.

cotyledon monitors them. Each process is a separate conductor, with its own locks and its own heartbeats, so that the
death of one is detected and handled like that of any other conductor.
"""

from __future__ import annotations

import math
import os
import signal
from typing import Any

import cotyledon
from cotyledon.types import WorkerId
from oslo_config import cfg
from oslo_log import log as logging

from ironic_rules import service
from ironic_rules.cmd import lifecycle, systemd
from ironic_rules.exceptions import ConfigurationError
from ironic_rules.metrics.numbers import Numbers
from ironic_rules.rpc import transport as rpc_transport

LOG = logging.getLogger(__name__)

#: Seconds after the grace period until processes that have not exited are killed.
_MARGIN_S = 5


class ConductorProcess(cotyledon.Service):
    """The service that runs in each of the processes.

    :param worker_id: counts from 0; a restarted process gets the number of the one that died
    """

    name = "conductor"

    def __init__(self, worker_id: WorkerId, conf: cfg.ConfigOpts) -> None:
        super().__init__(worker_id)
        self._conf = conf
        self._host = conf.host if worker_id == 0 else f"{conf.host}:{worker_id + 1}"
        self._numbers = Numbers()
        self._port = conf.conductor.metrics_port + worker_id
        self._conductor = service.make_conductor_service(
            conf, service.make_database(conf), rpc_transport.get_transport(conf), displaced=_end_all, host=self._host,
            numbers=self._numbers)

    def run(self) -> None:
        """Start the conductor, which runs in threads."""
        try:
            service.serve_metrics(self._numbers, self._conf.conductor, self._port)
        except ConfigurationError as exc:  # no reason to end, and be started again without end
            LOG.error("%s", exc)
        self._conductor.start()
        print(f"ironic-rules-conductor {self._host} is running", flush=True)
        lifecycle.settle()
        systemd.ready(self._conductor.is_well)  # when the first of them serves

    def reload(self) -> None:
        """Reload the configuration; called on SIGHUP. Options that are read only at start-up do not change."""
        lifecycle.reload(self._conf)

    def terminate(self) -> None:
        """Stop the conductor; called on SIGTERM."""
        self._conductor.stop()
        lifecycle.exit_now(1 if self._conductor.is_displaced else 0)


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
    rpc_transport.get_transport(conf).cleanup()
    db.dispose()  # connections are not shared with the processes
    make_manager(ConductorProcess, conf.conductor.workers, max(conf.conductor.shutdown_grace, 1), conf).run()
    return 0


def make_manager(kind: type[cotyledon.Service], number: int, grace_s: float, *args: Any) -> cotyledon.ServiceManager:
    """Return what starts ``number`` processes, replaces those that die, and ends them all at SIGTERM or Ctrl-C.

    :param grace_s: seconds that a process needs at most to end
    :param args: the arguments of ``kind`` after its number
    """
    # The processes notify systemd's watchdog, and not this one, which only starts them.
    os.environ.pop("WATCHDOG_PID", None)
    manager = cotyledon.ServiceManager(graceful_shutdown_timeout=math.ceil(grace_s + _MARGIN_S))
    manager.add(kind, workers=number, args=args)
    return manager
