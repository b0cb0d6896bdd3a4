"""Measures the PXE filter of the reference service. Runs with the Python of that service's virtual environment.

The first argument is the number of ports, the second a new folder to work in. Prints a JSON object: seconds by case,
and ``peak_mib``.
"""

import gc
import json
import pathlib
import resource
import shutil
import sqlite3
import sys
import time
import uuid

PORTS_PER_NODE = 4


def main(count, work):
    from ironic.conf import CONF
    from oslo_db import options

    work = pathlib.Path(work)
    database, hosts = work / "reference.sqlite", work / "hosts"
    CONF([], project="ironic", default_config_files=[])
    options.set_defaults(CONF)
    CONF.set_override("connection", f"sqlite:///{database}", "database")
    CONF.set_override("dhcp_hostsdir", str(hosts), "pxe_filter")
    from ironic import objects
    from ironic.db import api, migration
    from ironic.pxe_filter import service

    migration.create_schema()
    objects.register_all()
    fill(database, count)
    manager, db = service.PXEFilterManager("bench"), api.get_instance()
    db.get_nodeinfo_list(columns=["id"], filters={})  # connects
    figures = {"first": [], "steady": [], "changed": []}
    for _ in range(3):
        shutil.rmtree(hosts, ignore_errors=True)
        hosts.mkdir()
        figures["first"].append(timed(manager._sync, db))
    for _ in range(3):
        figures["steady"].append(timed(manager._sync, db))
    for _ in range(3):
        flip(database)
        figures["changed"].append(timed(manager._sync, db))
    best = {case: min(timings) for case, timings in figures.items()}
    print(json.dumps({**best, "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


def fill(database, count):
    conn = sqlite3.connect(database)
    nodes = count // PORTS_PER_NODE
    conn.executemany(
        "insert into nodes (id, created_at, version, uuid, driver, provision_state, inspect_interface, driver_info,"
        " driver_internal_info, properties, extra)"
        " values (?, datetime('now'), '1.40', ?, 'fake-hardware', ?, 'agent', '{}', '{}', '{}', '{}')",
        ((i + 1, str(uuid.uuid4()), "inspect wait" if i % 100 == 0 else "active") for i in range(nodes)))
    conn.executemany(
        "insert into ports (id, created_at, version, uuid, address, node_id, extra, pxe_enabled, internal_info,"
        " local_link_connection) values (?, datetime('now'), '1.13', ?, ?, ?, '{}', 1, '{}', '{}')",
        ((i + 1, str(uuid.uuid4()), "52:54:{:02x}:{:02x}:{:02x}:{:02x}".format(*i.to_bytes(4, "big")),
          i // PORTS_PER_NODE + 1) for i in range(count)))
    conn.commit()
    conn.close()


def flip(database):
    """1 % of the nodes change their state."""
    conn = sqlite3.connect(database)
    conn.execute("update nodes set provision_state = case provision_state when 'inspect wait' then 'active'"
                 " else 'inspect wait' end where id % 100 = 1")
    conn.commit()
    conn.close()


def timed(work, *arguments):
    gc.collect()
    began = time.perf_counter()
    work(*arguments)
    return time.perf_counter() - began


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
