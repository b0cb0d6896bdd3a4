"""Ten thousand nodes enter inspection at once: ``tox -e perf -- pxe`` prints how the DHCP servers answer meanwhile.

Real servers, 200 clients in a network namespace that send 20 DISCOVERs a second in all. No test fails for being slow.
"""

from __future__ import annotations

import contextlib
import itertools
import random
import secrets
import statistics
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from rich.console import Console
from rich.table import Table

from ironic_rules import context
from ironic_rules.db.tables import nodes
from ironic_rules.pxe_filter import settings
from ironic_rules.pxe_filter.service import FilterService
from ironic_rules.pxe_filter.sync import Keeper
from ironic_rules.pxe_filter.targets.base import Batch, Outcome, Target
from ironic_rules.rpc import pxe_filter as rpc
from ironic_rules.rpc import transport as rpc_transport
from tests.functional.processes import wait_for
from tests.functional.pxe_filter import kea as keas
from tests.functional.pxe_filter import site as sites
from tests.functional.pxe_filter.network import Network, network
from tests.perf.pxe import population

_KNOWN, _BURST, _CLIENTS = 100_000, 10_000, 200
_INTERVAL_S = 0.05
#: Messages a second, as several conductors send them, and how many of them at a time.
_RATE, _EACH = 1000, 10
#: Seconds during which clients still ask after the last message.
_AFTER_S = 5.0


class Burst:
    """A filter in this process, which notes when what a message allows is written.

    :param net: where its server runs; None: it has none
    """

    def __init__(self, site: sites.Site, net: Network | None, options: dict[str, Any]) -> None:
        conf = site.conf(sync_period=3600, **options)
        self.site, self._net = site, net
        self.transport = rpc_transport.get_transport(conf)
        self.keeper = Keeper(settings.from_conf(conf), site.db)
        self.service = FilterService(conf, self.keeper, self.transport)
        self.client = rpc.PXEFilterAPI(self.transport)
        self.sent: dict[str, float] = {}
        #: when the file, or the row, that allows an address was written first
        self.written: dict[str, float] = {}
        for target in self.keeper.areas[0].targets:
            self._note_writing(target)
        #: of the server
        self.pid = 0

    @property
    def net(self) -> Network:
        assert self._net is not None
        return self._net

    def close(self) -> None:
        self.service.stop()
        self.service.wait(10)
        self.keeper.close()
        self.transport.cleanup()

    def _note_writing(self, target: Target) -> None:
        apply = target.apply

        def noted(batch: Batch) -> Outcome:
            outcome = apply(batch)
            now = time.monotonic()
            pairs = itertools.chain(batch.changes, *batch.groups.values())
            for mac, allowed in pairs if outcome.problem is None else ():
                if allowed:
                    self.written.setdefault(mac, now)
            return outcome

        setattr(target, "apply", noted)  # noqa: B010  (a type checker refuses to replace a method)

    def waited(self) -> list[float]:
        """Return the seconds from each message until what it allows was written, in ascending order.

        They are 0 if the filter had read the node in the database before.
        """
        wait_for("all to be written", lambda: self.written.keys() >= self.sent.keys(), 60)
        return sorted(max(self.written[mac] - sent, 0) for mac, sent in self.sent.items())

    def send(self, macs: list[str]) -> None:
        for number, mac in enumerate(macs):
            if number % _EACH == 0:
                time.sleep(_EACH / _RATE)
            self.sent[mac] = time.monotonic()
            self.client.update_pxe_filters(context.admin(), allow=[mac])

    def measure(self) -> dict[str, Any]:
        macs = [population.address(number) for number in range(_KNOWN) if number // population.PORTS_PER_NODE % 100]
        chosen = random.Random(7).sample(macs, _BURST + _CLIENTS)
        burst, others = chosen[:_BURST], chosen[_BURST:]
        # Three of four clients belong to the burst, the others must never be served.
        clients = random.Random(8).sample(burst, _CLIENTS * 3 // 4) + others[:_CLIENTS // 4]
        ids = population.owners(self.site.url, burst)
        with self.site.db.writer() as conn:
            for start in range(0, len(ids), 500):
                conn.execute(sa.update(nodes).where(nodes.c.id.in_(ids[start:start + 500])).values(
                    provision_state="inspect wait"))
        sender = threading.Thread(target=self.send, args=(burst,))
        began = time.monotonic()
        sender.start()
        asked = list(self._ask(sender, clients, set(population.addresses_of(self.site.url, ids))))
        wait_for("everything to be in effect", lambda: not self.keeper.is_behind and self.keeper.statistics.in_force)
        return {"asked": asked, "seconds": time.monotonic() - began}

    def _ask(self, sender: threading.Thread, clients: list[str],
             allowed: set[str]) -> Iterator[tuple[bool, float, Any]]:
        """Yield (whether it had to be served, seconds since its message, answer) of every request."""
        self.net.wire.ask({"v": 4, "mac": "52:55:00:00:00:01", "wait": 0.1})
        end, number, requests = float("inf"), 0, []
        due = time.monotonic()
        chance = random.Random(9)
        while time.monotonic() < end:
            mac = chance.choice(clients)
            since = time.monotonic() - self.sent.get(mac, float("inf"))
            requests.append((mac in allowed, since))
            self.net.wire.send({"v": 4, "mac": mac, "wait": 5, "number": number})
            number += 1
            if end == float("inf") and not sender.is_alive():
                end = time.monotonic() + _AFTER_S
            due += _INTERVAL_S
            time.sleep(max(due - time.monotonic(), 0))
        for answer in self.net.wire.receive(number):
            must, since = requests[answer["number"]]
            yield must, since, answer["after"]


def milliseconds(ordered: Sequence[float]) -> list[str]:
    """Return median, 95th percentile and maximum of sorted seconds."""
    figures = statistics.median(ordered), ordered[int(len(ordered) * 0.95)], ordered[-1]
    return [f"{figure * 1000:.1f}" for figure in figures]


@contextlib.contextmanager
def burst(tmp_path: Path, server: str, policy: str, known: int = _KNOWN,
          inspecting: int | None = None) -> Iterator[Burst]:
    """Yield a filter with ``known`` addresses, and its server, which follows it.

    :param inspecting: only the first so many nodes are on inspection; None: every hundredth
    """
    with contextlib.ExitStack() as stack:
        net = stack.enter_context(network(tmp_path))
        site = stack.enter_context(sites.site(tmp_path, transport=f"ironic-rules-memory:///{secrets.token_hex(4)}"))
        population.fill(Path(site.db.engine.url.database or ""), known)
        if inspecting is not None:
            population.inspect(Path(site.db.engine.url.database or ""), inspecting)
        options: dict[str, Any] = {"deny_unknown_macs": policy == "closed"}
        if server == "kea":
            url = stack.enter_context(keas.host_database())
            population.plan_again(url)
            if policy == "open":
                population.deny(url, known)  # the filter would write them 256 groups at a time
            kea = net.kea(4, url, policy)
            options |= {"target": "kea", "kea_connection": url, "kea_control_sockets": kea.control}
            stack.callback(net.stop_keas)
        else:
            options["dnsmasq_pid_file"] = tmp_path / "dnsmasq-0" / "dnsmasq.pid"
        made = Burst(site, net, options)
        made.service.start()
        try:
            if server == "dnsmasq":
                made.pid = net.dnsmasq(site.folder).pid
            else:
                made.pid = kea.pid
            wait_for("everything to be in effect", lambda: made.keeper.statistics.in_force, 600)
            yield made
        finally:
            made.close()


@pytest.mark.servers
@pytest.mark.parametrize("policy", ["closed", "open"])
@pytest.mark.parametrize("server", ["dnsmasq", "kea"])
def test_a_mass_inspection(tmp_path: Path, server: str, policy: str) -> None:
    with burst(tmp_path, server, policy) as made:
        figures = made.measure()
        waited = made.waited()
        written, reloads = made.keeper.statistics.written, made.keeper.statistics.reloads
    delays = sorted(after for must, _, after in figures["asked"] if must and after is not None)
    late = [since for must, since, after in figures["asked"] if must and since > 2 and after is None]
    wrongly = [after for must, _, after in figures["asked"] if not must and after is not None]
    table = Table(title=f"{_BURST:,} of {_KNOWN:,} addresses are allowed at once: {server}, {policy} policy")
    for column in ("requests", "answered", "median, ms", "p95, ms", "max, ms", "refused 2 s later", "served wrongly",
                   "burst, s", "written", "reloads"):
        table.add_column(column, justify="right")
    table.add_row(str(len(figures["asked"])), str(len(delays)), f"{statistics.median(delays) * 1000:.1f}",
                  f"{delays[int(len(delays) * 0.95)] * 1000:.1f}", f"{delays[-1] * 1000:.1f}", str(len(late)),
                  str(len(wrongly)), f"{figures['seconds']:.1f}", str(written), str(reloads))
    Console(width=130).print(table)
    table = Table(title="From a message to what it allows in the file or the database, ms")
    for column in ("median", "p95", "max", "bar (p95)"):
        table.add_column(column, justify="right")
    table.add_row(*milliseconds(waited), "50")
    Console(width=130).print(table)
    assert not wrongly
