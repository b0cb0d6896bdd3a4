"""URLs of images that are refused before a deployment, by a web server that redirects."""

from __future__ import annotations

import http.server
import ipaddress
import threading

import pytest

from ironic_rules.exceptions import InvalidParameterValue
from ironic_rules.hardware.agent import image
from ironic_rules.models import urls
from tests.unit.hardware import dripping
from tests.unit.inspection.tasks import make_task

DENIED = [ipaddress.ip_network("127.0.0.2/32"), ipaddress.ip_network("fe80::/10")]
WHERE = "/instance_info/image_source"


class Handler(http.server.BaseHTTPRequestHandler):
    def _answer(self):
        self.server.asked.append((self.command, self.path))
        places = {"/inward": "http://127.0.0.2/x", "/mapped": "http://[::ffff:127.0.0.2]/x",
                  "/local": "http://[fe80::1]/",
                  "/loop": "/loop", "/file": "file:///etc/passwd", "/near": "/image", "/broken": "http://[x/"}
        status = 302 if self.path in places else 200 if self.path == "/image" else 404
        if self.path == "/signed":
            status = 403 if self.command == "HEAD" else 200
        self.send_response(status)
        if status == 302:
            self.send_header("Location", places[self.path])
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_HEAD = do_GET = _answer

    def log_message(self, *args):
        pass


@pytest.fixture(scope="module")
def server():
    found = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.asked = []
    thread = threading.Thread(target=found.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield found
    found.shutdown()
    found.server_close()
    thread.join()


def check(server, path):
    server.asked.clear()
    image.check_url(urls.parse(f"http://127.0.0.1:{server.server_port}{path}"), WHERE, DENIED, 30)
    return server.asked


@pytest.mark.parametrize(("path", "asked"), [
    ("/image", [("HEAD", "/image")]), ("/near", [("HEAD", "/near"), ("HEAD", "/image")]),
    ("/signed", [("HEAD", "/signed"), ("GET", "/signed")]),
])
def test_an_image_that_can_be_loaded(server, path, asked):
    assert check(server, path) == asked


def test_a_server_that_answers_with_single_bytes_takes_too_long():
    with dripping.server(dripping.HEADERS) as url, pytest.raises(InvalidParameterValue, match="takes too long"):
        image.check_url(urls.parse(url), WHERE, DENIED, 0.4)


@pytest.mark.parametrize(("path", "text"), [
    ("/inward", "http://127.0.0.2 is in the network 127.0.0.2/32"), ("/mapped", "127.0.0.2/32"),
    ("/local", "fe80::/10"), ("/loop", "more than 5 times"), ("/missing", "status 404"),
    ("/file", "where it is redirected to must be a URL that begins with http://"),
    ("/broken", "the image cannot be loaded"),
])
def test_an_image_that_can_not_or_must_not_be_loaded(server, path, text):
    with pytest.raises(InvalidParameterValue, match=f"^{WHERE}: the image cannot be loaded: ") as error:
        check(server, path)

    assert text in str(error.value)


def test_proxies_of_the_driver_are_used_unless_the_instance_has_its_own():
    driver = {"image_http_proxy": "http://proxy:1", "image_https_proxy": "proxy:2", "image_no_proxy": "a"}
    instance = {"image_source": "http://web/x.raw", "image_checksum": "d" * 64, "image_https_proxy": "http://own:3"}

    found = image.image_of_node(make_task({"driver_info": driver, "instance_info": instance}).node, md5=True)

    assert (found.proxies, found.no_proxy) == ({"http": "http://proxy:1", "https": "http://own:3"}, "a")
    assert list(found.proxy_urls()) == ["/driver_info/image_http_proxy", "/instance_info/image_https_proxy"]
    for where, info in (("driver_info", driver), ("instance_info", instance)):
        nodes = {"driver_info": driver, "instance_info": instance, where: {**info, "image_http_proxy": "ftp://x"}}
        with pytest.raises(InvalidParameterValue, match=f"/{where}/image_http_proxy: must be"):
            image.image_of_node(make_task(nodes).node, md5=True)
