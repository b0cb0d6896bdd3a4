"""Several processes of one command: started, monitored, replaced when they die, and stopped together.

cotyledon monitors them. What is in each of them is a :class:`Process`.
"""

from __future__ import annotations

import math
import os
import sys
from typing import Any

import cotyledon
from cotyledon.types import WorkerId
from oslo_config import cfg
from oslo_log import log as logging

from ironic_rules import service
from ironic_rules.cmd import lifecycle, systemd
from ironic_rules.exceptions import ConfigurationError
from ironic_rules.metrics.numbers import Numbers

LOG = logging.getLogger(__name__)

#: Seconds after the grace period until processes that have not exited are killed.
_MARGIN_S = 5


class Process(cotyledon.Service):
    """The service that runs in each of the processes.

    Connections to the database and the broker do not survive a fork, so the constructors of subclasses make them.

    :param worker_id: counts from 0; a restarted process gets the number of the one that died
    """

    #: the name of the service, and of its group of options
    name = ""

    def __init__(self, worker_id: WorkerId, conf: cfg.ConfigOpts) -> None:
        super().__init__(worker_id)
        self._conf = conf
        self._numbers = Numbers()
        self._metrics_port = conf[self.name].metrics_port + worker_id

    def run(self) -> None:
        """Serve, in threads."""
        try:
            service.serve_metrics(self._numbers, self._conf, self.name, self._metrics_port)
        except ConfigurationError as exc:  # no reason to end, and be started again without end
            LOG.error("%s", exc)
        # In one piece: print() writes the end of an unbuffered line separately, and other processes may come between.
        sys.stdout.write(f"ironic-rules-{self.name} {self.start()}\n")
        sys.stdout.flush()
        lifecycle.settle()
        systemd.ready(self.is_well)  # when the first of them serves

    def reload(self) -> None:
        """Reload the configuration; called on SIGHUP. Options that are read only at start-up do not change."""
        lifecycle.reload(self._conf)

    def terminate(self) -> None:
        """Stop serving; called on SIGTERM."""
        lifecycle.exit_now(self.stop())

    def start(self) -> str:
        """Start the threads; return what the process prints about itself."""
        raise NotImplementedError

    def stop(self) -> int:
        """Let what is being processed finish, as far as the service does that; return the exit status."""
        raise NotImplementedError

    def is_well(self) -> bool:
        """Return whether the process works, for systemd's watchdog."""
        raise NotImplementedError


def make_manager(kind: type[Process], number: int, grace_s: float, *args: Any) -> cotyledon.ServiceManager:
    """Return what starts ``number`` processes, replaces those that die, and ends them all at SIGTERM or Ctrl-C.

    :param grace_s: seconds that a process needs at most to end
    :param args: the arguments of ``kind`` after its number
    """
    # The processes notify systemd's watchdog, and not this one, which only starts them.
    os.environ.pop("WATCHDOG_PID", None)
    manager = cotyledon.ServiceManager(graceful_shutdown_timeout=math.ceil(grace_s + _MARGIN_S))
    manager.add(kind, workers=number, args=args)
    return manager
