"""Destinations of requests: the addresses that were checked, whatever a name server says later."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import ssl
from pathlib import Path

import httpx
import pytest

from ironic_rules.exceptions import AgentSilent, InvalidParameterValue, IronicRulesError
from ironic_rules.hardware import destinations, resolver
from ironic_rules.hardware.agent import image
from ironic_rules.hardware.agent.client import AgentClient
from ironic_rules.inspection.http_get import HttpxGet
from ironic_rules.models import urls
from ironic_rules.rules import ActionError
from tests.unit.hardware.recording import serving

DENIED = (ipaddress.ip_network("127.0.0.1/32"),)
NAME = "images.example.org"
CERTIFICATE = Path(__file__).parent / f"{NAME}.pem"


@pytest.fixture
def answers(monkeypatch):
    """Name -> the answers of its name server, one after the other; the last one is repeated. Not cached."""
    known, real = {}, socket.getaddrinfo
    monkeypatch.setattr(resolver, "KEEP_S", 0.0)
    monkeypatch.setattr(resolver, "KEEP_NOTHING_S", 0.0)
    monkeypatch.setattr(resolver, "cache", resolver.Cache())

    def getaddrinfo(host, *arguments, **named):
        if host not in known:
            return real(host, *arguments, **named)
        found = known[host].pop(0) if len(known[host]) > 1 else known[host][0]
        if not found:
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 0)) for address in found]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return known


@pytest.fixture
def pair():
    """A server that may be called, on 127.0.0.2, and one that may not, on the same port of 127.0.0.1."""
    with contextlib.ExitStack() as running:
        secret = running.enter_context(serving("127.0.0.1"))
        while True:
            try:
                public = running.enter_context(serving("127.0.0.2", secret.port))
                break
            except OSError:  # in use there: by another program, or by a connection of one
                secret = running.enter_context(serving("127.0.0.1"))
        yield public, secret


def check_image(url):
    image.check_url(urls.parse(url), "/image", DENIED, 30)


def call_agent(url):
    AgentClient(url, "token", DENIED).start("deploy.x", {})


def call_service(url):
    assert HttpxGet(DENIED)(url, {}, 30) == 200


REQUESTS = [check_image, call_agent, call_service]


@pytest.mark.parametrize("request_of", REQUESTS)
def test_a_name_server_that_changes_its_answer_after_the_check_leads_nowhere_else(answers, pair, request_of):
    public, secret = pair
    answers[NAME] = [["127.0.0.2"], ["127.0.0.1"]]

    request_of(f"http://{NAME}:{public.port}")

    assert [host for _, _, host in public.asked] == [f"{NAME}:{public.port}"]
    assert secret.asked == []
    with pytest.raises(IronicRulesError if request_of is not call_service else ActionError, match=r"127\.0\.0\.1/32"):
        request_of(f"http://{NAME}:{public.port}")
    assert secret.asked == []


@pytest.mark.parametrize("request_of", REQUESTS)
def test_each_address_of_a_name_is_checked(answers, pair, request_of):
    public, secret = pair
    answers[NAME] = [["127.0.0.2", "127.0.0.1"]]

    with pytest.raises((IronicRulesError, ActionError), match=rf"http://{NAME} is in the network 127\.0\.0\.1/32"):
        request_of(f"http://{NAME}:{public.port}")

    assert (public.asked, secret.asked) == ([], [])


@pytest.mark.parametrize("request_of", REQUESTS)
def test_the_next_address_is_tried_if_one_does_not_accept_connections(answers, request_of):
    with serving("127.0.0.3") as server:
        answers[NAME] = [["127.0.0.2", "127.0.0.3"]]

        request_of(f"http://{NAME}:{server.port}")

    assert len(server.asked) == 1


@pytest.mark.parametrize("name", ["xn--bcher-kva.example", "image_server", "IMAGES.example.org."])
@pytest.mark.parametrize("request_of", REQUESTS)
def test_names_in_each_form_lead_to_their_addresses(answers, request_of, name):
    with serving("127.0.0.2") as server:
        answers[name.lower()] = [["127.0.0.2"]]

        request_of(f"http://{name}:{server.port}")

    assert [host for _, _, host in server.asked] == [f"{name.lower()}:{server.port}"]


def test_a_redirection_is_checked_like_the_url_itself(answers, pair):
    public, secret = pair
    answers[NAME] = [["127.0.0.2"]]
    for location in (f"http://127.0.0.1:{secret.port}/", f"HTTP://0:{secret.port}/", f"//0.0.0.0:{secret.port}/",
                     f"http://[::ffff:0.0.0.0]:{secret.port}/", f"http:\\\\127.0.0.1:{secret.port}/",
                     f"http://{NAME}@127.0.0.1:{secret.port}/"):
        public.location = location
        with pytest.raises(InvalidParameterValue, match="the image cannot be loaded"):
            check_image(f"http://{NAME}:{public.port}")

    assert secret.asked == []


def test_a_redirection_to_a_name_whose_answer_changes(answers, pair):
    public, secret = pair
    answers[NAME], answers["other.example.org"] = [["127.0.0.2"]], [["127.0.0.1"]]
    public.location = f"http://other.example.org:{public.port}/"

    with pytest.raises(InvalidParameterValue, match=r"http://other\.example\.org is in the network"):
        check_image(f"http://{NAME}:{public.port}")

    assert secret.asked == []


@pytest.mark.parametrize("request_of", [check_image, call_agent])
def test_the_proxies_of_the_environment_are_ignored(answers, pair, monkeypatch, request_of):
    public, secret = pair
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{secret.port}")
    answers[NAME] = [["127.0.0.2"]]

    request_of(f"http://{NAME}:{public.port}")

    assert (len(public.asked), secret.asked) == (1, [])


def test_the_certificate_is_that_of_the_name_and_not_of_the_address(answers):
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(CERTIFICATE)
    named = []
    tls.sni_callback = lambda connection, name, context: named.append(name)
    trusting = ssl.create_default_context(cafile=str(CERTIFICATE))
    with serving("127.0.0.2", tls=tls) as server:
        answers[NAME] = answers["other.example.org"] = [["127.0.0.2"]]

        def ask(host):
            url = urls.parse(f"https://{host}:{server.port}/x")
            with destinations.client(destinations.find(url, DENIED), trusting, 30) as client:
                return client.get(str(url)).status_code

        assert ask(NAME) == ask(NAME.upper()) == 200
        for host in ("other.example.org", "127.0.0.2"):
            with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
                ask(host)
    assert server.asked == [("GET", "/x", f"{NAME}:{server.port}")] * 2
    assert named == [NAME, NAME, "other.example.org", None]


def test_a_client_sends_nothing_to_another_host(pair):
    public, secret = pair
    url = urls.parse(f"http://127.0.0.2:{public.port}/")
    with (destinations.client(destinations.find(url, DENIED), ssl.create_default_context(), 30) as client,
          pytest.raises(httpx.UnsupportedProtocol)):
        client.get(f"http://127.0.0.1:{secret.port}/")

    assert secret.asked == []


def test_a_host_without_an_address(answers):
    answers[NAME] = [[]]

    with pytest.raises(AgentSilent, match="has no address"):
        call_agent(f"http://{NAME}")
    with pytest.raises(InvalidParameterValue, match="has no address"):
        check_image(f"http://{NAME}")


def test_what_others_load_may_have_a_name_that_only_they_know(conf, answers):
    answers[NAME], answers["inside.example.org"] = [[]], [["10.0.0.1", "169.254.169.254"]]

    destinations.check(conf, {"/a": f"http://{NAME}/x"})
    with pytest.raises(InvalidParameterValue) as caught:
        destinations.check(conf,
                           {"/a": "http://inside.example.org/s3cret", "/b": "http://0/s3cret", "/c": "http://10.0.0.1"})

    assert str(caught.value).startswith(
        "/a: http://inside.example.org is in the network 169.254.0.0/16 ([deploy]image_url_denied_networks)")
    assert "/b: must be a URL whose host is" in str(caught.value)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("location", ["http://xn--a.example/", "http://[", "http://a:99999999/", "http://\xe9/"])
def test_a_service_that_redirects_to_what_is_no_url_fails_the_action_or_is_not_followed(answers, location):
    with serving("127.0.0.2") as server:
        answers[NAME] = [["127.0.0.2"]]
        server.location = location

        try:
            assert HttpxGet(DENIED)(f"http://{NAME}:{server.port}", {}, 30) == 302
        except ActionError as exc:
            assert f"no answer from {NAME}:{server.port}" in str(exc)
        assert len(server.asked) == 1
