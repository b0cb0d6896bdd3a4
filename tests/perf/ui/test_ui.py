"""The page in a browser: ``tox -e perf -- ui`` prints how long people wait, and what a tab needs.

Chromium runs beside the service. Times are those of the browser's own clock, and medians of five; the first load begins
with an empty cache. No test fails for being slow.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from tests.functional.databases import migrated_database
from tests.functional.processes import wait_for
from tests.functional.ui.conftest import PATIENCE_MS
from tests.perf import loads
from tests.perf.client import Client
from tests.perf.processes import ours
from tests.perf.scale import population

_FLEET = int(os.environ.get("IRONIC_RULES_TEST_SCALE", "100000"))
_REPEAT = 5
_RULES, _NODES = 100, 50
#: Parts of 14 lines each, in the inventory that is large; a line is 22 pixels high.
_DISKS = 3700
_HOUR_S, _STEP_S = 3600, 20
#: Notes when something is there for the first time, and when the verdict of the workbench follows the last key.
_NOTE = """
window.noted = {};
const note = (name, isThere) => { if (noted[name] === undefined && isThere) noted[name] = performance.now(); };
new MutationObserver((changes) => {
    note("ready", document.querySelector("main h1") && !document.querySelector("main [aria-busy]"));
    note("rows", document.querySelector(".list tbody tr"));
    note("tree", document.querySelector("[role=treeitem]"));
    for (const {attributeName, target} of changes)
        if (attributeName && target.matches(".verdicts *") && !target.hasAttribute("aria-busy"))
            noted.verdict = performance.now();
}).observe(document, {childList: true, subtree: true, attributes: true, attributeFilter: ["aria-busy"]});
addEventListener("keydown", () => { noted.key = performance.now(); noted.verdict = undefined; }, true);
"""
_SCROLL = """async (box) => {
    const began = performance.now();
    let frames = 0;
    while (performance.now() - began < 2000) {
        box.scrollTop += 330;
        await new Promise(requestAnimationFrame);
        frames += 1;
    }
    return frames / (performance.now() - began) * 1000;
}"""
_RULE = """\
name: measured
conditions:
  - {op: gt, args: {values: ["{inventory[cpu][count]}", 8]}}
actions:
  - {op: set-attribute, args: {path: /extra/cpus, value: "{inventory[cpu][count]}"}}
"""
Figures = dict[str, float]
#: Limits of each figure, at most; of frames, at least.
_WANTED: Figures = {
    "first load, ms": 1000, "again, ms": 300, f"first rows of {_FLEET:,} nodes, ms": 500,
    f"verdict after a key, {_RULES} rules, ms": 200, f"matrix of {_RULES} rules and {_NODES} nodes, ms": 2000,
    "tree of 50,000 lines, ms": 300, "the same, all lines open, ms": 300, "frames per second while it scrolls": 50,
    "tab after an hour of polling, MiB": 150,
}


def _median(measure: Callable[[], float]) -> float:
    return statistics.median(measure() for _ in range(_REPEAT))


def _noted(page: Any, name: str) -> float:
    # The policy of the page allows no wait_for_function().
    wait_for(name, lambda: page.evaluate(f"noted.{name} !== undefined"), interval_s=0.02)
    return float(page.evaluate(f"noted.{name}"))


class _Tab:
    """A window with a cache of its own."""

    def __init__(self, browser: Any, endpoint: str) -> None:
        self.context = browser.new_context(viewport={"width": 1500, "height": 950}, reduced_motion="reduce")
        self.context.set_default_timeout(PATIENCE_MS)
        self.context.add_init_script(_NOTE)
        self.endpoint = endpoint
        self.page = self.context.new_page()

    def open(self, address: str, noted: str = "ready") -> float:
        """Load the page at an address; return the milliseconds until that is there."""
        self.page.goto("about:blank")
        self.page.goto(f"{self.endpoint}/ui/{address}")
        return _noted(self.page, noted)

    def __enter__(self) -> _Tab:
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()


def _loads(browser: Any, endpoint: str) -> Figures:
    def first() -> float:
        with _Tab(browser, endpoint) as tab:
            return tab.open("#/fleet")

    with _Tab(browser, endpoint) as tab:
        tab.open("#/fleet")
        return {"first load, ms": _median(first), "again, ms": _median(lambda: tab.open("#/fleet"))}


def _verdicts(browser: Any, endpoint: str, nodes: list[str]) -> float:
    """Return the milliseconds from the last key to the last verdict on all the nodes."""
    with _Tab(browser, endpoint) as tab:
        tab.open(f"#/workbench?nodes={','.join(nodes)}")
        tab.page.get_by_role("textbox", name="Rule, as YAML or JSON").focus()
        tab.page.keyboard.press("Control+A")
        tab.page.keyboard.insert_text(_RULE)
        tab.page.locator(".verdict").first.wait_for()
        tab.page.keyboard.press("Control+Home")
        tab.page.keyboard.press("End")

        def after_key() -> float:
            tab.page.keyboard.press("x")
            return _noted(tab.page, "verdict") - float(tab.page.evaluate("noted.key"))

        return _median(after_key)


def _trees(browser: Any, endpoint: str, node: str) -> Iterator[tuple[str, float]]:
    with _Tab(browser, endpoint) as tab:
        def opened() -> float:
            shown = tab.open(f"#/node/{node}", "tree")
            arrived = tab.page.evaluate("""performance.getEntriesByType("resource").findLast(
                ({name}) => name.includes("/inventory/")).responseEnd""")
            return shown - float(arrived)

        yield "tree of 50,000 lines, ms", _median(opened)
        tab.page.get_by_role("button", name="Open all").wait_for()
        yield "the same, all lines open, ms", float(tab.page.evaluate("""async () => {
            const began = performance.now();
            [...document.querySelectorAll("button")].find(({textContent}) => textContent === "Open all").click();
            await new Promise(requestAnimationFrame);
            return performance.now() - began;
        }"""))
        box = tab.page.get_by_role("tree").first
        assert int(tab.page.locator(".tree-space").first.evaluate("(space) => space.offsetHeight")) > 50_000 * 22
        yield "frames per second while it scrolls", float(box.evaluate(_SCROLL))


def _polled(browser: Any, endpoint: str) -> float:
    """Return the MiB of the process of a tab after an hour that passes in minutes."""
    before = _renderers()
    with _Tab(browser, endpoint) as tab:
        tab.page.clock.install()
        tab.open("#/fleet", "rows")
        for _ in range(_HOUR_S // _STEP_S):
            with tab.page.expect_response("**/v1/nodes?*"):
                tab.page.clock.fast_forward(_STEP_S * 1000)
        # Chromium keeps an empty process for the next tab.
        return max(kib for pid, kib in _renderers().items() if pid not in before) / 1024


def _renderers() -> dict[int, int]:
    """Return the KiB of the processes that are tabs, by their numbers; what several share is divided between them."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if b"--type=renderer" in (folder / "cmdline").read_bytes():
                lines = (folder / "smaps_rollup").read_text().splitlines()[1:]
                found[int(folder.name)] = int(dict(line.split(":", 1) for line in lines)["Pss"].split()[0])
        except (OSError, KeyError):
            continue  # it has ended
    return found


def test_the_table_of_the_page(tmp_path: Path, browser: Any) -> None:
    figures: Figures = {}
    for folder in ("few", "many"):
        (tmp_path / folder).mkdir()
    with ours(tmp_path / "few") as service, Client(service.endpoint) as client:
        loads.inspect(service.endpoint, _NODES, 4)
        loads.create_rules(service.endpoint, _RULES // 2, matches=True)
        loads.create_rules(service.endpoint, _RULES // 2, matches=False)
        nodes = [node["uuid"] for node in client.json("GET", "/v1/nodes?fields=uuid")["nodes"]]
        figures |= _loads(browser, service.endpoint)
        figures[f"verdict after a key, {_RULES} rules, ms"] = _verdicts(browser, service.endpoint, nodes[:1])
        figures[f"matrix of {_RULES} rules and {_NODES} nodes, ms"] = _verdicts(browser, service.endpoint, nodes)
        number = loads.enter_inspect_wait(service.endpoint, 1)
        report = loads.inventory(number)
        disks = report["inventory"]["disks"]
        report["inventory"]["disks"] = [{**disks[0], "serial": f"S{each}"} for each in range(_DISKS)]
        node, = client.json("GET", "/v1/nodes?provision_state=inspect%20wait&fields=uuid")["nodes"]
        path = f"/v1/nodes/{node['uuid']}"
        client.request("POST", "/v1/continue_inspection", report)
        wait_for("its inspection", lambda: client.json("GET", path)["provision_state"] == "manageable")
        figures.update(_trees(browser, service.endpoint, node["uuid"]))
    with migrated_database("sqlite") as url:
        population.fill(url, population.Size(_FLEET, 100))
        text = f"[database]\nconnection = {url}\n[conductor]\nrecovery_interval = 3600\n"
        with ours(tmp_path / "many", text) as service:
            def first_rows() -> float:
                with _Tab(browser, service.endpoint) as tab:
                    return tab.open("#/fleet", "rows")

            figures[f"first rows of {_FLEET:,} nodes, ms"] = _median(first_rows)
            figures["tab after an hour of polling, MiB"] = _polled(browser, service.endpoint)

    assert set(figures) == set(_WANTED)
    table = Table("what", "measured", "wanted", title="The page")
    for name, wanted in _WANTED.items():
        table.add_row(name, f"{figures[name]:.0f}", f"{'>=' if 'frames' in name else '<='} {wanted:.0f}")
    Console(width=100).print(table)
