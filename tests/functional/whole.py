"""The whole service in this process: WSGI application, in-memory transport, conductor and a SQLite file.

Besides ``fake-hardware`` there is ``faulty-hardware``, see :mod:`tests.functional.faulty`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import secrets
import socket
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
import webtest
from oslo_config import cfg

from ironic_rules import samples, service
from ironic_rules.api import health
from ironic_rules.conductor.conductor import Conductor
from ironic_rules.conductor.service import ConductorService
from ironic_rules.db import nodes
from ironic_rules.db.session import Database
from ironic_rules.db.tables import node_bmc_addresses, node_history, node_inventory
from ironic_rules.hardware.base import KINDS, HardwareType, Interface
from ironic_rules.hardware.enabled import EnabledHardware, _load_interfaces
from ironic_rules.hardware.fake import FakeHardware
from ironic_rules.inspection.hooks.base import InspectionHook
from ironic_rules.models import addresses, states
from ironic_rules.rpc import pxe_filter as pxe_filter_rpc
from ironic_rules.rpc import transport as rpc_transport
from tests.functional import databases
from tests.functional.faulty import FAULTY, FaultyHardware
from tests.functional.processes import wait_for


def hardware(conf: cfg.ConfigOpts, types: Mapping[str, type[HardwareType]] | None = None,
             inspect_interfaces: Mapping[str, type[Interface]] | None = None,
             deploy_interfaces: Mapping[str, type[Interface]] | None = None) -> EnabledHardware:
    """Return the fake and the faulty hardware, and more ``types`` and interfaces."""
    interfaces = {kind: _load_interfaces(conf, kind) for kind in KINDS}
    for kind, cls in FAULTY.items():
        interfaces[kind]["faulty"] = cls
    interfaces["inspect"].update(inspect_interfaces or {})
    interfaces["deploy"].update(deploy_interfaces or {})
    return EnabledHardware(
        conf, {"fake-hardware": FakeHardware, "faulty-hardware": FaultyHardware, **(types or {})}, interfaces)


def options(text: str = "") -> str:
    """Return the configuration of a service without its host name, broker and database; ``text`` is added to it."""
    return ("[inspector]\nrequire_managed_boot = false\n"
            # The tests run recovery themselves.
            "[conductor]\nrecovery_interval = 3600\nheartbeat_timeout = 600\nsync_power_state_interval = 0\n"
            # Nodes that tests lock stay locked.
            "[api]\nlock_patience = 0\n"
            "[inspection_rules]\nsupported_interfaces = ^(agent|faulty)$\n" + text)


def configuration(folder: Path, text: str = "") -> cfg.ConfigOpts:
    """Return the configuration of a service that keeps its database in ``folder``; ``text`` is added to its file."""
    file = folder / "whole.conf"
    file.write_text(
        "[DEFAULT]\nhost = conductor-1\ntransport_url = ironic-rules-memory://\n"
        f"[database]\nconnection = sqlite:///{folder}/whole.sqlite\nsqlite_synchronous = false\n" + options(text))
    return service.prepare_config([], config_files=[str(file)])


def make_conductor(conf: cfg.ConfigOpts, db: Database, **changes: Any) -> Conductor:
    """Return a conductor's parts with the faulty hardware."""
    return dataclasses.replace(service.make_conductor(conf, db), **{"hardware": hardware(conf), **changes})


class Client(webtest.TestApp):
    """WebTest that requests the newest API version and expects errors."""

    def do_request(self, req: Any, status: Any = None, expect_errors: Any = None) -> Any:
        req.headers.setdefault("X-OpenStack-Ironic-API-Version", "1.96")
        return super().do_request(req, status, expect_errors=True)


def fault(reply: Any) -> str:
    """Return the text of an error reply."""
    return str(json.loads(reply.json["error_message"])["faultstring"])


class Records:
    """Read access to the database."""

    def __init__(self, db: Database) -> None:
        self.db = db

    def row(self, uuid: str) -> Any:
        with self.db.reader() as conn:
            return nodes.get(conn, uuid)

    def _of_node(self, table: sa.Table, uuid: str) -> list[Any]:
        order = table.c.id if "id" in table.c else table.c.address
        with self.db.reader() as conn:
            node_id = nodes.get_id(conn, uuid)
            return list(conn.execute(sa.select(table).where(table.c.node_id == node_id).order_by(order)))

    def bmc_addresses(self, uuid: str) -> list[str]:
        return [row.address for row in self._of_node(node_bmc_addresses, uuid)]

    def inventories(self, uuid: str) -> list[str]:
        """Return the status of each stored inventory, oldest first."""
        return [row.status for row in self._of_node(node_inventory, uuid)]

    def events(self, uuid: str) -> list[tuple[str, str]]:
        """Return severity and text of the node's history."""
        return [(row.severity, row.event) for row in self._of_node(node_history, uuid)]

    def works_on(self, node_id: int) -> bool:
        """Return whether a worker of this process has the node, which lasts a moment longer than its lock."""
        return False

    def at_rest(self, uuid: str) -> Any:
        """Wait until no one has locked the node or works on it; return its row."""

        def rests() -> Any:
            row = self.row(uuid)
            is_done = row.reservation is None and row.provision_state not in states.TRANSIENT
            return row if is_done and not self.works_on(row.id) else None

        return wait_for(f"a stable state of node {uuid}", rests, interval_s=0.005)


class Whole(Records):
    """A running service and the operations of tests on it.

    :ivar app: its HTTP client
    """

    app: Client

    def __init__(self, conf: cfg.ConfigOpts, db: Database) -> None:
        super().__init__(db)
        self.conf = conf
        self._serial = 0

    def option(self, group: str, name: str, value: Any) -> contextlib.AbstractContextManager[None]:
        """Run a test with another value of an option."""
        raise NotImplementedError

    def with_hooks(self, *hooks: InspectionHook) -> contextlib.AbstractContextManager[None]:
        """Run hooks after those that are configured."""
        raise NotImplementedError

    def resolving(self, names: Mapping[str, list[str]]) -> contextlib.AbstractContextManager[Callable[[], list[str]]]:
        """Let the conductor resolve host names to these addresses, and no others; yield what returns those asked."""
        raise NotImplementedError

    def logs(self) -> dict[str, str]:
        """Return what separate processes have logged so far, by their names."""
        return {}

    def enroll(self, state: str = states.ENROLL, **fields: Any) -> str:
        """Create a node over HTTP, set its ``state`` without the API, and return its UUID."""
        reply = self.app.post_json("/v1/nodes", {"driver": "fake-hardware", **fields})
        assert reply.status_int == 201, reply.text
        uuid: str = reply.json["uuid"]
        if state != states.ENROLL:
            self.put(uuid, provision_state=state, power_state=states.POWER_OFF)
        return uuid

    def put(self, uuid: str, **values: Any) -> None:
        """Change a node without the API."""
        self.db.write(lambda conn: nodes.update(conn, nodes.get_id(conn, uuid), values, unlocked=False))

    def show(self, uuid: str) -> dict[str, Any]:
        shown: dict[str, Any] = self.app.get(f"/v1/nodes/{uuid}").json
        return shown

    def ask(self, uuid: str, target: str, **arguments: Any) -> Any:
        """Request a provision state; return the reply."""
        return self.app.put_json(f"/v1/nodes/{uuid}/states/provision", {"target": target, **arguments})

    def provision(self, uuid: str, target: str, **arguments: Any) -> dict[str, Any]:
        """Request a provision state and return the node when it is in a stable state again."""
        reply = self.ask(uuid, target, **arguments)
        assert reply.status_int == 202, reply.text
        self.at_rest(uuid)
        return self.show(uuid)

    def machine(self) -> tuple[str, dict[str, Any]]:
        """Return the MAC address and the callback's body of a unique machine."""
        self._serial += 1
        body = samples.inventory(samples.inventory_names()[0])
        body.pop("error", None)
        mac = f"52:54:00:{secrets.randbelow(256):02x}:{self._serial >> 8:02x}:{self._serial & 255:02x}"
        body["inventory"]["interfaces"] = [{"name": "eth0", "mac_address": mac, "ipv4_address": "192.0.2.9"}]
        body["inventory"].pop("bmc_address", None)
        body["inventory"].pop("bmc_v6address", None)
        return mac, body

    def callback(self, uuid: str, body: dict[str, Any]) -> Any:
        """Send a ramdisk's data; return the reply."""
        return self.app.post_json(f"/v1/continue_inspection?node_uuid={uuid}", body)

    def inspect(self, uuid: str, body: dict[str, Any]) -> dict[str, Any]:
        """Inspect the node from ``inspect`` to the end and return it."""
        assert self.provision(uuid, "inspect")["provision_state"] == states.INSPECTWAIT
        reply = self.callback(uuid, body)
        assert reply.status_int == 200, reply.text
        self.at_rest(uuid)
        return self.show(uuid)


class OneProcess(Whole):
    """The service in this process."""

    def __init__(self, conf: cfg.ConfigOpts, db: Database, conductor: Conductor, started: ConductorService,
                 app: Client) -> None:
        super().__init__(conf, db)
        self.conductor = conductor
        self.conductor_service = started
        self.app = app

    def works_on(self, node_id: int) -> bool:
        return self.conductor.workers.is_active(node_id)

    @contextlib.contextmanager
    def option(self, group: str, name: str, value: Any) -> Iterator[None]:
        self.conf.set_override(name, value, group=group)
        try:
            yield
        finally:
            self.conf.clear_override(name, group=group)

    @contextlib.contextmanager
    def with_hooks(self, *hooks: InspectionHook) -> Iterator[None]:
        pipeline = self.conductor.pipeline
        configured = pipeline._hooks
        pipeline._hooks = (*configured, *((f"added-{number}", hook) for number, hook in enumerate(hooks)))
        try:
            yield
        finally:
            pipeline._hooks = configured

    @contextlib.contextmanager
    def resolving(self, names: Mapping[str, list[str]]) -> Iterator[Callable[[], list[str]]]:
        asked: list[str] = []
        real = socket.getaddrinfo

        def getaddrinfo(host: str, *arguments: Any, **named: Any) -> list[Any]:
            if addresses.parse(host):  # the broker's, of another thread that connects: the function is the process's
                return real(host, *arguments, **named)
            asked.append(host)
            return [(0, 0, 0, "", (address, 0)) for address in names[host]]

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("ironic_rules.hardware.resolver.socket.getaddrinfo", getaddrinfo)
            yield lambda: asked


@contextlib.contextmanager
def running(folder: Path, text: str = "", types: Mapping[str, type[HardwareType]] | None = None,
            inspect_interfaces: Mapping[str, type[Interface]] | None = None,
            deploy_interfaces: Mapping[str, type[Interface]] | None = None) -> Iterator[OneProcess]:
    """Run the service with its database in ``folder``; see ``hardware`` and ``options``."""
    with contextlib.ExitStack() as stack:
        # The in-memory broker is one per process; a separate topic isolates it from services of other tests.
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(rpc_transport, "_TOPIC", f"test-{secrets.token_hex(4)}")
        patch.setattr(health, "FRESH_S", 0)
        patch.setattr(health, "SHORT_PATIENCE_S", 20)
        patch.setattr(health, "PATIENCE_S", 20)  # as it is now, however slow the machine is
        conf = configuration(folder, text)
        if not (file := folder / "whole.sqlite").exists():
            databases.write_sqlite(file)
        db = service.make_database(conf, upgrade=True)
        stack.callback(databases.close, db)
        transport = rpc_transport.get_transport(conf)
        stack.callback(transport.cleanup)
        conductor = make_conductor(conf, db, hardware=hardware(conf, types, inspect_interfaces, deploy_interfaces),
                                   pxe_filter=pxe_filter_rpc.make_client(transport, conf))
        started = ConductorService(conductor, transport)
        started.start()
        stack.callback(started.stop)
        app = Client(service.make_wsgi_app(conf, db, transport, numbers=conductor.numbers),
                     extra_environ={"REMOTE_ADDR": "192.0.2.77"})
        yield OneProcess(conf, db, conductor, started, app)
