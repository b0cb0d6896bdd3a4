"""``/ui/``: which files are served, with which headers. ``tests/functional/ui`` has the page in a browser."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import bcrypt
import pytest
import webob

import ironic_rules
from ironic_rules.api import page
from ironic_rules.api.app import make_app
from tests.functional.api.conftest import Client

FOLDER = Path(ironic_rules.__file__).parent / "ui"
FILES = sorted(str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*") if path.is_file())
#: Bytes that a person waits for when she opens the page first, and again.
MOST_BYTES = 400 * 1024


@pytest.fixture
def served(conf, db, rpc) -> Client:
    conf.set_override("enable_ui", True, group="api")
    return Client(make_app(conf, db, rpc))


def test_it_is_off_unless_it_is_enabled(app):
    for path in ("/ui", "/ui/", "/ui/app.js"):
        app.get(path, status=404)


def test_every_file_is_served_with_its_type_and_the_strict_policy(served):
    whole = 0
    for name in FILES:
        # WebTest decodes what it receives.
        reply = webob.Request.blank(f"/ui/{name}", headers={"Accept-Encoding": "gzip"}).get_response(served.app)
        content = (FOLDER / name).read_bytes()
        whole += len(reply.body)
        assert reply.headers["Content-Type"] == page.MEDIA_TYPES["." + name.rpartition(".")[2]]
        encoded = reply.headers.get("Content-Encoding") == "gzip"
        assert encoded or len(content) < 1024
        assert (gzip.decompress(reply.body) if encoded else reply.body) == content
        assert served.get(f"/ui/{name}").body == content
        policy = reply.headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'self'; ")
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert reply.headers["X-Content-Type-Options"] == "nosniff"
    assert whole < MOST_BYTES
    assert served.get("/ui/").body == (FOLDER / "index.html").read_bytes()
    assert served.get("/ui", status=308).headers["Location"] == "ui/"


def test_a_file_that_a_browser_has_is_not_sent_again(served):
    first = served.get("/ui/app.js")
    tag = first.headers["ETag"]
    assert first.headers["Cache-Control"] == "no-cache"
    for given in (tag, f'"x", {tag}', f"W/{tag}"):
        again = served.get("/ui/app.js", headers={"If-None-Match": given}, status=304)
        assert (again.body, again.headers["ETag"]) == (b"", tag)
    packed = served.get("/ui/app.js", headers={"Accept-Encoding": "gzip", "If-None-Match": tag}, status=200)
    assert packed.headers["ETag"] != tag
    assert served.get("/ui/app.js", headers={"Accept-Encoding": "br, gzip;q=0"}).headers["ETag"] == tag
    head = served.head("/ui/app.js")
    assert (head.body, head.headers["Content-Length"]) == (b"", str(len(first.body)))


@pytest.mark.parametrize("path", [
    "/ui/../conf/api.py", "/ui/%2e%2e/conf/api.py", "/ui/..%2fconf%2fapi.py", "/ui//etc/passwd", "/ui/views",
    "/ui/views/", "/ui/views/../../service.py", "/ui/__init__.py",
    "/ui/app.js/", "/ui/APP.JS", "/ui/%00", "/ui/app.js%00.html"])
def test_no_path_leads_to_anything_else(served, path):
    reply = served.get(path, status=404)
    assert b"import" not in reply.body
    assert "Content-Security-Policy" in reply.headers or not path.startswith("/ui/")


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_files_are_only_read(served, method):
    assert served.request("/ui/app.js", method=method, status=405).headers["Allow"] == "GET, HEAD"


def test_files_are_public_and_data_are_not(conf, db, rpc, tmp_path):
    (tmp_path / "users").write_text(f"admin:{bcrypt.hashpw(b'secret', bcrypt.gensalt(4)).decode()}\n")
    conf.set_override("enable_ui", True, group="api")
    conf.set_override("auth_strategy", "http_basic")
    conf.set_override("http_basic_auth_user_file", str(tmp_path / "users"))
    client = Client(make_app(conf, db, rpc))

    assert client.get("/ui/").status_int == 200
    for path in ("/v1/nodes", "/v1/node_states", "/uix", "/ui.json"):
        client.get(path, status=401)


#: Calls that could execute data, keep credentials, or call another host.
FORBIDDEN = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|srcdoc|localStorage|sessionStorage"
    r"|document\.cookie|<style|\sstyle=|\son\w+=|https?://(?!www\.w3\.org/2000/svg)")


def test_no_file_executes_data_keeps_credentials_or_calls_another_host():
    found = [f"{name}:{number}: {match[0]}" for name in FILES if name.endswith((".js", ".html", ".css"))
             and not name.startswith("workbench/vendor/")
             for number, line in enumerate((FOLDER / name).read_text(encoding="utf-8").splitlines(), 1)
             if not line.lstrip().startswith(("//", "*", "/*")) for match in FORBIDDEN.finditer(line)]
    # The end of the guide is no secret, nor is the theme.
    assert found == [line for line in found if re.fullmatch(r"theme\.js:\d+: localStorage", line)]
    assert len(found) == 3
