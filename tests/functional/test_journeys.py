"""The four journeys of the page on the architecture are those that data take through the running service."""

from __future__ import annotations

import csv
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import ironic_rules
from ironic_rules.models import states
from ironic_rules.rpc import transport as rpc_transport
from tests.functional.processes import wait_for
from tests.functional.whole import Whole, running

PACKAGE = str(Path(ironic_rules.__file__).parent) + "/"
PAGES = Path(__file__).resolve().parents[2] / "doc" / "source" / "contributor" / "journeys"


def rows(name: str) -> dict[str, str]:
    """Return a table of the page: module -> name of the function there that commits, or nothing."""
    with (PAGES / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file, strict=True))
    assert table and table[0].keys() == {"Module", "Adds", "Commits"}
    assert all(row["Adds"].endswith(".") for row in table)
    return {row["Module"].strip("`"): row["Commits"].strip("`") for row in table}


#: Modules that every request to the API passes, in this order; and modules that those of all journeys use.
REQUEST = rows("request")
SHARED = rows("shared")


class Trace:
    """Notes in which order functions of our modules are called, and which of them commit, in all threads."""

    def __init__(self) -> None:
        self._notes = False
        self._calls = 0
        #: module -> thread that called it first
        self.modules: dict[str, int] = {}
        self.commits: set[tuple[str, str]] = set()

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        if event != "call" or frame.f_code.co_name == "<module>":
            return
        module = self._module(frame)
        self._calls += bool(module)
        if not self._notes:
            return
        if module:
            self.modules.setdefault(module, threading.get_ident())
        if module == "db.session" and frame.f_code.co_name == "write" and frame.f_back:
            self.commits.add((self._module(frame.f_back), frame.f_back.f_code.co_name))

    @staticmethod
    def _module(frame: FrameType) -> str:
        file = frame.f_code.co_filename
        return file.removeprefix(PACKAGE).removesuffix(".py").replace("/", ".") if file.startswith(PACKAGE) else ""

    def _is_idle(self) -> bool:
        before = self._calls
        time.sleep(0.3)
        return self._calls == before

    def of(self, name: str, travel: Callable[[], None]) -> None:
        """Note what is called while something travels. Begin when what was before has ended.

        :param name: the table; on a busy host, its last modules are entered long after the answer
        """
        wait_for("an idle service", self._is_idle)
        self.modules.clear()
        self.commits.clear()
        self._notes = True
        try:
            travel()
            deadline = time.monotonic() + 60
            while missing := rows(name).keys() - self.modules.keys():
                assert time.monotonic() < deadline, f"modules that are not entered: {missing}"
                time.sleep(0.05)
            wait_for("an idle service", self._is_idle)  # threads answer before they are done
        finally:
            self._notes = False


@pytest.fixture(scope="module")
def trace() -> Iterator[Trace]:
    noted = Trace()
    before = sys.getprofile()
    threading.setprofile(noted)
    sys.setprofile(noted)
    yield noted
    sys.setprofile(before)
    threading.setprofile(None)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def whole(trace: Trace, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Whole]:
    text = ("[pxe_filter]\nnotify = true\n[conductor]\nheartbeat_interval = 500\nheartbeat_timeout = 600\n"
            "step_poll_interval = 3600\n")
    with running(tmp_path_factory.mktemp("journeys"), text) as started:
        yield started


def assert_is(trace: Trace, name: str, *others: str) -> None:
    """Check a table against what was noted.

    :param others: tables of journeys that this one continues with
    """
    table, more = rows(name), {key: made for other in others for key, made in rows(other).items()}
    unnamed = [module for module in trace.modules if module not in {**table, **more, **REQUEST, **SHARED}]
    assert unnamed == [], "modules that no table of the page names"
    order = list(table)
    for thread in set(trace.modules.values()):
        # Threads are as fast as they like; in each of them, the order is that of the table. Those of the PXE filter
        # share its modules, so that which of them enters one first depends on chance.
        places = [order.index(module) for module, caller in trace.modules.items()
                  if caller == thread and module in table and not module.startswith("pxe_filter.")]
        assert places == sorted(places), [order[place] for place in places]
    assert [module for module in trace.modules if module in REQUEST] == list(REQUEST)
    assert sorted(trace.commits) == sorted((module, made) for module, made in {**more, **table}.items() if made)


def waiting(whole: Whole) -> tuple[str, dict[str, Any]]:
    """Return a node that waits for its ramdisk, and what that sends."""
    mac, body = whole.machine()
    node = whole.enroll(states.MANAGEABLE, inspect_interface="agent")
    assert whole.app.post_json("/v1/ports", {"node_uuid": node, "address": mac}).status_int == 201
    whole.provision(node, "inspect")
    return node, body


def test_an_inventory(whole: Whole, trace: Trace) -> None:
    def travel() -> None:
        node, body = waiting_now
        assert whole.callback(node, body).status_int == 200
        whole.at_rest(node)

    for _ in range(2):  # the first time, caches are filled
        waiting_now = waiting(whole)
        trace.of("inventory", travel)
    assert whole.row(waiting_now[0]).provision_state == states.MANAGEABLE
    assert_is(trace, "inventory")


def test_a_rule(whole: Whole, trace: Trace) -> None:
    rule = {"conditions": [{"op": "eq", "args": ["{node.driver}", "fake-hardware"]}],
            "actions": [{"op": "set-attribute", "args": ["/extra/rule", "ran"]}]}

    def travel() -> None:
        assert whole.app.post_json("/v1/inspection_rules", rule).status_int == 201
        node, body = waiting_now
        assert whole.callback(node, body).status_int == 200
        whole.at_rest(node)

    for _ in range(2):
        waiting_now = waiting(whole)
        trace.of("rule", travel)
    assert whole.row(waiting_now[0]).extra == {"rule": "ran"}
    assert_is(trace, "rule", "inventory")


def test_a_template(whole: Whole, trace: Trace) -> None:
    def travel() -> None:
        template = {"name": name, "steps": [{"interface": "bios", "step": "apply_configuration", "priority": 150,
                                             "args": {"settings": [{"name": "VMX", "value": "on"}]}}]}
        assert whole.app.post_json("/v1/deploy-templates", template).status_int == 201
        assert whole.ask(node, "active").status_int == 202
        whole.at_rest(node)

    for name in ("CUSTOM_FIRST", "CUSTOM_SECOND"):
        node = whole.enroll(states.AVAILABLE)
        whole.app.put_json(f"/v1/nodes/{node}/traits", {"traits": [name]})
        whole.put(node, instance_info={"traits": [name]})
        trace.of("template", travel)
    assert whole.row(node).provision_state == states.ACTIVE
    assert_is(trace, "template")


@pytest.mark.slow
def test_a_mac(whole: Whole, trace: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ironic_rules.pxe_filter import service, settings
    from ironic_rules.pxe_filter.service import FilterService
    from ironic_rules.pxe_filter.sync import Keeper

    monkeypatch.setattr(service, "_OBSERVE_S", 3600)  # what it observes in between is no part of the journey
    with whole.option("pxe_filter", "dhcp_hostsdir", [str(tmp_path)]):
        keeper = Keeper(settings.from_conf(whole.conf), whole.db)
    transport = rpc_transport.get_transport(whole.conf)
    started = FilterService(whole.conf, keeper, transport)
    started.start()
    wait_for("the filter to listen", lambda: sum(keeper.statistics.syncs.values()) >= 2, interval_s=0.002)

    def is_let_in(mac: str) -> bool:
        return f"{mac}\n" in "".join(file.read_text() for file in tmp_path.iterdir() if file.is_file())

    def travel() -> None:
        assert whole.ask(node, "inspect").status_int == 202
        wait_for("the file", lambda: is_let_in(mac), 60, 0.01)

    try:
        for _ in range(2):
            mac, _body = whole.machine()
            node = whole.enroll(states.MANAGEABLE, inspect_interface="agent")
            assert whole.app.post_json("/v1/ports", {"node_uuid": node, "address": mac}).status_int == 201
            assert not is_let_in(mac)
            time.sleep(0.5)  # the filter has begun to read the new port
            trace.of("mac", travel)
    finally:
        started.stop()
        started.wait(60)
        keeper.close()
        transport.cleanup()
    assert_is(trace, "mac")
