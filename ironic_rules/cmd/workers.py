"""Several processes of one command: started, monitored, replaced when they die, and stopped together.

cotyledon monitors them; the content of each is a :class:`Process`. API processes share one port. Each conductor process
is a separate conductor, with its own locks and its own heartbeats, so that the death of one is detected and handled
like that of any other conductor.
"""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import os
import signal
import socket
import sys
from collections.abc import Sequence
from multiprocessing.synchronize import Event
from typing import Any

import cotyledon
from cotyledon.types import WorkerId
from oslo_config import cfg
from oslo_log import log as logging

from ironic_rules import service
from ironic_rules.api import authorization
from ironic_rules.cmd import lifecycle, systemd
from ironic_rules.db.processes import Presence
from ironic_rules.exceptions import ConfigurationError
from ironic_rules.httpd import server
from ironic_rules.metrics.numbers import Numbers
from ironic_rules.rpc import transport as rpc_transport

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
        #: None until it is started, which a signal may prevent
        self._presence: Presence | None = None

    def run(self) -> None:
        """Serve, in threads."""
        try:
            service.serve_metrics(self._numbers, self._conf, self.name, self._metrics_port, self.is_well)
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
        """Let running work finish, as far as the service does that; return the exit status."""
        raise NotImplementedError

    def is_well(self) -> bool:
        """Return whether the process works, for systemd's watchdog."""
        raise NotImplementedError

    def _leave(self) -> None:
        if self._presence is not None:
            self._presence.stop()


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


#: Seconds that a process needs at most to end.
_GRACE_S = 1


class APIProcess(Process):
    """One of the processes that serve the API.

    :param shared: the sockets of all processes
    """

    name = "api"

    def __init__(self, worker_id: WorkerId, conf: cfg.ConfigOpts, shared: Sequence[socket.socket]) -> None:
        super().__init__(worker_id, conf)
        self._place = f"{worker_id + 1} of {conf.api.workers}"
        self._db = service.make_database(conf)
        self._api = service.make_api(conf, self._db, rpc_transport.get_transport(conf), numbers=self._numbers,
                                     shared=shared)

    def start(self) -> str:
        self._presence = service.be_present(self._conf, self._db, "api")
        self._api.start()
        return f"process {self._place} listens on {self._api.text}"

    def stop(self) -> int:
        self._api.stop()  # requests that are being processed have a moment to finish
        self._leave()
        return 0

    def is_well(self) -> bool:
        return self._api.is_answering()


def run_api(conf: cfg.ConfigOpts) -> int:
    """Run ``[api]workers`` processes until SIGTERM or Ctrl-C.

    :raises ConfigurationError: as from ``service.make_api``, or the port cannot be bound; no process is started then
    """
    # Errors in the configuration are reported once, here, and not by processes that repeatedly die.
    db = service.make_database(conf)
    transport = rpc_transport.get_transport(conf)
    service.make_wsgi_app(conf, db, transport)
    lifecycle.reach_broker(conf)
    transport.cleanup()
    db.dispose()  # connections are not shared with the processes
    authorization.warn_if_open(conf)
    shared = server.listen(conf)
    manager = make_manager(APIProcess, conf.api.workers, _GRACE_S, conf, shared)
    # Else clients could still connect, without ever getting a reply, until this process has ended too.
    closing = contextlib.ExitStack()
    for listener in shared:
        closing.callback(listener.close)
    manager.register_hooks(on_terminate=closing.close)
    manager.run()
    return 0


class ConductorProcess(Process):
    """One of the conductors. The first has the name of the host, the next ones have it with their number.

    :param displaced: set by the process whose name another one has taken over
    """

    name = "conductor"

    def __init__(self, worker_id: WorkerId, conf: cfg.ConfigOpts, displaced: Event) -> None:
        super().__init__(worker_id, conf)

        def end_all() -> None:
            # Another command runs with this name. Its process and ours would repeatedly take the name from each other.
            displaced.set()
            os.kill(os.getppid(), signal.SIGTERM)

        self._host = conf.host if worker_id == 0 else f"{conf.host}:{worker_id + 1}"
        self._db = service.make_database(conf)
        self._conductor = service.make_conductor_service(
            conf, self._db, rpc_transport.get_transport(conf), displaced=end_all, host=self._host,
            numbers=self._numbers)

    def start(self) -> str:
        self._presence = service.be_present(self._conf, self._db, "conductor", self._host)
        self._conductor.start()
        return f"{self._host} is running"

    def stop(self) -> int:
        self._conductor.stop()
        self._leave()
        return lifecycle.DISPLACED if self._conductor.is_displaced else 0

    def is_well(self) -> bool:
        return self._conductor.is_well()


def run_conductors(conf: cfg.ConfigOpts) -> int:
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
    displaced = multiprocessing.Event()
    with contextlib.suppress(SystemExit):  # as cotyledon ends
        make_manager(ConductorProcess, conf.conductor.workers, grace_s, conf, displaced).run()
    lifecycle.end_of_conductor(conf, is_displaced=displaced.is_set())
    return 0
