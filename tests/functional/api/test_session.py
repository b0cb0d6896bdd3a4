"""``/ui/session``: passwords of users go to the identity service, which is asked seldom enough."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import webtest
from keystonemiddleware.opts import list_auth_token_opts
from oslo_config import cfg

from ironic_rules import service
from ironic_rules.api.page import Session
from ironic_rules.exceptions import ConfigurationError
from tests.functional.rows import identity
from tests.walking import walking

ADMIN = {"user": "admin", "password": identity.password_of("admin"), "project": "p"}
PATH = "/ui/session"
OMITTED = object()
OF_SYSTEM = {"system": True, "project": OMITTED, "project_domain": "Default"}


def below(environ: dict[str, Any], start_response: Any) -> list[bytes]:
    start_response("404 Not Found", [("Content-Type", "text/plain"), ("Content-Length", "0")])
    return []


def configured(folder: Path, text: str, *, on: bool = True) -> cfg.ConfigOpts:
    file = folder / "session.conf"
    file.write_text(f"{text}\n[DEFAULT]\ntransport_url = ironic-rules-memory://\n")
    conf = service.prepare_config([], config_files=[str(file)])
    conf.set_override("ui_password_login", on, group="api")
    for group, options in list_auth_token_opts():
        conf.register_opts(options, group=group)
    return conf


@pytest.fixture
def app(tmp_path: Path) -> Iterator[webtest.TestApp]:
    with identity.configuration() as keystone:
        yield webtest.TestApp(Session(below, configured(tmp_path, keystone)))


def text_of(reply: Any) -> str:
    return str(json.loads(reply.json["error_message"])["faultstring"])


def test_a_password_becomes_the_token_of_its_user(app: webtest.TestApp) -> None:
    assert app.get(PATH).json == {"password": True}
    reply = app.post_json(PATH, ADMIN)
    assert reply.json == {"token": "admin"}
    assert reply.headers["Cache-Control"] == "no-store"
    of_system = {"user": "reader", "password": identity.password_of("reader"), "system": True}
    assert app.post_json(PATH, of_system).json == {"token": "reader"}
    assert app.get("/ui/", status=404).body == b""


def test_wrong_passwords_are_refused_and_wait_after_some_of_them(tmp_path: Path) -> None:
    now = [1000.0]
    with identity.configuration() as keystone:
        app = webtest.TestApp(Session(below, configured(tmp_path, keystone), clock=lambda: now[0]))
        wrong = {**ADMIN, "password": "guess"}
        for _ in range(5):
            reply = app.post_json(PATH, wrong, status=401)
            assert "does not accept" in text_of(reply)
            assert "WWW-Authenticate" not in reply.headers
        assert "wrong passwords" in text_of(app.post_json(PATH, ADMIN, status=429))
        now[0] += 1.0
        assert app.post_json(PATH, ADMIN).json == {"token": "admin"}


@walking("change, pointer", [
    ({"password": None}, "/password"), ({"user": ""}, "/user"), ({"user": 5}, "/user"), ({"more": 1}, "/more"),
    ({"system": True}, "/project"), ({"system": "yes"}, "/system"), (OF_SYSTEM, "/project_domain"),
    ({"user_domain": "x" * 5000}, "/user_domain")])
def test_what_is_wrong_is_named(app: webtest.TestApp, change: dict[str, Any], pointer: str) -> None:
    given = {name: value for name, value in {**ADMIN, **change}.items() if value is not OMITTED}
    assert pointer in text_of(app.post_json(PATH, given, status=400))


def test_only_json_of_some_kilobytes_is_read(app: webtest.TestApp) -> None:
    body = json.dumps(ADMIN).encode()
    app.post(PATH, b"[]", content_type="application/json", status=400)
    app.post(PATH, b"{", content_type="application/json", status=400)
    app.post(PATH, b" " * 20_000 + body, content_type="application/json", status=400)
    assert app.delete(PATH, status=405).status_int == 405


def test_an_identity_service_that_is_away_is_no_wrong_password(tmp_path: Path) -> None:
    with identity.configuration() as keystone:
        conf = configured(tmp_path, keystone)
    reply = webtest.TestApp(Session(below, conf)).post_json(PATH, ADMIN, status=503)
    assert reply.headers["Retry-After"]


def test_it_needs_keystone(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="ui_password_login needs"):
        Session(below, configured(tmp_path, "[DEFAULT]\nauth_strategy = noauth\n"))


def test_it_is_off_unless_it_is_wanted(tmp_path: Path) -> None:
    app = webtest.TestApp(Session(below, configured(tmp_path, "[DEFAULT]\nauth_strategy = noauth\n", on=False)))
    assert app.get(PATH).json == {"password": False}
    assert "ui_password_login" in text_of(app.post_json(PATH, ADMIN, status=404))
