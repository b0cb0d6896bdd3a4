from __future__ import annotations

import pytest

from ironic_rules.models import secrets


@pytest.mark.parametrize("name", [
    "password", "ipmi_password", "redfish_password", "BMC_Password", "auth_token", "agent_secret_token",
    "ipmi_hex_kg_key",
    "snmp_auth_key", "snmp_priv_key", "SNMP_x_key", "private_key", "ssh_private_key", "configdrive", "admin_pass",
    "secret", "image_url",
])
def test_secret_keys_are_known(name: str) -> None:
    assert secrets.is_secret_key(name)


@pytest.mark.parametrize("name", ["ipmi_username", "key", "snmp_version", "", 5, None, "ipmi_hex_kg_keys", "address",
                                  "image_source", "image_url_expires"])
def test_other_keys_are_not_secret(name: object) -> None:
    assert not secrets.is_secret_key(name)


def test_values_are_masked_at_any_depth_in_a_copy() -> None:
    value = {"a": [{"password": "x", "b": 1}], "token": {"deep": ["x"]}, "secret": 5, "c": "password=x"}
    assert secrets.mask(value) == {"a": [{"password": "******", "b": 1}], "token": "******", "secret": "******",
                                   "c": "password=x"}
    assert value["a"] == [{"password": "x", "b": 1}]


def test_null_has_nothing_to_hide() -> None:
    assert secrets.mask({"password": None}) == {"password": None}
