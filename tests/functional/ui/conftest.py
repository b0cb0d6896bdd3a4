"""The page at ``/ui/`` in a browser, Debian's Chromium, as people use it.

``IRONIC_RULES_TEST_SCREENSHOTS`` is a folder, such as ``doc/source/user/pictures``, that gets the pictures of the docs.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.functional.processes import PATIENCE_S, standalone, wait_for

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not in this environment")
#: Programs that are Chromium, by their names in Debian and elsewhere. The first one has no window to draw: a visitor
#: costs it a third of the processor time.
CHROMIUM = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
PATIENCE_MS = PATIENCE_S * 1000
#: Bytes of the largest body that a service accepts by default; of machines, only if it is said so.
LARGEST = 10 * 1024 * 1024
#: Makes an error of each violation of the Content-Security-Policy.
LISTEN = """addEventListener("securitypolicyviolation", (event) => {
    console.error(`CSP ${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}`);
});"""
playwright.expect.set_options(timeout=PATIENCE_MS)
AXE = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")


class Visitor:
    """A person at a browser window of her own, and what went wrong there."""

    def __init__(self, context: Any, url: str) -> None:
        self.url = url
        self.context = context
        #: Errors and warnings of the page itself, and violations of its policy, each with its place.
        self.errors: list[str] = []
        #: URL and body of all requests, and the texts of all answers.
        self.sent: list[str] = []
        self.received: list[Any] = []
        self.page = context.new_page()
        self.page.on("console", self._told)
        self.page.on("pageerror", lambda error: self.errors.append(f"{error}\n{error.stack}"))
        self.page.on("request", lambda request: self.sent.append(f"{request.url} {request.post_data or ''}"))
        self.page.on("response", lambda response: self.received.append(response))

    def _told(self, message: Any) -> None:
        # Chromium itself notes each refused request, also those of files of the page, and what it thinks of the
        # computer's graphics; axe-core warns when it is slow. LISTEN is of no URL.
        place = message.location["url"]
        is_its_own = place.startswith(f"{self.url}/ui/") and "Failed to load resource" not in message.text
        if message.type in ("error", "warning") and (is_its_own or message.text.startswith("CSP ")):
            self.errors.append(f"{message.text} at {place}:{message.location['lineNumber']}")

    def open(self, address: str) -> None:
        """Open an address of the page, ``#/fleet``, and wait until nothing is loading."""
        self.page.goto(f"{self.url}/ui/{address}")
        self.settle()

    def settle(self) -> None:
        """Wait until the view is there and nothing of it is loading."""
        self.page.locator("main h1").first.wait_for()
        playwright.expect(self.page.locator("main [aria-busy]")).to_have_count(0, timeout=PATIENCE_MS)

    def see(self, text: str | re.Pattern[str], where: str = "main") -> None:
        """Wait until ``where`` has a text."""
        playwright.expect(self.page.locator(where).first).to_contain_text(text, timeout=PATIENCE_MS)

    def check_accessibility(self) -> None:
        """Check what is shown with axe-core."""
        from axe_playwright_python.sync_playwright import Axe

        # The nodes of rules that a page keeps cost as much as the rules.
        options = {"runOnly": {"type": "tag", "values": list(AXE)}, "resultTypes": ["violations"]}
        found = Axe().run(self.page, options=options).response["violations"]
        told = [f"{each['id']} ({each['impact']}): {each['help']}: {[node['html'][:200] for node in each['nodes']]}"
                for each in found]
        assert told == [], json.dumps(told, indent=1)

    def picture(self, name: str, clip_height: int | None = None) -> None:
        """Store a picture of the window for the docs, if that is wanted."""
        folder = os.environ.get("IRONIC_RULES_TEST_SCREENSHOTS")
        if folder:
            clip = {"x": 0, "y": 0, "width": self.page.viewport_size["width"], "height": clip_height}
            self.page.screenshot(path=Path(folder) / f"{name}.png", clip=clip if clip_height else None)


@pytest.fixture(scope="package")
def playwright_driver() -> Iterator[Any]:
    """The driver that starts browsers; a process can have one only."""
    with playwright.sync_playwright() as driver:
        yield driver


@contextlib.contextmanager
def launched(driver: Any, *arguments: str) -> Iterator[Any]:
    """Run a browser with further arguments."""
    program = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if program is None:
        pytest.skip("there is no Chromium: apt-get install chromium-headless-shell")
    # Root has no sandbox, and CI is root; containers may have a small /dev/shm.
    started = driver.chromium.launch(executable_path=program,
                                     args=["--no-sandbox", "--disable-dev-shm-usage", *arguments])
    yield started
    started.close()


@pytest.fixture(scope="package")
def browser(playwright_driver) -> Iterator[Any]:
    """One browser for the tests of a process."""
    with launched(playwright_driver) as started:
        yield started


@pytest.fixture
def visit(browser) -> Iterator[Callable[..., Visitor]]:
    """Return a function that opens a window: ``visit(url, color_scheme="dark", width=360)``."""
    contexts = []

    def opened(url: str, width: int = 1100, height: int = 760, **options: Any) -> Visitor:
        context = browser.new_context(viewport={"width": width, "height": height}, locale="en-GB",
                                      timezone_id="UTC", reduced_motion="reduce", **options)
        context.set_default_timeout(PATIENCE_MS)
        context.add_init_script(LISTEN)
        contexts.append(context)
        return Visitor(context, url)

    yield opened
    for context in contexts:
        context.close()


class Demo:
    """``ironic-rules --demo``, and a client of it."""

    def __init__(self, url: str, link: str) -> None:
        self.url = url
        self.link = link
        self.client = httpx.Client(base_url=url, headers={"X-OpenStack-Ironic-API-Version": "1.96"}, timeout=60,
                                   trust_env=False)

    def inspect(self, node: str, report: dict[str, Any]) -> None:
        """Inspect a node, whose machine sends ``report``; wait for the end.

        In maintenance, because the demo lets other machines boot by itself.
        """
        def inspections() -> int:
            return len(self.client.get(f"/v1/nodes/{node}/inspections").json()["inspections"])

        def state() -> str:
            return str(self.client.get(f"/v1/nodes/{node}").json()["provision_state"])

        before = inspections()
        self.client.put(f"/v1/nodes/{node}/maintenance", json={}).raise_for_status()
        self.client.put(f"/v1/nodes/{node}/states/provision", json={"target": "inspect"}).raise_for_status()
        wait_for("the wait for the machine", lambda: state() == "inspect wait")
        self.client.post("/v1/continue_inspection", json=report).raise_for_status()
        wait_for("the end of the inspection", lambda: inspections() > before)
        self.client.delete(f"/v1/nodes/{node}/maintenance").raise_for_status()


@contextlib.contextmanager
def demonstrated(folder: Path) -> Iterator[Demo]:
    """Run the demo; yield it after it has inspected its machines."""
    config = f"[api]\nmax_anonymous_body_size = {LARGEST}\n"
    with standalone(folder, "--demo", config=config) as (process, url):
        link = process.printed(r"Why it failed: (\S+)").group(1)
        served = Demo(url, link)
        yield served
        served.client.close()


@pytest.fixture(scope="package")
def demo(tmp_path_factory) -> Iterator[Demo]:
    """The demo. Other tests may have enrolled machines in it."""
    with demonstrated(tmp_path_factory.mktemp("demo")) as served:
        yield served


@pytest.fixture
def own_demo(tmp_path) -> Iterator[Demo]:
    """The demo, with its own machines and no others."""
    with demonstrated(tmp_path) as served:
        yield served
