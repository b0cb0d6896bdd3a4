"""Several API processes of one command, on one port: started, replaced when they die, and stopped together."""

from __future__ import annotations

import socket

import cotyledon
from cotyledon.types import WorkerId
from oslo_config import cfg
from oslo_log import log as logging

from ironic_rules import service
from ironic_rules.api import auth, server
from ironic_rules.cmd import lifecycle, systemd, workers
from ironic_rules.exceptions import ConfigurationError
from ironic_rules.metrics.numbers import Numbers
from ironic_rules.rpc import transport as rpc_transport

LOG = logging.getLogger(__name__)

#: Seconds that a process needs at most to end.
_GRACE_S = 1


class APIProcess(cotyledon.Service):
    """The service that runs in each of the processes.

    :param worker_id: counts from 0; a restarted process gets the number of the one that died
    :param shared: the socket of all processes
    """

    name = "api"

    def __init__(self, worker_id: WorkerId, conf: cfg.ConfigOpts, shared: socket.socket) -> None:
        super().__init__(worker_id)
        self._conf = conf
        self._name = f"{worker_id + 1} of {conf.api.workers}"
        self._port = conf.api.metrics_port + worker_id
        self._numbers = Numbers()
        # Connections to the database and the broker do not survive a fork, so each process makes its own.
        self._api = service.make_api(conf, service.make_database(conf), rpc_transport.get_transport(conf),
                                     numbers=self._numbers, shared=shared)

    def run(self) -> None:
        """Serve, in threads."""
        try:
            service.serve_metrics(self._numbers, self._conf.api, self._port)
        except ConfigurationError as exc:  # no reason to end, and be started again without end
            LOG.error("%s", exc)
        self._api.start()
        print(f"ironic-rules-api process {self._name} listens on {self._api.url}", flush=True)
        lifecycle.settle()
        systemd.ready(self._api.is_answering)  # when the first of them serves

    def reload(self) -> None:
        """Reload the configuration; called on SIGHUP. Options that are read only at start-up do not change."""
        lifecycle.reload(self._conf)

    def terminate(self) -> None:
        """Stop serving; called on SIGTERM. Requests that are being processed have a moment to finish."""
        self._api.stop()
        lifecycle.exit_now()


def run(conf: cfg.ConfigOpts) -> int:
    """Run ``[api]workers`` processes until SIGTERM or Ctrl-C.

    :raises ConfigurationError: as from ``service.make_api``, or the port cannot be bound; no process is started then
    """
    # Errors in the configuration are reported once, here, and not by processes that repeatedly die.
    db = service.make_database(conf)
    transport = rpc_transport.get_transport(conf)
    service.make_wsgi_app(conf, db, transport)
    transport.cleanup()
    db.dispose()  # connections are not shared with the processes
    auth.warn_if_open(conf)
    shared = server.listen(conf)
    manager = workers.make_manager(APIProcess, conf.api.workers, _GRACE_S, conf, shared)
    # Else clients could still connect, without ever getting a reply, until this process has ended too.
    manager.register_hooks(on_terminate=shared.close)
    manager.run()
    return 0
