from __future__ import annotations

import pytest

from ironic_rules.models import addresses
from tests.walking import walking


@walking("text", ["52:54:00:12:34:ab", "52:54:00:12:34:AB", "52-54-00-12-34-ab"])
def test_normalize_gives_one_form(text):
    assert addresses.normalize_mac(text) == "52:54:00:12:34:ab"


@walking("text", [
    "52:54:00:12:34:ab\n", " 52:54:00:12:34:ab", "52:54:00:12:34", "52:54:00:12:34:ab:cd", "5254.0012.34ab", "", "../x",
    "52:54:00:12:34:gg", "٥2:54:00:12:34:ab", "52:54:00:12:34:*", None, 5,
    "01:00:5e:00:00:01", "ff:ff:ff:ff:ff:ff", "00:00:00:00:00:00",
])
def test_normalize_refuses_everything_else(text):
    with pytest.raises(ValueError, match="address"):
        addresses.normalize_mac(text)
    assert not addresses.is_mac(text)


@walking("text, expected", [
    ("01-52-54-00-12-34-ab", "52:54:00:12:34:ab"), ("52:54:00:12:34:ab", "52:54:00:12:34:ab"),
    ("20-7c-fe-90-29-26-52", "7c:fe:90:29:26:52"), ("7f-52-54-00-12-34-ab", None), ("20:7c-fe-90-29-26-52", None),
    ("nonsense", None), (None, None),
])
def test_from_pxelinux_reads_both_forms(text, expected):
    assert addresses.mac_from_pxelinux(text) == expected


@walking("text, expected", [
    ("A0:00:02:20:fe:80:00:00:00:00:00:00:7C:fe:90:03:00:29:26:52", "7c:fe:90:29:26:52"),
    ("a0-00-02-20-fe-80-00-00-00-00-00-00-7c-fe-90-03-00-29-26-52", "7c:fe:90:29:26:52"),
    ("7c:fe:90:03:00:29:26:52", "7c:fe:90:29:26:52"), ("7c:fe:90:29:26:52", None),
    ("7c:fe:90:03:00:29:26:52\n", None), ("7c:fe:90:03:00:29:26", None), ("", None), (None, None), (5, None),
])
def test_an_infiniband_port_has_a_mac_address(text, expected):
    assert addresses.mac_of_infiniband(text) == expected


@walking("infiniband", [False, True])
@walking("text, expected, with_infiniband", [
    ("52-54-00-12-34-AB", "52:54:00:12:34:ab", "52:54:00:12:34:ab"),
    ("a0:00:02:20:fe:80:00:00:00:00:00:00:7c:fe:90:03:00:29:26:52", None, "7c:fe:90:29:26:52"),
    ("a0:00:02:20:fe:80:00:00:00:00:00:00:7d:fe:90:03:00:29:26:52", None, None),
    ("01:00:5e:00:00:01", None, None), ("", None, None), (None, None, None),
])
def test_what_an_interface_is_known_by(text, expected, with_infiniband, infiniband):
    assert addresses.mac_of_interface(text, infiniband=infiniband) == (with_infiniband if infiniband else expected)
