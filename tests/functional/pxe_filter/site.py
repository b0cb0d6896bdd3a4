"""A database with nodes and ports, folders, and a keeper that synchronizes the folders with the database."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from oslo_config import cfg

from ironic_rules import service
from ironic_rules.db import nodes, ports, tables
from ironic_rules.db.session import Database
from ironic_rules.models import states
from ironic_rules.pxe_filter import settings
from ironic_rules.pxe_filter.sync import Keeper
from tests.functional import databases
from tests.functional.processes import wait_for
from tests.functional.pxe_filter.network import verdicts


class Site:
    """The environment of an operator: nodes, and hostsdirs ``folder``, ``folders``."""

    def __init__(self, path: Path, db: Database, url: str, transport: str, count: int) -> None:
        self.path, self.db, self.url, self.transport = path, db, url, transport
        self.folders = [path / f"hosts-{number}" for number in range(count)]
        self.folder = self.folders[0]
        for folder in self.folders:
            folder.mkdir()
        self._serial = itertools.count(1)
        self._open: list[Keeper] = []

    def config_file(self, name: str = "filter", sections: str = "", **options: Any) -> Path:
        """Write a configuration file with these ``[pxe_filter]`` options."""
        file = self.path / f"{name}.conf"
        given: dict[str, Any] = {"dhcp_hostsdir": ",".join(map(str, self.folders)), **options}
        own = "\n".join(f"{key} = {value}" for key, value in given.items())
        file.write_text(f"[DEFAULT]\nhost = {name}\ntransport_url = {self.transport}\n"
                        f"[database]\nconnection = {self.url}\n[pxe_filter]\n{own}\n{sections}")
        return file

    def conf(self, **options: Any) -> cfg.ConfigOpts:
        """Return the configuration of such a file."""
        return service.prepare_config([], config_files=[str(self.config_file(**options))])

    def keeper(self, **options: Any) -> Keeper:
        """Return a keeper with its folders open, not yet synchronized."""
        keeper = Keeper(settings.from_conf(self.conf(**options)), self.db)
        keeper.open()
        self._open.append(keeper)
        return keeper

    def synced(self, **options: Any) -> Keeper:
        keeper = self.keeper(**options)
        keeper.sync(periodic=True)
        return keeper

    def close(self, keeper: Keeper) -> None:
        """Release the folders for another keeper."""
        keeper.close()
        self._open.remove(keeper)

    def close_all(self) -> None:
        for keeper in list(self._open):
            self.close(keeper)

    def mac(self) -> str:
        """Return an address that no port has."""
        number = next(self._serial)
        return f"52:54:00:{number >> 16 & 255:02x}:{number >> 8 & 255:02x}:{number & 255:02x}"

    def node(self, state: str = states.ACTIVE, *macs: str, interface: str = "agent") -> int:
        """Create a node with ports; return its id."""
        def create(conn: Any) -> int:
            row = nodes.create(conn, {
                "driver": "fake-hardware", "provision_state": state, "inspect_interface": interface})
            for mac in macs:
                ports.create(conn, {"node_id": row.id, "address": mac})
            return int(row.id)

        return self.db.write(create)

    def machine(self, state: str = states.ACTIVE) -> tuple[int, str]:
        """Create a node with one port; return its id and the address."""
        mac = self.mac()
        return self.node(state, mac), mac

    def uuid(self, node_id: int) -> str:
        with self.db.reader() as conn:
            return str(nodes.get_by_id(conn, node_id).uuid)

    def move(self, node_id: int, state: str) -> None:
        """Set the state of a node."""
        self.db.write(lambda conn: nodes.update(conn, node_id, {"provision_state": state}))

    def add_port(self, node_id: int, mac: str) -> int:
        return self.db.write(lambda conn: int(ports.create(conn, {"node_id": node_id, "address": mac}).id))

    def identify(self, node_id: int, name: str, identifier: str) -> None:
        """Set ``extra/NAME`` of the only port of a node."""
        def change(conn: Any) -> None:
            port = conn.scalar(sa.select(tables.ports.c.id).where(tables.ports.c.node_id == node_id))
            ports.update(conn, port, {"extra": {name: identifier}})

        self.db.write(change)

    def drop_port(self, mac: str) -> None:
        self.db.write(lambda conn: ports.destroy(conn, ports.get(conn, mac).id))

    def drop_node(self, node_id: int) -> None:
        self.db.write(lambda conn: nodes.destroy(conn, node_id))

    def verdicts(self) -> dict[str, bool]:
        return verdicts(self.folder)

    def reaches(self, wanted: dict[str, bool]) -> None:
        """Wait until the files have these verdicts; fail with the difference."""
        with contextlib.suppress(AssertionError):
            wait_for("verdicts", lambda: self.verdicts() == wanted, interval_s=0.002)
        assert self.verdicts() == wanted


@contextlib.contextmanager
def site(path: Path, kind: str = "sqlite", *, folders: int = 1,
         transport: str = "ironic-rules-memory://") -> Iterator[Site]:
    """Yield a site with an empty database of ``kind``."""
    with databases.migrated_database(kind) as url:
        db = databases.open_database(url)
        made = Site(path, db, url, transport, folders)
        try:
            yield made
        finally:
            made.close_all()
            db.dispose()
