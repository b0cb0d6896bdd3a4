from __future__ import annotations

import os

import pytest

from ironic_rules.exceptions import InvalidParameterValue
from ironic_rules.hardware.redfish.driver_info import parse
from tests.walking import walking

GOOD = {"redfish_address": "https://192.0.2.1", "redfish_username": "u", "redfish_password": "p4ss"}


@walking("text, address", [
    ("https://192.0.2.1", "https://192.0.2.1"), ("192.0.2.1", "https://192.0.2.1"),
    ("bmc.example:8443/", "https://bmc.example:8443"),
    ("http://[2001:db8::1]:8000", "http://[2001:db8::1]:8000"),
    ("[fe80::1%eth0]", "https://[fe80::1%eth0]"), (" https://BMC ", "https://bmc"),
])
def test_addresses(text, address):
    assert parse({**GOOD, "redfish_address": text}, "auto").address == address


def test_what_is_not_set_has_defaults():
    found = parse({"redfish_address": "bmc"}, "session")

    assert (found.username, found.password, found.verify, found.auth_type, found.system_id) == (
        None, None, True, "session", None)


@walking("value, verify", [(True, True), (False, False), ("False", False), ("yes", True)])
def test_verification_can_be_switched(value, verify):
    assert parse({**GOOD, "redfish_verify_ca": value}, "auto").verify is verify


def test_verification_by_a_file(tmp_path):
    (tmp_path / "ca.pem").write_text("certificates")
    (tmp_path / "link").symlink_to("ca.pem")

    for name, found in (("", tmp_path), ("ca.pem", tmp_path / "ca.pem"), ("link", tmp_path / "ca.pem")):
        given = {**GOOD, "redfish_verify_ca": str(tmp_path / name)}
        assert parse(given, "auto", [str(tmp_path)]).verify == str(found)


def test_an_error_does_not_say_which_files_exist(tmp_path):
    allowed, other = tmp_path / "allowed", tmp_path / "other"
    for folder in (allowed, other):
        folder.mkdir()
        (folder / "ca.pem").write_text("certificates")
    (allowed / "leads-out").symlink_to(other / "ca.pem")
    (allowed / "circle").symlink_to(allowed / "circle")
    texts = set()

    for path in (other / "ca.pem", other / "none", other, allowed / "none", allowed / "leads-out", allowed / "circle",
                 allowed / ".." / "other" / "ca.pem", allowed / "x\0", allowed / "ca.pem" / "x", "/etc/shadow", "a"):
        with pytest.raises(InvalidParameterValue) as caught:
            parse({**GOOD, "redfish_verify_ca": str(path)}, "auto", [str(allowed)])
        texts.add(str(caught.value))

    assert len(texts) == 1
    assert "[redfish]verify_ca_allowed_paths" in texts.pop()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_cannot_be_read_is_like_one_that_is_not_there(tmp_path):
    (tmp_path / "ca.pem").write_text("certificates")
    (tmp_path / "ca.pem").chmod(0)

    with pytest.raises(InvalidParameterValue, match="in one of the folders"):
        parse({**GOOD, "redfish_verify_ca": str(tmp_path / "ca.pem")}, "auto", [str(tmp_path)])


@walking("change, key", [
    ({"redfish_address": None}, "redfish_address"), ({"redfish_address": 5}, "redfish_address"),
    ({"redfish_address": "ftp://bmc"}, "redfish_address"), ({"redfish_address": "https://"}, "redfish_address"),
    ({"redfish_address": "https://u:p4ss@bmc"}, "redfish_address"),
    ({"redfish_address": "https://bmc/redfish/v1"}, "redfish_address"),
    ({"redfish_address": "https://bmc:99999"}, "redfish_address"),
    ({"redfish_address": "https://b mc"}, "redfish_address"),
    *(({"redfish_address": f"https://{host}"}, "redfish_address") for host in (
        "0", "127.1", "0x7f000001", "2130706433", "b\xfccher.example", "\uff11\uff12\uff17.0.0.1", "bmc\\x", "bm%63",
        "bmc%1", "[::1%/x]", "192.0.2.1.", "192.0.2.01")),
    ({"redfish_address": "https://bmc?x=1"}, "redfish_address"), ({"redfish_system_id": "1"}, "redfish_system_id"),
    ({"redfish_system_id": "/a/../b"}, "redfish_system_id"), ({"redfish_system_id": "/a\nb"}, "redfish_system_id"),
    ({"redfish_username": None}, "redfish_username"), ({"redfish_password": ["p4ss"]}, "redfish_password"),
    ({"redfish_verify_ca": "/no/such/file"}, "redfish_verify_ca"),
    ({"redfish_verify_ca": "maybe"}, "redfish_verify_ca"),
    ({"redfish_verify_ca": 7}, "redfish_verify_ca"), ({"redfish_auth_type": "digest"}, "redfish_auth_type"),
])
def test_what_is_missing_or_wrong_is_named_and_no_secret_is_shown(change, key):
    with pytest.raises(InvalidParameterValue, match=f"driver_info/{key} ") as caught:
        parse({**GOOD, **change}, "auto")

    assert "p4ss" not in str(caught.value)


@walking("key, text", [
    ("redfish_systemid", "is not known; set redfish_system_id instead"),
    ("redfish_deploy_iso", "is not known; set deploy_iso instead"), ("redfish_qqqqqqqqqqqqqqqq", "is not known[.]")])
def test_keys_that_are_not_known_are_refused(key, text):
    with pytest.raises(InvalidParameterValue, match=f"^driver_info/{key} {text}"):
        parse({**GOOD, key: "x"}, "auto")


def test_settings_do_not_show_the_password():
    assert "p4ss" not in repr(parse(GOOD, "auto"))
