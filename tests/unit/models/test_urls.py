"""The syntax of URLs in data, and the addresses to which they must not lead."""

from __future__ import annotations

import ipaddress

import pytest

from ironic_rules.models import urls
from tests.hostile_urls import HOSTILE
from tests.walking import walking

DENIED = tuple(map(ipaddress.ip_network, (
    "127.0.0.0/8", "::1/128", "169.254.0.0/16", "fe80::/10", "fd00:ec2::254/128")))


@walking("text, expected", [
    ("http://192.0.2.1", ("http", None, "192.0.2.1", None, "")),
    ("HTTPS://Images.Example.ORG:8443/A/b?c=D#e", ("https", None, "images.example.org", 8443, "/A/b?c=D#e")),
    ("http://u:p%40@[2001:DB8:0::1]:80?x", ("http", "u:p%40", "2001:db8::1", 80, "?x")),
    # Python 3.13 writes such an address with the dots of IPv4.
    ("http://[::ffff:10.0.0.1]/", ("http", None, str(ipaddress.ip_address("::ffff:a00:1")), None, "/")),
    ("http://_images.example.org./", ("http", None, "_images.example.org.", None, "/")),
    ("http://image_server:8080/x", ("http", None, "image_server", 8080, "/x")),
    ("http://images/\u00fc@b", ("http", None, "images", None, "/\u00fc@b")),
])
def test_a_url_is_read(text, expected):
    found = urls.parse(text)

    assert (found.scheme, found.user, found.host, found.port, found.rest) == expected
    assert urls.parse(str(found)) == found


def test_a_url_in_its_usual_form():
    found = urls.parse("HTTPS://u@[2001:DB8:0::1]:8443/A")

    assert (str(found), found.netloc, found.shown) == (
        "https://u@[2001:db8::1]:8443/A", "[2001:db8::1]:8443", "https://[2001:db8::1]")


def test_only_the_named_schemes_are_accepted():
    assert urls.parse("TFTP://boot/x", ("http", "tftp")).scheme == "tftp"
    with pytest.raises(ValueError, match="must be a URL that begins with http:// or https://"):
        urls.parse("tftp://boot/x")


@walking("value", [None, 5, [], "", "http", "x" * 5000, "http://a/" + "x" * 5000])
def test_what_is_no_url(value):
    assert urls.problem(value)
    assert not urls.is_meant(value) or "4096" in urls.problem(value)


@walking("text", HOSTILE)
def test_each_hostile_url_is_refused_when_it_is_read_or_for_its_address(text):
    try:
        found = urls.parse(text.format(port=8080))
    except ValueError as exc:
        assert "\n" not in str(exc)
        return
    assert found.known_addresses
    assert all(urls.refused_network(ipaddress.ip_address(address), DENIED) for address in found.known_addresses)


@walking("text", [
    "10.0.0.1", "192.168.1.1", "100.64.0.1", "198.18.0.1", "fd00::1", "2001:db8::1", "::ffff:10.0.0.1",
    "64:ff9b::10.0.0.1", "2002:a00:1::1", "128.0.0.1", "126.255.255.255", "1.0.0.1", "::2:127.0.0.1",
])
def test_addresses_of_private_and_public_networks_are_not_refused(text):
    assert urls.refused_network(ipaddress.ip_address(text), DENIED) is None


@walking("text, network", [
    ("0.0.0.0", "0.0.0.0/8"), ("::", "::/128"), ("::ffff:0.0.0.0", "0.0.0.0/8"), ("224.0.0.1", "224.0.0.0/4"),
    ("ff02::1", "ff00::/8"), ("255.255.255.255", "255.255.255.255/32"), ("64:ff9b::0.0.0.0", "0.0.0.0/8"),
])
def test_addresses_without_a_server_are_refused_even_if_no_network_is_denied(text, network):
    found = urls.refused_network(ipaddress.ip_address(text), ())

    assert (str(found), urls.has_servers(found)) == (network, False)


@walking("text", ["127.0.0.1", "::1", "::ffff:127.0.0.1", "169.254.169.254", "fe80::1"])
def test_what_the_operator_does_not_deny_may_be_loopback(text):
    assert urls.refused_network(ipaddress.ip_address(text), ()) is None
    assert urls.has_servers(urls.refused_network(ipaddress.ip_address(text), DENIED))
