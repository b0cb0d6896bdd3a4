"""nginx and HAProxy with TLS in front of two API processes, as the documentation configures them."""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from ironic_rules.api.app import make_app
from ironic_rules.httpd.server import ApiServer
from tests.functional.authorities import Authority
from tests.functional.processes import free_port, wait_for

EXAMPLES = Path(__file__).parents[3] / "doc" / "source" / "admin" / "examples"


def nginx(folder: Path, text: str, pair: Path, key: Path) -> list[str]:
    """Return the command that runs nginx with the example."""
    text = text.replace("/etc/nginx/tls/baremetal.pem", str(pair)).replace("/etc/nginx/tls/baremetal.key", str(key))
    text = text.replace("/var/log/nginx", str(folder))
    paths = "".join(f"{kind}_temp_path {folder}/{kind};\n" for kind in (
        "client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    (folder / "nginx.conf").write_text(
        f"daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;\n"
        f"events {{}}\nhttp {{\n{paths}{text}\n}}\n")
    return ["nginx", "-c", str(folder / "nginx.conf"), "-p", str(folder)]


def haproxy(folder: Path, text: str, pair: Path, key: Path) -> list[str]:
    """Return the command that runs HAProxy with the example."""
    both = folder / "both.pem"
    both.write_bytes(pair.read_bytes() + key.read_bytes())
    text = text.replace("/etc/haproxy/tls/baremetal.pem", str(both))
    (folder / "haproxy.cfg").write_text(f"global\n    log stdout format raw local0\n{text}\n")
    return ["haproxy", "-db", "-f", str(folder / "haproxy.cfg")]


@pytest.fixture(params=["nginx", "haproxy"])
def proxy(request: pytest.FixtureRequest, conf: Any, db: Any, rpc: Any, tmp_path: Path
          ) -> Iterator[tuple[str, Authority, Callable[[], str]]]:
    """The URL of the service behind the proxy, who signed its certificate, and the log of the proxy."""
    program: Callable[..., list[str]] = globals()[request.param]
    if shutil.which(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    port, authority = free_port(), Authority(tmp_path, "authority")
    url = f"https://localhost:{port}/baremetal"
    conf.set_override("public_endpoint", url, group="api")
    conf.set_override("port", 0, group="api")
    with contextlib.ExitStack() as stack:
        servers = []
        for _ in range(2):
            servers.append(ApiServer(conf, make_app(conf, db, rpc, address="127.0.0.1")))
            servers[-1].start()
            stack.callback(servers[-1].stop)
        suffix = {"nginx": "conf", "haproxy": "cfg"}[request.param]
        text = (EXAMPLES / f"{request.param}.{suffix}").read_text()
        for example, server in zip(("127.0.0.1:6385", "127.0.0.1:6386"), servers, strict=True):
            text = text.replace(example, server.url.removeprefix("http://"))
        text, changed = re.subn(r"\blisten 443|bind :443", lambda found: found[0].replace("443", f"127.0.0.1:{port}")
                                .replace("::", ":").replace(" :127", " 127"), text)
        assert changed == 1
        log = tmp_path / "log"
        with log.open("wb") as output:
            process = subprocess.Popen(program(tmp_path, text, *authority.sign("proxy")), stdout=output,
                                       stderr=subprocess.STDOUT)
        stack.callback(process.wait, 60)
        stack.callback(process.terminate)

        def told() -> str:
            return "".join(path.read_text() for path in (log, tmp_path / "ironic-rules.log") if path.exists())

        def serves() -> bool:
            assert process.poll() is None, told()
            with contextlib.suppress(httpx.TransportError):
                return httpx.get(f"{url}/", verify=authority.context()).status_code == 200
            return False

        wait_for("the proxy", serves)
        yield url, authority, told


def test_the_service_is_used_below_a_path_of_a_proxy_with_tls(proxy: tuple[str, Authority, Callable[[], str]]) -> None:
    url, authority, told = proxy
    with httpx.Client(verify=authority.context(), headers={"X-OpenStack-Ironic-API-Version": "1.96"}) as client:
        root = client.get(f"{url}/").json()
        made = client.post(f"{url}/v1/nodes", json={"driver": "fake-hardware"})
        again = client.get(made.headers["Location"])
        page = client.get(f"{url}/v1/nodes?limit=1").json()
        # As the page does: a browser says where it comes from.
        same = client.post(f"{url}/v1/nodes", json={"driver": "fake-hardware"}, headers={
            "Origin": url.removesuffix("/baremetal"), "Sec-Fetch-Site": "same-origin"})
        other = client.post(f"{url}/v1/nodes", json={"driver": "fake-hardware"}, headers={
            "Origin": "https://elsewhere.example", "Sec-Fetch-Site": "cross-site"})
        elsewhere = client.get(f"{url.removesuffix('/baremetal')}/v1/nodes")

    assert root["default_version"]["links"][0]["href"] == f"{url}/v1/"
    assert made.status_code == 201 and made.headers["Location"].startswith(f"{url}/v1/nodes/")
    assert again.json()["uuid"] == made.json()["uuid"]
    assert page["nodes"][0]["links"][0]["href"].startswith(f"{url}/v1/nodes/")
    assert (same.status_code, other.status_code) == (201, 403)
    assert elsewhere.status_code in (404, 503)
    wait_for("the log", lambda: made.headers["X-OpenStack-Request-ID"] in told())
    assert re.search(r"127\.0\.0\.1.*POST /baremetal/v1/nodes|POST /baremetal/v1/nodes", told())
