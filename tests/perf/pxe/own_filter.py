"""Measures this project's PXE filter, as ``reference_filter.py`` does the other one: same arguments, same output."""

from __future__ import annotations

import contextlib
import gc
import json
import pathlib
import resource
import shutil
import sqlite3
import subprocess
import sys
import time

import ironic_rules.cmd  # noqa: F401  isort: skip
from oslo_config import cfg

from ironic_rules import service
from ironic_rules.db import migration
from ironic_rules.pxe_filter import settings
from ironic_rules.pxe_filter.sync import Keeper
from tests.perf.pxe import population


def main(count: int, work: pathlib.Path) -> None:
    hosts, database = work / "hosts", work / "own.sqlite"
    file = work / "filter.conf"
    file.write_text(f"[DEFAULT]\ntransport_url = ironic-rules-memory://\n[database]\nconnection = sqlite:///{database}\n"
                    f"[pxe_filter]\ndhcp_hostsdir = {hosts}\n")
    conf = service.prepare_config([], config_files=[str(file)])
    migration.upgrade(f"sqlite:///{database}")
    # In a separate process: a hundred thousand rows must not count as the filter's memory.
    subprocess.run([sys.executable, "-m", "tests.perf.pxe.population", str(database), str(count)], check=True)
    figures: dict[str, list[float]] = {"first": [], "steady": [], "changed": []}
    ratios = []
    for _ in range(3):
        shutil.rmtree(hosts, ignore_errors=True)
        hosts.mkdir()
        keeper = keeper_of(conf)
        began = time.process_time()
        figures["first"].append(timed(keeper))
        used_s = time.process_time() - began
        ratios.append(used_s / raw(database, hosts, work / "raw"))
    keeper._read_all_at = None
    keeper.sync(periodic=True)  # reads all ports again, which needs the most memory
    for _ in range(3):
        figures["steady"].append(timed(keeper))
    for _ in range(3):
        population.flip(database)
        figures["changed"].append(timed(keeper))
    best = {case: min(timings) for case, timings in figures.items()}
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({**best, "raw": min(ratios), "peak_mib": peak_mib}))


def raw(database: pathlib.Path, hosts: pathlib.Path, copy: pathlib.Path) -> float:
    """Select all ports, and write files with the content that the filter has written; return the processor seconds."""
    contents = [(file.name, file.read_text()) for file in hosts.glob("[!.]*")]
    shutil.rmtree(copy, ignore_errors=True)
    copy.mkdir()
    gc.collect()
    began = time.process_time()
    with contextlib.closing(sqlite3.connect(database)) as conn:
        after = 0
        while page := conn.execute("SELECT id, address, node_id FROM ports WHERE id > ? ORDER BY id LIMIT 10000",
                                   (after,)).fetchall():
            after = page[-1][0]
    for name, content in contents:
        (copy / ".new").write_text(content)
        (copy / ".new").rename(copy / name)
    return time.process_time() - began


def keeper_of(conf: cfg.ConfigOpts) -> Keeper:
    keeper = Keeper(settings.from_conf(conf), service.make_database(conf))
    keeper.open()
    return keeper


def timed(keeper: Keeper) -> float:
    gc.collect()
    began = time.perf_counter()
    keeper.sync(periodic=True)
    return time.perf_counter() - began


if __name__ == "__main__":
    main(int(sys.argv[1]), pathlib.Path(sys.argv[2]))
