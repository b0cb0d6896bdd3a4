"""Several API processes of one command, on one port."""

from __future__ import annotations

import socket

from cotyledon.types import WorkerId
from oslo_config import cfg

from ironic_rules import service
from ironic_rules.api import authorization
from ironic_rules.cmd import lifecycle, workers
from ironic_rules.httpd import server
from ironic_rules.rpc import transport as rpc_transport

#: Seconds that a process needs at most to end.
_GRACE_S = 1


class APIProcess(workers.Process):
    """One of the processes that serve the API.

    :param shared: the socket of all processes
    """

    name = "api"

    def __init__(self, worker_id: WorkerId, conf: cfg.ConfigOpts, shared: socket.socket) -> None:
        super().__init__(worker_id, conf)
        self._place = f"{worker_id + 1} of {conf.api.workers}"
        self._api = service.make_api(conf, service.make_database(conf), rpc_transport.get_transport(conf),
                                     numbers=self._numbers, shared=shared)

    def start(self) -> str:
        self._api.start()
        return f"process {self._place} listens on {self._api.url}"

    def stop(self) -> int:
        self._api.stop()  # requests that are being processed have a moment to finish
        return 0

    def is_well(self) -> bool:
        return self._api.is_answering()


def run(conf: cfg.ConfigOpts) -> int:
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
    manager = workers.make_manager(APIProcess, conf.api.workers, _GRACE_S, conf, shared)
    # Else clients could still connect, without ever getting a reply, until this process has ended too.
    manager.register_hooks(on_terminate=shared.close)
    manager.run()
    return 0
