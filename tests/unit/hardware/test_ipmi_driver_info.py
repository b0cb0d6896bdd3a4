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
    assert found.disable_boot_timeout


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


def test_settings_do_not_show_secrets():
    text = repr(parse_driver_info({**GOOD, "ipmi_hex_kg_key": KEY}))

    assert "p4ss" not in text
    assert KEY not in text
