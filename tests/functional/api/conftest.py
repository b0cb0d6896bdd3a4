"""The WSGI application in process, with a real SQLite database and a conductor that only records its calls."""

from __future__ import annotations

import contextlib
import http
import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
import webtest
from oslo_config import cfg
from oslo_db import options as db_options

from ironic_rules import conf as service_conf
from ironic_rules import policy, rules
from ironic_rules.api import health, versions
from ironic_rules.api.app import make_app
from ironic_rules.db import (
    allocations,
    clock,
    collection,
    conductors,
    deploy_templates,
    facts,
    flavors,
    inspection_rules,
    legacy_rules,
    legacy_values,
    node_sets,
    nodes,
    operations,
    portgroups,
    ports,
    webhooks,
)
from ironic_rules.db.session import Database
from ironic_rules.db.tables import event_deliveries
from ironic_rules.db.tables import events as events_table
from ironic_rules.db.tables import operations as operations_table
from ironic_rules.httpd.server import ApiServer
from ironic_rules.models.nodes import INTERFACES
from ironic_rules.models.steps import Step
from tests.fakes import FakeConductorAPI
from tests.functional import databases
from tests.functional.api import routes

#: The data that a conductor with the default configuration registers.
FAKE_HARDWARE = {"fake-hardware": {kind: {"enabled": ["fake"], "default": "fake"} for kind in INTERFACES} | {
    "inspect": {"enabled": ["agent", "no-inspect"], "default": "agent"},
    "network": {"enabled": ["noop"], "default": "noop"},
    "storage": {"enabled": ["noop", "fake"], "default": "noop"},
    "logical_disk_properties": {"fake": {"size_gb": "The size in GiB."}},
}}


class Client(webtest.TestApp):
    """WebTest with the newest API version by default, and with access to the inner text of errors."""

    def do_request(self, req: Any, status: Any = None, expect_errors: Any = None) -> Any:
        if "X-OpenStack-Ironic-API-Version" not in req.headers and "no-version" not in req.environ:
            req.headers["X-OpenStack-Ironic-API-Version"] = versions.MAX_STRING
        response = super().do_request(req, status, expect_errors)
        # WebTest's own property returns the envelope.
        text = b"error_message" in response.body and response.status_int >= 400
        response.fault = json.loads(response.json["error_message"]) if text else None
        if response.status_int >= 400 and not text and req.path.lstrip("/").partition("/")[0] == "compute":
            response.fault = of_nova(response.json, response.status_int)
        return response


def of_nova(reply: dict[str, Any], status: int) -> dict[str, Any]:
    """Return an error of the compute API, ``{"itemNotFound": {"code": …, "message": …}}``, as one of this service."""
    (_, told), = reply.items()
    assert told.keys() == {"code", "message"}, reply
    assert told["code"] == status, reply
    return {"code": status, "title": http.HTTPStatus(status).phrase, "description": told["message"],
            "faultcode": "Server" if status >= 500 else "Client", "faultstring": told["message"]}


def at(minor: int) -> dict[str, str]:
    """Return the headers that request API version ``1.minor``."""
    return {"X-OpenStack-Ironic-API-Version": f"1.{minor}"}


class Configuration(cfg.ConfigOpts):
    """The service's configuration without files. Tests share it, since an enforcer of policies takes 15 ms to make."""

    def restore(self) -> None:
        """Give all options their defaults again.

        Groups are module-level objects, in which oslo.config keeps overrides: also those of other instances.
        """
        options = [(None, self._opts), *((name, group._opts) for name, group in self._groups.items())]
        changed = [(name, group) for group, known in options for name, each in known.items() if "override" in each]
        for name, group in changed:
            self.clear_override(name, group)
        if ("policy_file", "oslo_policy") in changed:
            self.forget_policies()

    def forget_policies(self) -> None:
        """Let the next request make an enforcer, which reads the policy file."""
        policy._enforcers.pop(id(self), None)


@pytest.fixture(scope="session")
def shared_conf() -> Configuration:
    made = Configuration()
    service_conf.register_opts(made)
    db_options.set_defaults(made)
    made([], project="ironic-rules", default_config_files=[], default_config_dirs=[])
    return made


@pytest.fixture
def conf(shared_conf: Configuration) -> Iterator[Configuration]:
    shared_conf.restore()
    # Nodes that tests lock stay locked.
    shared_conf.set_override("lock_patience", 0.0, group="api")
    shared_conf.set_override("webhooks", True, group="events")
    yield shared_conf
    shared_conf.restore()


@pytest.fixture(scope="session")
def shared_database() -> Iterator[Database]:
    with databases.migrated_database("sqlite") as url:
        database = databases.open_database(url)
        yield database
        databases.close(database)


class Prepared:
    """The rows that tests find in the database of their process: an empty one has one live conductor."""

    def __init__(self, database: Database) -> None:
        with database.writer() as conn:
            conductors.register(conn, "conductor-1", "", FAKE_HARDWARE, "instance-1")
        self._database = database
        self._empty = databases.Rows(database)
        stock(database)
        self._stocked = databases.Rows(database)

    def empty(self) -> None:
        """Delete everything except one live conductor."""
        self._put(self._empty)

    def stock(self) -> None:
        """Store one of each resource in ``routes``, and nothing else."""
        self._put(self._stocked)

    def _put(self, rows: databases.Rows) -> None:
        with self._database.writer() as conn:
            rows.put(conn)
            # It was registered when the tests of this process began.
            assert conductors.touch(conn, "conductor-1", "instance-1")


def stock(database: Database) -> None:
    """Store one of each resource in ``routes``."""
    with database.writer() as conn:
        node = nodes.create(conn, {"driver": "fake-hardware", "uuid": routes.NODE, "name": "node-1",
                                   "provision_state": "inspect wait", "power_state": "power off"})
        ports.create(conn, {"uuid": routes.PORT, "node_id": node.id, "address": routes.MAC,
                            "internal_info": {"tenant_vif_port_id": "vif-1"}})
        allocations.ALLOCATIONS.create(conn, {"uuid": routes.ALLOCATION, "state": "error"})
        collection.RUNBOOKS.create(conn, {"uuid": routes.RUNBOOK, "name": "CUSTOM_A", "steps": [routes.RUNBOOK_STEP]})
        collection.CHASSIS.create(conn, {"uuid": routes.CHASSIS})
        collection.CONNECTORS.create(conn, {"uuid": routes.CONNECTOR, "node_id": node.id, "type": "iqn",
                                            "connector_id": "iqn.2026-11.example:1"})
        collection.TARGETS.create(conn, {"uuid": routes.TARGET, "node_id": node.id, "volume_type": "iscsi",
                                         "boot_index": 0, "volume_id": "volume-1"})
        portgroups.create(conn, {"uuid": routes.PORTGROUP, "node_id": node.id, "name": "group-1"})
        node_sets.add_trait(conn, node.id, "CUSTOM_A")
        inspection_rules.create(conn, rules.from_wire({
            "uuid": routes.RULE, "actions": [{"op": "fail", "args": {"msg": "x"}}], "conditions": []}))
        hook = webhooks.create(conn, {
            "uuid": routes.WEBHOOK, "url": "https://receiver.example.com/", "secret": "whsec_x", "events": ["*"],
            "level": "debug", "enabled": True})
        conn.execute(sa.insert(events_table).values(
            id=1, uuid=routes.NODE, created_at=clock.now(), type="baremetal.node.update.end", level="info",
            subject=f"nodes/{routes.NODE}", payload_type="ironic/NodeCRUDPayload/1.15", service="ironic-api",
            host="conductor-1", context={}, payload="{}", routed=True))
        conn.execute(sa.insert(event_deliveries).values(
            event_id=1, webhook_id=hook.id, dead=True, attempts=3, created_at=clock.now(), due_at=clock.now()))
        facts.create(conn, {"name": routes.FACT, "value": "{plugin_data[rack]}"})
        legacy_rules.create(conn, {"uuid": routes.RULE, "conditions": [], "actions": [
            {"action": "fail", "message": "x"}]})
        operations.create(conn, legacy_values.CLEANUP, {"rules": []}, None, legacy_values.nodes_of())
        conn.execute(sa.update(operations_table).values(uuid=routes.RULE))
        deploy_templates.create(conn, {"uuid": routes.TEMPLATE, "name": "CUSTOM_A"}, [Step(**routes.STEP)])
        flavor = flavors.create(conn, {"flavorid": routes.FLAVOR, "name": "baremetal", "memory_mb": 1, "vcpus": 1,
                                       "root_gb": 1})
        flavors.write_specs(conn, flavor, {routes.EXTRA_SPEC: "1"}, most=1)


@pytest.fixture(scope="session")
def prepared(shared_database: Database) -> Prepared:
    return Prepared(shared_database)


@pytest.fixture
def db(shared_database: Database, prepared: Prepared) -> Iterator[Database]:
    """An empty database with one live conductor."""
    prepared.empty()
    yield shared_database
    databases.stop_counting(shared_database)


@pytest.fixture
def stocked(db: Database, prepared: Prepared) -> Database:
    """A database with one of each resource in ``routes``."""
    prepared.stock()
    return db


@pytest.fixture
def rpc() -> FakeConductorAPI:
    return FakeConductorAPI()


@pytest.fixture
def start_empty(db: Database, prepared: Prepared, rpc: FakeConductorAPI) -> Callable[[], None]:
    """Empty the database again, and forget calls: for places of a walk."""
    def empty() -> None:
        prepared.empty()
        rpc.calls.clear()

    return empty


@pytest.fixture
def restock(stocked: Database, prepared: Prepared, rpc: FakeConductorAPI) -> Callable[[], None]:
    """Store again what ``stocked`` has, and nothing else, and forget calls: for places of a walk."""
    def stock() -> None:
        prepared.stock()
        rpc.calls.clear()

    return stock


@pytest.fixture
def patient_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let health checks say what the database is now, however slow the machine is."""
    monkeypatch.setattr(health, "FRESH_S", 0)
    monkeypatch.setattr(health, "SHORT_PATIENCE_S", 20)
    monkeypatch.setattr(health, "PATIENCE_S", 20)


@pytest.fixture
def app(conf: cfg.ConfigOpts, db: Database, rpc: FakeConductorAPI, monkeypatch: pytest.MonkeyPatch,
        patient_check: None) -> Client:
    monkeypatch.setattr(health, "FIRST_S", 20)
    return Client(make_app(conf, db, rpc), extra_environ={"REMOTE_ADDR": "192.0.2.77"})


@pytest.fixture
def make_node(db: Database) -> Callable[..., Any]:
    """Store a node, without the API."""
    def make(**values: Any) -> Any:
        return db.write(lambda conn: nodes.create(conn, {"driver": "fake-hardware", **values}))

    return make


@contextlib.contextmanager
def served(db: Database) -> Iterator[httpx.Client]:
    """Yield a client of the API on a real server."""
    conf = cfg.ConfigOpts()
    service_conf.register_opts(conf)
    db_options.set_defaults(conf)
    conf([], project="ironic-rules", default_config_files=[], default_config_dirs=[])
    conf.set_override("port", 0, group="api")
    server = ApiServer(conf, make_app(conf, db, FakeConductorAPI()))
    conf.clear_override("port", group="api")
    server.start()
    with httpx.Client(base_url=server.url, headers={"X-OpenStack-Ironic-API-Version": "1.96"},
                      trust_env=False) as client:
        yield client
    server.stop()
    server.wait()


@pytest.fixture(scope="session")
def emptied() -> Iterator[Callable[[str], Database]]:
    """A function that returns the empty database of a kind, one for all tests: to make one of MariaDB takes 1 s."""
    opened: dict[str, Database] = {}
    with contextlib.ExitStack() as stack:
        def of(kind: str) -> Database:
            if kind not in opened:
                database = databases.open_database(stack.enter_context(databases.migrated_database(kind)))
                stack.callback(databases.close, database)
                opened[kind] = database
            opened[kind].write(databases.empty)
            return opened[kind]

        yield of


@pytest.fixture(params=[
    "sqlite", pytest.param("mysql", marks=pytest.mark.servers), pytest.param("postgresql", marks=pytest.mark.servers)])
def anywhere(request: pytest.FixtureRequest, emptied: Callable[[str], Database]) -> Iterator[httpx.Client]:
    """A client of a service on each database."""
    with served(emptied(request.param)) as client:
        yield client
