"""A service of two API and three conductor processes, to which everything happens that can happen to it, by a seed.

Each process reaches the database by a relay of its own, which can become silent, and all reach the broker by one.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import sqlalchemy as sa

from ironic_rules.db.tables import conductors, nodes
from tests.functional.faults.conftest import Api, FaultyCluster
from tests.functional.faults.test_connections import cut_connections
from tests.functional.processes import TREE, Process, free_port, wait_for
from tests.functional.relay import Relay

APIS, CONDUCTORS = ("api-1", "api-2"), ("conductor-1", "conductor-2", "conductor-3")
#: True if the service has its own time-outs: IRONIC_RULES_TEST_CHAOS_DEFAULTS=1.
HAS_DEFAULTS = bool(os.environ.get("IRONIC_RULES_TEST_CHAOS_DEFAULTS"))
TIMEOUTS = "[database]\nstatement_timeout = 2\nidle_transaction_timeout = 3\nlock_timeout = 2\n"
CONFIG = (("" if HAS_DEFAULTS else TIMEOUTS)
          + "[inventory]\nmax_versions = 100000\n[conductor]\nnode_history_max_entries = 100000\n")
PORTS = {"mysql": 3306, "postgresql": 5432, "rabbit": 5672}
#: Within this time after a fault its consequences are gone: heartbeat_timeout + 60 s.
RECOVERED_S = 120.0 if HAS_DEFAULTS else 64.0
#: Longer than any process is stopped: no client gives up while its request may still be processed.
CLIENT_TIMEOUT_S = 20.0
_SHORT_PAUSE_S = 0.2
_HALF = b"POST /v1/continue_inspection HTTP/1.1\r\nHost: a\r\nContent-Length: 90000\r\n\r\n{"


def relay_to(url: sa.URL) -> Relay:
    return Relay(url.host or "127.0.0.1", url.port or PORTS[url.get_backend_name()])


class Service(FaultyCluster):
    """The processes, by name, and how to disturb each."""

    def __init__(self, folder: Path, database_url: str, transport_url: str) -> None:
        self.broker = relay_to(sa.make_url(transport_url))
        transport = sa.make_url(transport_url).set(port=self.broker.port).render_as_string(hide_password=False)
        super().__init__(folder, database_url, transport, CONFIG, has_defaults=HAS_DEFAULTS)
        self._server = sa.make_url(database_url)
        self.relays = {name: relay_to(self._server) for name in (*APIS, *CONDUCTORS)}
        self._ports = {name: free_port() for name in APIS}
        self._running: dict[str, Process] = {}
        self._starts = 0
        self.clients = [Api(f"http://127.0.0.1:{port}") for port in self._ports.values()]
        for client in self.clients:
            client._http.timeout = httpx.Timeout(CLIENT_TIMEOUT_S)

    @property
    def urls(self) -> list[str]:
        return [f"http://127.0.0.1:{port}" for port in self._ports.values()]

    def begin(self, name: str) -> None:
        """Start a process."""
        file = Path(self.configuration(name))
        through = self._server.set(host="127.0.0.1", port=self.relays[name].port)
        file.write_text(file.read_text().replace(self.database_url, through.render_as_string(hide_password=False)))
        clock = self.folder / f"{name}.clock"
        clock.write_text("0")
        command = ["ironic_rules.cmd.conductor"] if name in CONDUCTORS else [
            "ironic_rules.cmd.api", "--port", str(self._ports[name])]
        self._starts += 1
        process = Process("tests.functional.faults.launcher", [*command, "--config-file", str(file)], self.folder,
                          f"{name}-{self._starts}", {"PYTHONPATH": TREE, "IRONIC_RULES_TEST_CLOCK": str(clock)})
        self._processes.append(process)
        self._running[name] = process

    def ready(self, name: str) -> None:
        self._running[name].printed("is running" if name in CONDUCTORS else "listens on")

    def signal(self, name: str, number: int) -> None:
        os.kill(self._running[name].pid, number)

    def kill(self, name: str) -> None:
        self._running[name].kill()

    def set_clock(self, name: str, seconds: float) -> None:
        (self.folder / f"{name}.clock").write_text(str(seconds))

    def locks(self) -> set[tuple[int, str]]:
        """Return the locks that are held now: node and token."""
        held = sa.select(nodes.c.id, nodes.c.reservation_token).where(nodes.c.reservation.is_not(None))
        return {(row[0], row[1]) for row in self.select(held)}

    def is_well(self) -> bool:
        """Return whether both APIs say that all is well, with three conductors."""
        for client in self.clients:
            try:
                answer = client("GET", "/healthcheck")
            except httpx.HTTPError:
                return False
            if answer.status_code != 200 or answer.json()["conductors"] != len(CONDUCTORS):
                return False
        return len(self.select(sa.select(conductors.c.id).where(conductors.c.online))) == len(CONDUCTORS)

    def close(self) -> None:
        for client in self.clients:
            client.close()
        for name, process in self._running.items():
            if process.is_running():
                self.signal(name, signal.SIGCONT)
        super().close()
        for relay in (self.broker, *self.relays.values()):
            relay.cut()


@contextlib.contextmanager
def silence(service: Service, dice: random.Random) -> Iterator[str]:
    name = dice.choice((*APIS, *CONDUCTORS))
    service.relays[name].is_silent = True
    yield f"the database is silent for {name}"
    service.relays[name].is_silent = False


@contextlib.contextmanager
def stop(service: Service, dice: random.Random) -> Iterator[str]:
    name = dice.choice((*APIS, *CONDUCTORS))
    service.signal(name, signal.SIGSTOP)
    yield f"{name} is stopped"
    service.signal(name, signal.SIGCONT)


@contextlib.contextmanager
def kill(service: Service, dice: random.Random) -> Iterator[str]:
    name = dice.choice((*APIS, *CONDUCTORS))
    service.kill(name)
    yield f"{name} is killed"
    service.begin(name)
    service.ready(name)


@contextlib.contextmanager
def clock(service: Service, dice: random.Random) -> Iterator[str]:
    name, seconds = dice.choice((*APIS, *CONDUCTORS)), dice.choice((-100_000, -120, 120, 100_000))
    service.set_clock(name, seconds)
    yield f"the clock of {name} jumps by {seconds} s"
    service.set_clock(name, 0)


@contextlib.contextmanager
def broker(service: Service, dice: random.Random) -> Iterator[str]:
    service.broker.cut()
    yield "the broker closes all connections"
    service.broker.mend()


@contextlib.contextmanager
def database(service: Service, dice: random.Random) -> Iterator[str]:
    cut_connections(service.database_url)
    yield "the database closes all connections"
    cut_connections(service.database_url)


FAULTS: list[Callable[[Service, random.Random], contextlib.AbstractContextManager[str]]] = [
    silence, stop, kill, clock, broker, database]


def cause(service: Service, dice: random.Random, number: int) -> str:
    """Cause the fault with that number, each kind in turn; return what it was, and how long its consequences lasted."""
    with FAULTS[number % len(FAULTS)](service, dice) as what:
        lasted_s = dice.uniform(1, 9)
        time.sleep(lasted_s)
        before, ended = service.locks(), time.monotonic()
    # What was worked on when it ended is not worked on by the same any more.
    wait_for(f"recovery: {what}", lambda: service.is_well() and not before & service.locks(), RECOVERED_S, 0.25)
    return f"{what} for {lasted_s:.1f} s; recovered {time.monotonic() - ended:.1f} s later"


class Knocking:
    """Connections of clients that never send a whole request."""

    def __init__(self, urls: list[str], number: int) -> None:
        self._addresses = [("127.0.0.1", int(url.rpartition(":")[2])) for url in urls]
        self._number = number
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.opened = 0

    def __enter__(self) -> Knocking:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        kept: list[socket.socket] = []
        with contextlib.ExitStack() as stack:
            stack.callback(lambda: [one.close() for one in kept])
            while not self._over.wait(0.5):
                kept = [one for one in kept if self._is_open(one)]
                for number in range(min(200, self._number - len(kept))):
                    with contextlib.suppress(OSError):
                        one = socket.create_connection(self._addresses[number % len(self._addresses)], 0.5)
                        kept.append(one)
                        one.sendall(_HALF[:self.opened % len(_HALF)])
                        one.setblocking(False)
                        self.opened += 1

    @staticmethod
    def _is_open(one: socket.socket) -> bool:
        try:
            if one.recv(4096):
                return True
        except BlockingIOError:
            return True
        except OSError:
            pass
        one.close()
        return False


@dataclass
class Machine:
    """A node, its ramdisk, and what the service has acknowledged."""

    uuid: str
    body: dict[str, Any]
    reports: list[str] = field(default_factory=list)
    patches: list[str] = field(default_factory=list)


class Operator:
    """Inspects machines again and again, and repeats each request until it is acknowledged, as real clients do."""

    def __init__(self, service: Service, seed: int, over: threading.Event) -> None:
        self._clients = service.clients
        self._dice = random.Random(seed)
        self._over = over

    def request(self, method: str, path: str, body: Any, again: set[int], **headers: str) -> httpx.Response:
        """Send a request, the same one to either API, until it is neither lost nor refused for the moment."""
        last = time.monotonic() + 3 * RECOVERED_S
        while True:
            client = self._dice.choice(self._clients)
            with contextlib.suppress(httpx.HTTPError):
                answer = client._http.request(method, path, json=body, headers=headers)
                if answer.status_code not in again:
                    return answer
            assert time.monotonic() < last, f"{method} {path} is never answered"
            time.sleep(self._dice.uniform(0, 2) * _SHORT_PAUSE_S)

    def enrol(self) -> Machine:
        mac, body = Api.machine()
        ident = str(uuid.uuid4())
        made = self.request("POST", "/v1/nodes", {"driver": "fake-hardware", "uuid": ident}, {503})
        assert made.status_code in (201, 409), made.text
        made = self.request("POST", "/v1/ports", {"node_uuid": ident, "address": mac}, {503})
        assert made.status_code in (201, 409), made.text
        self._reach(ident, "manage", {"manageable"})
        return Machine(ident, body)

    def inspect(self, machine: Machine) -> None:
        """Inspect a machine once, and change its node meanwhile."""
        self._reach(machine.uuid, "inspect", {"inspect wait"})
        serial = f"{machine.uuid}/{len(machine.reports)}"
        self._patch(machine)
        answer = self.request("POST", "/v1/continue_inspection", {**machine.body, "serial": serial}, {503})
        assert answer.status_code == 200, f"{serial}: {answer.status_code} {answer.text}"
        machine.reports.append(serial)
        self._patch(machine)
        self._wait(machine.uuid, {"manageable"})

    def _patch(self, machine: Machine) -> None:
        key = f"key{len(machine.patches)}"
        change = [{"op": "add", "path": f"/extra/{key}", "value": key}]
        answer = self.request("PATCH", f"/v1/nodes/{machine.uuid}", change, {409, 503})
        assert answer.status_code == 200, answer.text
        machine.patches.append(key)

    def _reach(self, ident: str, verb: str, goals: set[str]) -> None:
        answer = self.request("PUT", f"/v1/nodes/{ident}/states/provision", {"target": verb}, {409, 503},
                              **{"Idempotency-Key": str(uuid.uuid4())})
        assert answer.status_code == 202, f"{verb}: {answer.status_code} {answer.text}"
        self._wait(ident, goals)

    def _wait(self, ident: str, goals: set[str]) -> None:
        last = time.monotonic() + 3 * RECOVERED_S
        while True:
            node = self.request("GET", f"/v1/nodes/{ident}?fields=provision_state,last_error", None, {503}).json()
            if node["provision_state"] in goals:
                return
            assert node["last_error"] is None, node
            assert time.monotonic() < last, f"{ident} is still in {node['provision_state']}"
            time.sleep(_SHORT_PAUSE_S)

    def work(self, machines: list[Machine]) -> None:
        """Inspect the machines in turn until it is over."""
        while not self._over.is_set():
            for machine in machines:
                if self._over.is_set():
                    return
                self.inspect(machine)
