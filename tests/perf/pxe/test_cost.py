"""The cost of a DISCOVER for a DHCP server, by the number of addresses, and the time until an inspection is answered.

``tox -e perf -- pxe/test_cost.py`` prints the tables. The processor time of the server is measured, so other processes
hardly matter. No test fails for being slow.
"""

from __future__ import annotations

import itertools
import secrets
import statistics
import threading
import time
from pathlib import Path

import pytest
import sqlalchemy as sa
from rich.console import Console
from rich.table import Table

from ironic_rules import context
from ironic_rules.db.tables import nodes
from ironic_rules.pxe_filter.hostsdir import Watch
from ironic_rules.pxe_filter.plan import Layout
from tests.functional.pxe_filter import site as sites
from tests.functional.pxe_filter.network import Wire
from tests.perf.pxe import population
from tests.perf.pxe.test_burst import Burst, burst, milliseconds

_CASES = [("dnsmasq", "closed", (1_000, 1_000_000)), ("kea", "closed", (1_000, 1_000_000)),
          ("kea", "open", (1_000, 1_000_000)), ("dnsmasq", "open", (1_000, 10_000, 100_000))]
#: Nodes on inspection, the same with every number of known addresses.
_INSPECTING = 50
_REQUESTS, _AT_ONCE = 600, 5
_KNOWN, _ROUNDS, _WARM_UP = 100_000, 60, 5
#: Seconds after which the filter has read the database, which it does not do in the rounds that are not its own.
_REST_S = 0.15
#: Sizes of the measurement of single messages: addresses, messages, and seconds between two messages.
_MOST, _MESSAGES, _EVERY_S = 1_000_000, 200, 0.03


def processor_s(pid: int) -> float:
    """Return the processor time that the threads of a process have used so far."""
    return sum(int(file.read_text().split()[0]) for file in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


@pytest.mark.servers
@pytest.mark.parametrize(("server", "policy", "numbers"), _CASES)
def test_the_cost_of_a_discover(tmp_path: Path, server: str, policy: str, numbers: tuple[int, ...]) -> None:
    table = Table(title=f"A DISCOVER: {server}, {policy} policy")
    for column in ("known addresses", "processor time, ms", "ratio", "median, ms"):
        table.add_column(column, justify="right")
    first = 0.0
    for number in numbers:
        folder = tmp_path / str(number)
        folder.mkdir()
        with burst(folder, server, policy, number, _INSPECTING) as made:
            macs = [population.address(one) for one in range(_INSPECTING * population.PORTS_PER_NODE)]
            made.net.wire.ask(*({"v": 4, "mac": mac, "wait": 5} for mac in macs[:2]))
            before, delays = processor_s(made.pid), []
            for start in range(0, _REQUESTS, _AT_ONCE):
                answers = made.net.wire.answers(*({"v": 4, "mac": macs[one % len(macs)], "wait": 20}
                                                  for one in range(start, start + _AT_ONCE)))
                delays += [answer["after"] for answer in answers]
            cost = (processor_s(made.pid) - before) / _REQUESTS
        assert None not in delays
        first = first or cost
        table.add_row(f"{number:,}", f"{cost * 1000:.3f}", f"{cost / first:.2f}",
                      f"{statistics.median(delays) * 1000:.1f}")
    Console(width=100).print(table)


@pytest.mark.servers
@pytest.mark.parametrize(("server", "policy"), [(server, policy) for server, policy, _ in _CASES])
def test_from_the_commit_to_the_answer(tmp_path: Path, server: str, policy: str) -> None:
    """A client that asks again and again is answered by the first request after the server knows."""
    # Each request costs dnsmasq much with the open policy, and those that wait must not be what is measured.
    pause_s = 0.05 if (server, policy) == ("dnsmasq", "open") else 0.004
    with burst(tmp_path, server, policy, _KNOWN) as made:
        made.net.wire.ask({"v": 4, "mac": "52:55:00:00:00:01", "wait": 0.1})

        def delay(node: int) -> float:
            number = (node - 1) * population.PORTS_PER_NODE
            macs = [population.address(number + one) for one in range(population.PORTS_PER_NODE)]
            with made.site.db.writer() as conn:
                conn.execute(sa.update(nodes).where(nodes.c.id == 1_000_000 + node).values(
                    provision_state="inspect wait"))
            began = time.monotonic()
            made.client.update_pxe_filters(context.admin(), allow=macs)
            return _answered(made.net.wire, macs[0], pause_s) - began

        delays = sorted([delay(2 + 7 * one + (7 * one) // 99) for one in range(_ROUNDS + _WARM_UP)][_WARM_UP:])
    table = Table(title=f"From the commit to the answer, {_KNOWN:,} known addresses: {server}, {policy} policy, ms")
    for column in ("median", "p95", "max"):
        table.add_column(column, justify="right")
    table.add_row(*milliseconds(delays))
    Console(width=100).print(table)


@pytest.mark.parametrize("policy", ["closed", "open"])
def test_from_a_message_to_the_file(tmp_path: Path, policy: str) -> None:
    """A filter at rest, and one that reads all ports while 1 % of the nodes have changed; without a server."""
    table = Table(title=f"From a message to the file, {_MOST:,} known addresses, {policy} policy, ms")
    for column in ("the filter", "median", "p95", "max", "bar (p95)"):
        table.add_column(column, justify="left" if column == "the filter" else "right")
    transport = f"ironic-rules-memory:///{secrets.token_hex(4)}"
    with sites.site(tmp_path, transport=transport) as site:
        database = Path(site.db.engine.url.database or "")
        population.fill(database, _MOST)
        made = Burst(site, None, {"deny_unknown_macs": policy == "closed"})
        made.service.start()
        syncs = made.keeper.statistics.syncs
        macs = (population.address(_MOST // 2 + 403 * number) for number in itertools.count())

        def send() -> None:
            mac = next(macs)
            made.sent[mac] = time.monotonic()
            made.client.update_pxe_filters(context.admin(), allow=[mac])
            time.sleep(_EVERY_S)

        try:
            for _ in range(_MESSAGES):
                send()
            table.add_row("at rest", *milliseconds(made.waited()), "50")
            made.sent, made.written = {}, {}
            while len(made.sent) < _MESSAGES:
                population.flip(database)
                before = syncs["full"]
                made.keeper._read_all_at = None
                made.service.look()
                while syncs["full"] == before:
                    send()
            table.add_row("reads all ports", *milliseconds(made.waited()), "50")
        finally:
            made.close()
    Console(width=100).print(table)


@pytest.mark.servers
def test_an_answer_beside_dnsmasq_alone(tmp_path: Path) -> None:
    """With the open policy, and with as many lines, in turns: the filter writes the file, and this program does.

    The client asks as soon as dnsmasq has read the file, so no wait of its own is in the figures.
    """
    with burst(tmp_path, "dnsmasq", "open", _KNOWN) as made:
        layout, folder, seen = Layout(1024), made.site.folder, Watch()
        seen.open(str(folder))
        made.net.wire.ask({"v": 4, "mac": "52:55:00:00:00:01", "wait": 0.1})

        def delay(node: int, *, alone: bool) -> float:
            number = (node - 1) * population.PORTS_PER_NODE
            macs = [population.address(number + one) for one in range(population.PORTS_PER_NODE)]
            file = folder / layout.file_of(macs[0])
            text = file.read_text()
            for mac in macs:
                text = text.replace(f"{mac},ignore\n", f"{mac}\n")
            with made.site.db.writer() as conn:
                conn.execute(sa.update(nodes).where(nodes.c.id == 1_000_000 + node).values(
                    provision_state="inspect wait"))
            time.sleep(_REST_S)
            seen.begin()
            seen.take_reads()
            began = time.monotonic()
            if alone:
                new = folder / ".new"
                new.write_text(text)
                new.rename(file)
            else:
                made.client.update_pxe_filters(context.admin(), allow=macs)
            while not seen.take_reads()[file.name] and file.name not in seen.doubtful:
                seen.wait(1)
            [answer] = made.net.wire.answers({"v": 4, "mac": macs[0], "wait": 20})
            assert answer["offered"], (node, alone)
            return time.monotonic() - began

        chosen = [2 + 7 * one + (7 * one) // 99 for one in range(_ROUNDS + _WARM_UP)]
        delays = [(delay(node, alone=False), delay(node + 12_000, alone=True)) for node in chosen][_WARM_UP:]
        seen.close()
    table = Table(title=f"From the commit to the answer, {_KNOWN:,} known addresses: dnsmasq, open policy, ms")
    for column in ("who writes", "median", "p95", "max"):
        table.add_column(column, justify="left" if column == "who writes" else "right")
    medians = []
    for who, measured in zip(("the filter", "this program: dnsmasq alone"), zip(*delays, strict=True), strict=True):
        ordered = sorted(measured)
        medians.append(statistics.median(ordered))
        table.add_row(who, *milliseconds(ordered))
    table.caption = f"ratio of the medians: {medians[0] / medians[1]:.2f}"
    Console(width=100).print(table)


def _answered(wire: Wire, mac: str, pause_s: float) -> float:
    """Let the client ask until it is answered; return when the first answer came."""
    sent: list[float] = []
    arrived: list[float] = []
    is_last = threading.Event()

    def read() -> None:
        count = 0
        while not is_last.is_set() or count < len(sent):
            [answer] = wire.receive(1)
            count += 1
            if answer["offered"]:
                arrived.append(sent[answer["number"]] + answer["after"])

    def send() -> None:
        sent.append(time.monotonic())
        wire.send({"v": 4, "mac": mac, "wait": 20 * pause_s, "number": len(sent) - 1})

    reader = threading.Thread(target=read)
    reader.start()
    while not arrived:
        send()
        time.sleep(pause_s)
    is_last.set()
    send()  # the reader waits for an answer, whatever came before
    reader.join()
    return min(arrived)
