"""The hosts that ``api-call`` may use, its requests, and how they are sent."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from ironic_rules import rules
from ironic_rules.exceptions import ConfigurationError, RuleFailed
from ironic_rules.inspection.http_get import MAX_ANSWER_BYTES, HttpxGet
from ironic_rules.rules.limits import AllowedHosts
from tests.unit.rules import world
from tests.walking import walking


def call(**args: Any) -> dict[str, Any]:
    return {"op": "api-call", "args": {"url": "https://cmdb.example.org/", **args}}


def test_it_is_off_by_default() -> None:
    for url in ("https://cmdb.example.org/", "https://cmdb.example.org/{inventory[hostname]}"):
        problem, = rules.validate(world.rule(actions=[call(url=url)]))
        assert problem.where == "/actions/0/args/url"
        assert "[inspection_rules]api_call_allowed_hosts is empty" in problem.text


def test_a_rule_fails_where_nothing_sends_its_request() -> None:
    with pytest.raises(RuleFailed, match="api-call is disabled"):
        rules.evaluate(world.compiled(world.rule(actions=[call()])), world.facts())


def test_it_asks_what_the_rule_says(web: world.Web) -> None:
    args = {"url": "https://cmdb.example.org/{item}?cpus={inventory[cpu][count]}", "timeout": 2,
            "headers": {"X-Serial": "{inventory[system_vendor][serial_number]}"}}
    world.run(world.rule(actions=[{**call(**args), "loop": ["a", "b"]}]))
    assert web.asked == [
        (f"https://cmdb.example.org/{name}?cpus=40", {"X-Serial": "ABC1234"}, 2.0) for name in "ab"
    ]


def test_requests_are_counted_over_all_actions_of_a_rule(web: world.Web) -> None:
    with pytest.raises(RuleFailed, match="more than 16 requests"):
        world.run(world.rule(actions=[call()] * 17))
    assert len(web.asked) == 16


def test_each_rule_has_its_own_count(web: world.Web) -> None:
    world.run(*(world.rule(actions=[call()] * 16) for _ in range(2)))
    assert len(web.asked) == 32


def test_a_condition_that_does_not_hold_asks_nothing(web: world.Web) -> None:
    world.run(world.rule(conditions=[{"op": "eq", "args": [1, 2]}], actions=[call()]))
    assert web.asked == []


@pytest.mark.parametrize("url", [
    "https://cmdb.example.org/s3cret?token=s3cret", "https://silent.example.org/s3cret", "https://s3cret.example.org/",
    "https://s3cret@cmdb.example.org/", "ftp://cmdb.example.org/s3cret", "https://cmdb.example.org/../s3cret",
    "https://cmdb.example.org/status/404?s3cret",
])
def test_no_text_has_more_of_the_url_than_its_host(web: world.Web, url: str) -> None:
    action = call(url=url, headers={"X-Token": "s3cret"})
    said = [str(problem) for problem in world.validate(world.rule(actions=[action]))]
    if not said:
        try:
            world.run(world.rule(actions=[action]))
        except RuleFailed as exc:
            said.append(str(exc))
    assert "s3cret" not in "".join(said)


@walking("entry", ["", "http://cmdb", "cmdb/", "cmdb:0", "cmdb:65536", "cmdb:x", "a b", "*", "[::1",
                                   "[1.2]:x", "[cmdb]:80:80", "1:2:3"])
def test_what_is_no_host_stops_the_start(entry: str) -> None:
    with pytest.raises(ConfigurationError, match="neither a host nor host:port"):
        AllowedHosts.of([entry, "fine"])


@walking("entry, url", [
    ("CMDB", "http://cmdb/"), (" cmdb ", "http://cmdb"), ("2001:db8::1", "https://[2001:db8:0::1]/"),
    ("[2001:db8::1]", "https://[2001:db8::1]:443/"), ("cmdb:8080", "http://cmdb:8080?x"),
])
def test_an_allowed_host_may_be_called(entry: str, url: str) -> None:
    assert AllowedHosts.of([entry]).check(url) == url


@walking("url", ["http\u017f://cmdb/", "HTTP\u017f://cmdb/", "http://cmd\u1e05/", "ftp://cmdb/"])
def test_what_only_looks_like_an_allowed_url_is_refused(url: str) -> None:
    with pytest.raises(ValueError):
        AllowedHosts.of(["cmdb"]).check(url)


class Handler(BaseHTTPRequestHandler):
    """A small site; ``asked`` of the server has the paths and headers of the requests."""

    def do_GET(self) -> None:
        self.server.asked.append((self.path, dict(self.headers)))  # type: ignore[attr-defined]
        if self.path == "/redirect":
            self.send_response(302)
            self.send_header("Location", "/elsewhere")
        else:
            self.send_response(200)
            self.send_header("Set-Cookie", "a=b")
        self.end_headers()
        if self.path == "/endless":
            self._talk()
        else:
            self.wfile.write(b"content that is not read")

    def _talk(self) -> None:
        try:
            while not self.server.stopping.wait(0):  # type: ignore[attr-defined]
                self.wfile.write(b"x" * MAX_ANSWER_BYTES)
        except OSError:
            self.server.hung_up.set()  # type: ignore[attr-defined]

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def site() -> Iterator[Any]:
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.asked, server.stopping, server.hung_up = [], threading.Event(), threading.Event()
    server.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.stopping.set()
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_request_is_a_get_with_its_headers(site: Any) -> None:
    assert HttpxGet()(f"{site.url}/a?b=c", {"X-Token": "t"}, 5) == 200
    (path, headers), = site.asked
    assert path == "/a?b=c"
    assert (headers["X-Token"], headers["User-Agent"]) == ("t", "ironic-rules")


def test_redirects_are_not_followed(site: Any) -> None:
    assert HttpxGet()(f"{site.url}/redirect", {}, 5) == 302
    assert [path for path, _ in site.asked] == ["/redirect"]


def test_requests_share_no_cookies_and_no_proxy(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    get = HttpxGet()
    assert [get(f"{site.url}/", {}, 5), get(f"{site.url}/", {}, 5)] == [200, 200]
    assert [headers.get("Cookie") for _, headers in site.asked] == [None, None]


def test_an_endless_answer_is_not_read_to_its_end(site: Any) -> None:
    assert HttpxGet()(f"{site.url}/endless", {}, 5) == 200
    assert site.hung_up.wait(60)


def test_nobody_there_is_told_without_the_path(site: Any) -> None:
    site.shutdown()
    site.server_close()
    with pytest.raises(rules.ActionError) as caught:
        HttpxGet()(f"{site.url}/s3cret", {}, 5)
    assert str(caught.value) == f"no answer from 127.0.0.1:{site.server_port} (ConnectError)"
    assert caught.value.__context__ is None


def test_silence_ends_with_the_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        with pytest.raises(rules.ActionError, match=rf"127.0.0.1:{port} did not answer within 0.05 seconds"):
            HttpxGet()(f"http://127.0.0.1:{port}/", {}, 0.05)


def test_a_dry_run_asks_nobody_and_says_whom_it_would(web: world.Web) -> None:
    given = world.facts()
    given.dry_run = True
    asking = {**call(url="https://cmdb.example.org/{item}?token=s3cret", headers={"X": "s3cret"}), "loop": ["a", "b"]}
    tagging = {"op": "set-attribute", "args": ["/extra/asked", True]}

    trace, = world.run(world.rule(actions=[asking, tagging]), given=given, explain=True)

    assert web.asked == []
    assert [(action.op, action.times, action.notes) for action in trace.actions] == [
        ("api-call", 2, ("would send GET to cmdb.example.org",) * 2), ("set-attribute", 1, ())]
    assert {"op": "add", "path": "/extra/asked", "value": True} in trace.changes["node"]
    # As in the rule itself, which only administrators may try and see.
    assert "https://cmdb.example.org/a?token=s3cret" in [given.value for given in trace.actions[0].runs[0]]


def test_a_dry_run_of_a_sensitive_rule_does_not_say_whom_it_would_ask(web: world.Web) -> None:
    given = world.facts()
    given.dry_run = True

    trace, = world.run(world.rule(sensitive=True, actions=[call()]), given=given, explain=True)

    assert (web.asked, trace.matched, trace.actions) == ([], True, ())


def test_a_dry_run_in_the_preprocess_phase_asks_nobody(web: world.Web) -> None:
    given = world.facts()
    given.dry_run = True

    trace, = world.run(world.rule(phase="preprocess", actions=[call()]), given=given, phase="preprocess", explain=True)

    assert web.asked == []
    assert trace.actions[0].notes == ("would send GET to cmdb.example.org",)


@pytest.mark.parametrize(("actions", "reason"), [
    ([call()] * 17, "more than 16 requests"),
    ([call(url="https://cmdb.example.org/{inventory[hostname]}/{inventory[pip]}")], r"\{inventory\[pip\]\} is missing"),
    ([call(url="https://cmdb.example.org/{inventory[system_vendor][manufacturer]}")], "white space"),
])
def test_what_would_fail_fails_in_a_dry_run(web: world.Web, actions: list[dict[str, Any]], reason: str) -> None:
    given = world.facts()
    given.dry_run = True

    with pytest.raises(RuleFailed, match=reason):
        world.run(world.rule(actions=actions), given=given, explain=True)

    assert web.asked == []


def test_the_trace_of_a_failed_dry_run_says_what_came_before(web: world.Web) -> None:
    given = world.facts()
    given.dry_run = True

    with pytest.raises(RuleFailed) as caught:
        world.run(world.rule(actions=[call(), {"op": "fail", "args": ["no"]}]), given=given, explain=True)

    action, = caught.value.traces[-1].actions
    assert action.notes == ("would send GET to cmdb.example.org",)


@pytest.mark.parametrize("dry_run", [False, True])
def test_the_trace_of_a_failed_sensitive_rule_has_no_actions(web: world.Web, dry_run: bool) -> None:
    given = world.facts()
    given.dry_run = dry_run

    with pytest.raises(RuleFailed) as caught:
        world.run(world.rule(sensitive=True, actions=[call(), {"op": "fail", "args": ["no"]}]), given=given,
                  explain=True)

    assert caught.value.traces[-1].actions == ()
