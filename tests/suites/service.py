"""The service that the suites use: an API and a conductor process, RabbitMQ, MariaDB, and tokens to be checked."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from ironic_rules.db import migration
from tests.functional.processes import Cluster
from tests.functional.separate import servers
from tests.suites import identity

#: Settings of the service that the suites are for: devstack's, with fake hardware.
CONFIGURATION = """
[DEFAULT]
enabled_hardware_types = fake-hardware
enabled_network_interfaces = noop
enabled_inspect_interfaces = fake,no-inspect
default_inspect_interface = fake
[conductor]
heartbeat_timeout = 60
"""


@contextlib.contextmanager
def running(folder: Path) -> Iterator[identity.Server]:
    """Run the service; yield the identity service, whose catalog has the service's URL."""
    with servers("mysql") as (database, transport), identity.running() as keystone:
        migration.upgrade(database)
        cluster = Cluster(folder, database, transport, CONFIGURATION + keystone.configuration())
        try:
            cluster.conductor("conductor-1")
            keystone.baremetal = cluster.api("api-1")[1]
            yield keystone
        finally:
            cluster.close()
