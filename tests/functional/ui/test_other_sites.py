"""Web pages of other sites, in Chromium: what they send to a service on 127.0.0.1, and with a name that leads there."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from tests.functional.processes import standalone
from tests.functional.ui.conftest import Visitor, launched

pytestmark = pytest.mark.slow

#: A name of the other site, which for the browser leads to the service.
NAME = "rebound.example"
#: A text/plain form sends NAME=VALUE, which can be JSON.
RULE = ('{"conditions": [], "actions": [{"action": "set-attribute", "path": "/driver_info/redfish_address", "value": "',
        '"}]}')
FORM = """<form method="post" enctype="text/plain" action="{url}/v1/rules">
<input name='{0}' value='{1}'><button>win a prize</button></form>"""
#: Sends what a page may send without asking the service, and all that it may after; returns what it can see.
ATTACKS = """async ([url, rule]) => {
    const told = [];
    for (const [method, path, mode, type] of [
        ["POST", "/v1/rules", "no-cors", "text/plain"], ["POST", "/v1/rules", "no-cors", ""],
        ["POST", "/v1/rules", "cors", "application/json"], ["DELETE", "/v1/rules", "cors", ""],
        ["POST", "/v1/continue_inspection", "no-cors", ""], ["GET", "/v1/nodes", "cors", ""],
    ]) {
        const body = method === "POST" ? new Blob([rule], {type}) : undefined;
        told.push(await fetch(url + path, {method, mode, body}).then((reply) => reply.type, (error) => "refused"));
    }
    return told;
}"""
#: Does the same from a page that the browser takes for one of the service.
AS_OWN = """async (rule) => {
    const headers = {"Content-Type": "application/json"};
    const made = await fetch("/v1/rules", {method: "POST", body: rule, headers});
    const read = await fetch("/v1/rules", {headers});
    return [made.status, read.status, await read.text()];
}"""


class _Site(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = self.server.page.encode()  # type: ignore[attr-defined]
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A service without authentication on 127.0.0.1, which has one rule."""
    with standalone(tmp_path_factory.mktemp("service")) as (_, url):
        kept = {"description": "kept", **json.loads("=".join(RULE))}
        httpx.post(f"{url}/v1/rules", json=kept, trust_env=False).raise_for_status()
        yield url


@pytest.fixture(scope="module")
def other_site(service: str) -> Iterator[str]:
    """A web server of another site, with a form that is sent to the service."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Site)
    server.page = FORM.format(*RULE, url=service)  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://localhost:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def rules(url: str) -> list[str | None]:
    return [rule["description"] for rule in httpx.get(f"{url}/v1/rules", trust_env=False).json()["rules"]]


def test_a_form_of_another_site_creates_no_rule(visit, service, other_site):
    page = visit(other_site).page
    page.goto(other_site)
    with page.expect_response(lambda reply: reply.url.startswith(service)) as sent:
        page.get_by_role("button").click()

    assert sent.value.status == 403
    assert "another site" in sent.value.text()
    headers = sent.value.request.all_headers()
    assert (headers["origin"], headers["content-type"]) == (other_site, "text/plain")
    assert json.loads(sent.value.request.post_data)["actions"]  # a rule, for a service that does not look
    assert rules(service) == ["kept"]


def test_a_script_of_another_site_changes_nothing_and_reads_nothing(visit, service, other_site):
    page = visit(other_site).page
    page.goto(other_site)

    seen = page.evaluate(ATTACKS, [service, "=".join(RULE)])

    assert set(seen) == {"opaque", "refused"}
    assert rules(service) == ["kept"]


def test_a_name_of_another_site_that_leads_to_the_service_gets_nothing(playwright_driver, service):
    address = urlsplit(service)
    rebound = f"http://{NAME}:{address.port}"
    with launched(playwright_driver, f"--host-resolver-rules=MAP {NAME} 127.0.0.1") as browser:
        page = Visitor(browser.new_context(), rebound).page
        shown = page.goto(f"{rebound}/ui/")
        assert (shown.status, "[api]allowed_hosts" in shown.text()) == (421, True)

        made, read, text = page.evaluate(AS_OWN, "=".join(RULE))

    assert (made, read) == (421, 421)
    assert "kept" not in text
    assert rules(service) == ["kept"]


def test_the_page_works_under_each_of_its_own_names(visit, service):
    for name in ("localhost", "127.0.0.1", "127.1"):
        window = visit(f"http://{name}:{urlsplit(service).port}")
        window.open("#/rules")
        made, read, text = window.page.evaluate(AS_OWN, "=".join(RULE))

        assert (made, read) == (201, 200), text
    assert rules(service) == ["kept", None, None, None]
