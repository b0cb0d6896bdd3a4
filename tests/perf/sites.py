"""A service of several processes under measurement, with its database server and its broker."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import sqlalchemy as sa

from tests.functional.brokers import temporary_vhost
from tests.functional.databases import temporary_database
from tests.functional.processes import Cluster
from tests.perf.processes import all_s, listener

#: The intervals of the service (tests of failures have shorter ones), and no PXE filters, as in one process.
_OPTIONS = ("heartbeat_interval = 10\nheartbeat_timeout = 60\nrecovery_interval = 10\n[pxe_filter]\nnotify = false\n")


@dataclass(frozen=True)
class Site:
    """The processes of a cluster, and of its servers, by name."""

    endpoint: str
    database: str
    pids: dict[str, list[int]]

    def times_s(self) -> dict[str, float]:
        """Return the processor time of each so far."""
        return {name: sum(map(all_s, pids)) for name, pids in self.pids.items()}


@contextmanager
def site(folder: Path, kind: str, apis: int, options: str = "") -> Iterator[Site]:
    """Run API processes and two conductors over RabbitMQ; clients use the first API.

    :param options: sections of the configuration file besides those of the tests
    """
    with temporary_database(kind) as database, temporary_vhost() as transport:
        cluster = Cluster(folder, database, transport, _OPTIONS + options)
        try:
            cluster.sync_database()
            conductors = [cluster.conductor(f"conductor-{number}").pid for number in range(2)]
            started = [cluster.api(f"api-{number}") for number in range(apis)]
            servers = {name: listener(urlsplit(url.partition("+")[2] if "+" in url else url).port or 0)
                       for name, url in (("database", database), ("broker", transport))}
            yield Site(started[0][1], database, {
                "API": [api.pid for api, _ in started], "conductors": conductors,
                **{name: pids for name, pids in servers.items() if pids}})
        finally:
            cluster.close()


def gather_statistics(site: Site) -> None:
    """Do what PostgreSQL does by itself once in a minute, unless autovacuum is off.

    Until then, sessions use the plans that they made when the tables were empty: reading them from end to end.
    """
    if site.database.startswith("postgresql"):
        engine = sa.create_engine(site.database, isolation_level="AUTOCOMMIT")
        with engine.connect() as conn:
            conn.exec_driver_sql("ANALYZE")
        engine.dispose()
