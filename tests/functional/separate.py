"""The whole service as separate processes: the commands of API and conductor, with RabbitMQ and a database server.

What a test adds to the service (the faulty hardware, hardware types, inspect interfaces) is installed as a plug-in
package, and enabled by the configuration. Hooks of a test run in the hooks ``told-0`` and ``told-1``, see
:mod:`tests.functional.told`.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import sqlalchemy as sa
import webob
from oslo_config import cfg

from ironic_rules import service
from ironic_rules.db import migration
from ironic_rules.db.session import Database
from ironic_rules.hardware.base import HardwareType, Interface
from ironic_rules.hardware.enabled import INTERFACES_GROUP, TYPES_GROUP
from ironic_rules.inspection.hooks import loader
from ironic_rules.inspection.hooks.base import InspectionHook
from tests.functional import told
from tests.functional.brokers import temporary_vhost
from tests.functional.databases import engine, open_database, temporary_database
from tests.functional.faulty import FAULTY, FaultyHardware
from tests.functional.processes import PATIENCE_S, Cluster, Process, wait_for
from tests.functional.rows import packages
from tests.functional.whole import Client, Whole, options

#: The folder of the tests' package: processes run in another one.
TREE = Path(__file__).parents[2]
CONDUCTOR = "conductor-1"
#: Groups of options that only a conductor reads, of those that tests override; the API reads the others.
OF_CONDUCTORS = {"inspector", "inventory"}

Overrides = tuple[tuple[str, str, Any], ...]


def text_of(overrides: Overrides) -> str:
    """Return options as text of a configuration file; those that are None are left out."""
    return "".join(f"\n[{group}]\n{name} = {value}\n" for group, name, value in overrides if value is not None)


def forwarding(url: str) -> tuple[Any, httpx.Client]:
    """Return a WSGI application that sends its requests to a server, and its client, which must be closed."""
    client = httpx.Client(trust_env=False, timeout=PATIENCE_S)

    def app(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        request = webob.Request(environ)
        headers = {name: value for name, value in request.headers.items() if name != "Host"}
        # WebOb would copy it to a file.
        body = environ["wsgi.input"].read(request.content_length or 0)
        reply = client.request(request.method, url + request.path_qs, headers=headers, content=body)
        hop_by_hop = {"connection", "keep-alive", "transfer-encoding", "content-encoding"}
        start_response(f"{reply.status_code} {reply.reason_phrase}", [
            (name, value) for name, value in reply.headers.items() if name not in hop_by_hop])
        return [reply.content]

    return app, client


class SeparateProcesses(Whole):
    """A conductor process, and an API process for each set of overridden options that tests have needed."""

    def __init__(self, conf: cfg.ConfigOpts, db: Database, cluster: Cluster, stack: contextlib.ExitStack) -> None:
        """Start the processes, and wait until they serve.

        :param stack: gets what must be closed in the end
        """
        super().__init__(conf, db)
        self._cluster = cluster
        self._stack = stack
        self._overrides: Overrides = ()
        self._clients: dict[Overrides, Client] = {}
        self._conductor = start_conductor(cluster)
        self.url, self._clients[()] = self._api(())
        self._conductor.printed("is running")

    def _api(self, overrides: Overrides) -> tuple[str, Client]:
        name = f"api-{len(self._clients) + 1}"
        url = started_api(start_api(self._cluster, name, overrides))
        app, client = forwarding(url)
        self._stack.callback(client.close)
        return url, Client(app)

    @property
    def app(self) -> Client:  # type: ignore[override]
        overrides = tuple(one for one in self._overrides if one[0] not in OF_CONDUCTORS)
        if overrides not in self._clients:
            self._clients[overrides] = self._api(overrides)[1]
        return self._clients[overrides]

    @contextlib.contextmanager
    def option(self, group: str, name: str, value: Any) -> Iterator[None]:
        before = self._overrides
        self._overrides = (*before, (group, name, value))
        try:
            if group in OF_CONDUCTORS:
                self._replace_conductor()
            yield
        finally:
            self._overrides = before
            if group in OF_CONDUCTORS:
                self._replace_conductor()

    def _replace_conductor(self, **environment: str) -> None:
        self._conductor.terminate()
        overrides = tuple(one for one in self._overrides if one[0] in OF_CONDUCTORS)
        self._conductor = start_conductor(self._cluster, overrides, **environment)
        self._conductor.printed("is running")

    @contextlib.contextmanager
    def with_hooks(self, *hooks: InspectionHook) -> Iterator[None]:
        told.tell(self._cluster.folder, *hooks)
        try:
            yield
        finally:
            told.tell(self._cluster.folder)

    @contextlib.contextmanager
    def resolving(self, names: Mapping[str, list[str]]) -> Iterator[Callable[[], list[str]]]:
        file = self._cluster.folder / "names.json"
        file.write_text(json.dumps(names))
        asked = file.with_suffix(".asked")
        asked.touch()
        self._replace_conductor(IRONIC_RULES_TEST_NAMES=str(file))
        try:
            yield lambda: asked.read_text().split()
        finally:
            self._replace_conductor()

    def logs(self) -> dict[str, str]:
        return {file.stem: file.read_text(errors="replace") for file in self._cluster.folder.glob("*.log")}


def start_conductor(cluster: Cluster, overrides: Overrides = (), **environment: str) -> Process:
    """Start a conductor; the launcher is only needed where ``environment`` tells it something."""
    file = cluster.configuration(CONDUCTOR, text_of(overrides))
    variables = {**surroundings(cluster.folder), **environment}
    command = "ironic_rules.cmd.conductor"
    return cluster.start(command, file, CONDUCTOR, environment=variables,
                         launcher="tests.functional.faults.launcher" if environment else None)


def start_api(cluster: Cluster, name: str, overrides: Overrides = ()) -> Process:
    file = cluster.configuration(name, text_of(overrides))
    return cluster.start("ironic_rules.cmd.api", file, name, "--port", "0", environment=surroundings(cluster.folder))


def started_api(process: Process) -> str:
    """Return the URL of an API process when it listens."""
    return process.printed(r"listens on (http://\S+)").group(1)


def surroundings(folder: Path) -> dict[str, str]:
    """Return the environment of processes: where the plug-ins are, and what their hooks are told."""
    return {"PYTHONPATH": os.pathsep.join([str(folder / "plugins"), str(TREE)]), told.VARIABLE: str(folder)}


def install_plugins(folder: Path, types: Mapping[str, type[HardwareType]],
                    inspect_interfaces: Mapping[str, type[Interface]]) -> str:
    """Install what tests add as a package of entry points; return the options that enable it, except for hooks."""
    defaults = service.prepare_config([], config_files=[])
    interfaces = {kind: {"faulty": cls} for kind, cls in FAULTY.items()}
    interfaces["inspect"] |= inspect_interfaces
    groups = {TYPES_GROUP: {"faulty-hardware": FaultyHardware, **types},
              loader.GROUP: told.HOOKS,
              **{f"{INTERFACES_GROUP}.{kind}": classes for kind, classes in interfaces.items()}}
    packages.install(folder, "tests_additions", "".join(
        f"from {cls.__module__} import {cls.__name__}\n" for names in groups.values() for cls in names.values()),
        {group: {name: cls.__name__ for name, cls in names.items()} for group, names in groups.items()})
    enabled = {"enabled_hardware_types": ["fake-hardware", *groups[TYPES_GROUP]], **{
        f"enabled_{kind}_interfaces": [*defaults[f"enabled_{kind}_interfaces"], *classes]
        for kind, classes in interfaces.items()}}
    return "[DEFAULT]\n" + "".join(f"{name} = {','.join(values)}\n" for name, values in enabled.items())


@contextlib.contextmanager
def servers(kind: str) -> Iterator[tuple[str, str]]:
    """Make a database of ``kind`` and a virtual host of RabbitMQ; yield their URLs."""
    with temporary_database(kind) as database, temporary_vhost() as transport:
        yield database, transport


@contextlib.contextmanager
def running(kind: str, folder: Path, text: str = "", types: Mapping[str, type[HardwareType]] | None = None,
            inspect_interfaces: Mapping[str, type[Interface]] | None = None,
            before: Callable[[sa.Engine], Any] | None = None) -> Iterator[SeparateProcesses]:
    """Run the service with a database of ``kind``; see ``installations.running``."""
    with servers(kind) as (database, transport), contextlib.ExitStack() as stack:
        if before is not None:
            with engine(database) as empty:
                before(empty)
        migration.upgrade(database)
        text = install_plugins(folder / "plugins", types or {}, inspect_interfaces or {}) + options(text)
        file = Cluster(folder, database, transport, text).configuration(CONDUCTOR)
        conf = service.prepare_config([], config_files=[file])
        # What tests see of the configuration has not the hooks that run those of tests.
        hooks = ",".join([*loader.parse(conf.inspector.hooks), *told.HOOKS])
        cluster = Cluster(folder, database, transport, f"{text}\n[inspector]\nhooks = {hooks}\n")
        db = open_database(database)
        stack.callback(db.dispose)
        stack.callback(cluster.close)
        yield SeparateProcesses(conf, db, cluster, stack)


def refusal(kind: str, folder: Path, text: str) -> str:
    """Start both processes with a configuration with which one does not start; return what that one says."""
    with servers(kind) as (database, transport):
        migration.upgrade(database)
        cluster = Cluster(folder, database, transport, options(text))
        try:
            processes = [start_conductor(cluster), start_api(cluster, "api-1")]
            ended = wait_for("one to end", lambda: [one for one in processes if not one.is_running()])
            assert {one.status for one in ended} == {2}
            return "".join(one.text() for one in ended)
        finally:
            cluster.close()
