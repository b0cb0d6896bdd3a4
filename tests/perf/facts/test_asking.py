"""The cost of questions about a fleet: ``tox -e perf -- facts/test_asking.py``.

100,000 nodes with 40 facts each, or ``IRONIC_RULES_PERF_FLEET``, in each kind of database that is reachable. Requests
are made in this process: the figures have all but the HTTP server. No test fails for being slow: they are for people.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from oslo_config import cfg
from oslo_db import options as db_options
from rich.console import Console
from rich.table import Table

from ironic_rules import conf as service_conf
from ironic_rules.api.app import make_app
from ironic_rules.db import conductors
from tests.fakes import FakeConductorAPI
from tests.functional import databases
from tests.functional.api.conftest import FAKE_HARDWARE, Client
from tests.perf.facts import fleet

_NODES = int(os.environ.get("IRONIC_RULES_PERF_FLEET", "100000"))
_REPEAT = 20
_TWO = quote("vendor = Dell and memory_gib >= 512")
_PAGE = "/v1/nodes?limit=100"
_FACETS = "/v1/facts/values?facts=vendor,product,bios_version"
#: Request -> its bar in ms, None: there is none.
REQUESTS: dict[str, tuple[str, int | None]] = {
    "two facts, a page of 100": (f"{_PAGE}&where={_TWO}", 60),
    "the same with three facts as columns": (f"{_PAGE}&where={_TWO}&facts=vendor,memory_gib,macs", 60),
    "two facts, few nodes": (f"{_PAGE}&where={quote('vendor = Dell and rack = rack-77')}", 60),
    "two facts, no node": (f"{_PAGE}&where={quote('gpu_count = 0 and virtual = true')}", 60),
    "two facts, one inverted": (f"{_PAGE}&where={quote('vendor = Dell and not memory_gib >= 512')}", 60),
    "a regular expression and a fact": (_PAGE + "&where=" + quote(
        "vendor contains '(?i)dell' and memory_gib >= 512"), 60),
    "a page in the order of a fact": (f"{_PAGE}&sort_key=fact:memory_gib", None),
    "a page in the order of a fact, where": (f"{_PAGE}&sort_key=fact:memory_gib&where={quote('vendor = Dell')}", None),
    "counts of a text": ("/v1/facts/vendor/values", 150),
    "counts of a number": ("/v1/facts/memory_gib/values", 150),
    "counts of a unique text": ("/v1/facts/serial/values", 150),
    "counts where": (f"/v1/facts/product/values?where={quote('vendor = Dell')}", 150),
    "table of two facts": ("/v1/facts/values?by=vendor,bios_version", None),
    "facets: fields and traits": ("/v1/facts/values?fields=provision_state,resource_class,traits", 150),
    "facets: texts": (_FACETS, 150),
    "facets: texts, where": (f"{_FACETS}&where={quote('vendor = Dell')}", None),
    "facets: numbers": ("/v1/facts/values?facts=memory_gib,nic_speed", 150),
    "a page in the order of names": (f"{_PAGE}&sort_key=natural_name", 60),
    "q: a part of a name": ("/v1/search?q=-50000", 50),
    "q: a MAC address": ("/v1/search?q=5254.0000.5000", 50),
    "q: a serial number": ("/v1/search?q=SN1050000", 50),
    "q: the value of a fact": ("/v1/search?q=Dell", 50),
}


@pytest.fixture(scope="module", params=databases.KINDS)
def app(request: pytest.FixtureRequest) -> Iterator[tuple[str, Client]]:
    conf = cfg.ConfigOpts()
    service_conf.register_opts(conf)
    db_options.set_defaults(conf)
    conf([], project="ironic-rules", default_config_files=[], default_config_dirs=[])
    with databases.migrated_database(request.param) as url:
        db = databases.open_database(url)
        try:
            fleet.fill(db.engine, _NODES)
            with db.writer() as conn:
                conductors.register(conn, "conductor-1", "", FAKE_HARDWARE, "instance-1")
            yield request.param, Client(make_app(conf, db, FakeConductorAPI()))
        finally:
            db.dispose()


def test_the_table_of_questions(app: tuple[str, Client]) -> None:
    kind, client = app
    table = Table(title=f"{kind}: questions about {_NODES} nodes, ms")
    for column in ("request", "p50", "p95", "bar"):
        table.add_column(column, justify="left" if column == "request" else "right")
    for name, (url, bar) in REQUESTS.items():
        took = []
        for _ in range(_REPEAT):
            began = time.perf_counter()
            reply = client.get(url)
            took.append((time.perf_counter() - began) * 1000)
            assert reply.status_int == 200, reply.text
        table.add_row(name, f"{statistics.median(took):.1f}", f"{statistics.quantiles(took, n=20)[-1]:.1f}",
                      "-" if bar is None else str(bar))
    Console(width=100).print(table)
