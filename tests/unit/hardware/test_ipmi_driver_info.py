from __future__ import annotations

import pytest

from ironic_rules.exceptions import InvalidParameterValue
from ironic_rules.hardware.ipmi.tool import parse_driver_info
from tests.walking import walking

GOOD = {"ipmi_address": "192.0.2.1", "ipmi_username": "u", "ipmi_password": "p4ss"}
KEY = "ab" * 20


def test_what_is_not_set_has_defaults():
    found = parse_driver_info({"ipmi_address": "bmc.example"})

    assert (found.address, found.port, found.username, found.password) == ("bmc.example", 623, None, "")
    assert (found.privilege, found.version, found.cipher_suite, found.kg_key) == ("ADMINISTRATOR", "2.0", None, None)
    assert (found.disable_boot_timeout, found.force_boot_device, found.bridge) == (True, False, ())


def test_everything_can_be_set():
    found = parse_driver_info({**GOOD, "ipmi_address": "2001:db8::1", "ipmi_port": "6230",
                               "ipmi_priv_level": "OPERATOR",
                               "ipmi_cipher_suite": 0, "ipmi_hex_kg_key": KEY, "ipmi_disable_boot_timeout": "false"})

    assert (found.address, found.port, found.privilege) == ("2001:db8::1", 6230, "OPERATOR")
    assert (found.cipher_suite, found.kg_key, found.disable_boot_timeout) == (0, KEY, False)


@walking("change, key", [
    ({"ipmi_address": ""}, "ipmi_address"), ({"ipmi_address": "-H evil"}, "ipmi_address"),
    ({"ipmi_address": "bmc\n"}, "ipmi_address"), ({"ipmi_address": ["bmc"]}, "ipmi_address"),
    ({"ipmi_username": "-y"}, "ipmi_username"), ({"ipmi_username": 5}, "ipmi_username"),
    ({"ipmi_password": "p4ss\nmore"}, "ipmi_password"), ({"ipmi_port": 0}, "ipmi_port"),
    ({"ipmi_port": "65536"}, "ipmi_port"), ({"ipmi_port": True}, "ipmi_port"), ({"ipmi_port": "1e3"}, "ipmi_port"),
    ({"ipmi_priv_level": "root"}, "ipmi_priv_level"), ({"ipmi_protocol_version": "3"}, "ipmi_protocol_version"),
    ({"ipmi_protocol_version": "1.5", "ipmi_cipher_suite": 3}, "ipmi_protocol_version"),
    ({"ipmi_cipher_suite": "x"}, "ipmi_cipher_suite"), ({"ipmi_hex_kg_key": KEY[:-1]}, "ipmi_hex_kg_key"),
    ({"ipmi_disable_boot_timeout": "perhaps"}, "ipmi_disable_boot_timeout"),
])
def test_what_is_missing_or_wrong_is_named_and_no_secret_is_shown(change, key):
    with pytest.raises(InvalidParameterValue, match=f"driver_info/{key} ") as caught:
        parse_driver_info({**GOOD, **change})

    assert "p4ss" not in str(caught.value)
    assert KEY[:-1] not in str(caught.value)


SINGLE = {"ipmi_bridging": "single", "ipmi_target_channel": "7", "ipmi_target_address": "0x72"}
DUAL = {**SINGLE, "ipmi_bridging": "dual", "ipmi_transit_channel": 0, "ipmi_transit_address": 130}


@walking("change, options", [
    (SINGLE, "-b 7 -t 0x72"), ({**SINGLE, "ipmi_local_address": "0x20"}, "-m 0x20 -b 7 -t 0x72"),
    (DUAL, "-B 0 -T 130 -b 7 -t 0x72"), ({**DUAL, "ipmi_local_address": 32}, "-m 32 -B 0 -T 130 -b 7 -t 0x72"),
    ({"ipmi_bridging": "no"}, ""), ({"ipmi_bridging": None}, ""),
    # As in Ironic: bridging is off.
    ({**DUAL, "ipmi_bridging": "no"}, ""),
])
def test_a_bridge_becomes_options_of_ipmitool(change, options):
    assert " ".join(parse_driver_info({**GOOD, **change}).bridge) == options


@walking("change, text", [
    ({"ipmi_target_channel": "7"}, "ipmi_bridging must be single or dual with ipmi_target_channel"),
    ({"ipmi_local_address": "0x20"}, "ipmi_bridging must be single or dual with ipmi_local_address"),
    ({**SINGLE, "ipmi_bridging": "Single"}, "ipmi_bridging must be one of no, single, dual"),
    ({**SINGLE, "ipmi_bridging": True}, "ipmi_bridging must be one of"),
    ({**SINGLE, "ipmi_target_address": ""}, "ipmi_target_address is missing: ipmi_bridging is single"),
    ({**SINGLE, "ipmi_bridging": "dual"}, "ipmi_transit_channel is missing: ipmi_bridging is dual"),
    ({**DUAL, "ipmi_bridging": "single"}, "ipmi_transit_address must not be set: ipmi_bridging is single"),
    ({**SINGLE, "ipmi_target_channel": 16}, "ipmi_target_channel must be a number from 0 to 15"),
    ({**SINGLE, "ipmi_target_channel": "-7"}, "ipmi_target_channel must be a number"),
    ({**SINGLE, "ipmi_target_channel": True}, "ipmi_target_channel must be a number"),
    ({**SINGLE, "ipmi_target_address": "0x172"}, "ipmi_target_address must be a number from 0 to 255"),
    # ipmitool reads it as 8.
    ({**SINGLE, "ipmi_target_address": "010"}, "ipmi_target_address must be a number .* without leading zeros"),
    ({"ipmi_brigding": "single"}, r"ipmi_brigding is not known; did you mean ipmi_bridging\?$"),
    ({"ipmi_chassis_slot": 3}, r"ipmi_chassis_slot is not known\b"),
])
def test_a_bridge_that_would_lead_to_another_machine_is_refused(change, text):
    with pytest.raises(InvalidParameterValue, match=f"^driver_info/{text}"):
        parse_driver_info({**GOOD, **change})


@walking("address, text", [
    ("10.0.0.1:623", "must not have a port; set driver_info/ipmi_port to 623"),
    ("[2001:db8::1]:6230", "must not have a port; set driver_info/ipmi_port to 6230"),
    ("bmc.example:623", "must not have a port"), ("[2001:db8::1]", "must be a host name, or"),
    # getaddrinfo reads these as 8.0.0.1, 10.0.0.1 and 10.0.0.1.
    ("010.0.0.1", "must be a host name, or"), ("10.1", "must be a host name, or"), ("167772161", "must be a host name"),
    ("10.0.0.300", "must be a host name, or"), ("ipmi://10.0.0.1", "must be a host name, or"),
    ("10.0.0.1%eth0", "must be a host name, or"), ("fe80::1%", "must be a host name, or"),
])
def test_an_address_that_ipmitool_would_read_differently_is_refused(address, text):
    with pytest.raises(InvalidParameterValue, match=f"^driver_info/ipmi_address {text}"):
        parse_driver_info({**GOOD, "ipmi_address": address})


@walking("address", ["2001:db8::1:623", "fe80::1%eth0", "bmc-1.example", "bmc.example."])
def test_usual_addresses_are_passed_as_they_are(address):
    assert parse_driver_info({**GOOD, "ipmi_address": address}).address == address


def test_settings_do_not_show_secrets():
    text = repr(parse_driver_info({**GOOD, "ipmi_hex_kg_key": KEY}))

    assert "p4ss" not in text
    assert KEY not in text
