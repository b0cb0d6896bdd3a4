"""The settings of a node's IPMI BMC in ``driver_info``. No side effects."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ironic_rules.exceptions import InvalidParameterValue
from ironic_rules.models.documents import JSON

PROPERTIES = {
    "ipmi_address": "IP address or host name of the BMC. Required.",
    "ipmi_username": "User name on the BMC. Default: none.",
    "ipmi_password": "Password on the BMC. Default: none.",
    "ipmi_port": "UDP port of the BMC. Default: 623.",
    "ipmi_priv_level": "Privilege level: ADMINISTRATOR (the default), OPERATOR, USER or CALLBACK.",
    "ipmi_protocol_version": "Version of the IPMI protocol: 2.0 (the default) or 1.5.",
    "ipmi_cipher_suite": "Number of the cipher suite, for IPMI 2.0. Default: those of "
                         "[ipmi]cipher_suite_versions are tried.",
    "ipmi_hex_kg_key": "Kg key for IPMI 2.0: 40 hexadecimal digits.",
    "ipmi_disable_boot_timeout": "Whether a boot device remains set for longer than 60 seconds. Default: true.",
}
PRIVILEGES = ("ADMINISTRATOR", "CALLBACK", "OPERATOR", "USER")
_ADDRESS = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:%-]{0,253}|[0-9a-fA-F:]{2,39}")
_KG = re.compile(r"[0-9a-fA-F]{40}")
_BOOLEANS = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}


@dataclass(frozen=True, slots=True)
class IPMIDriverInfo:
    """The address of a BMC and how to log in."""

    address: str
    port: int
    username: str | None
    password: str = field(repr=False)
    privilege: str
    version: str
    cipher_suite: int | None
    kg_key: str | None = field(repr=False)
    disable_boot_timeout: bool


def parse(driver_info: Mapping[str, Any]) -> IPMIDriverInfo:
    """Return the settings in ``driver_info``.

    :raises InvalidParameterValue: a key is missing or wrong; the text names it and does not show secret values
    """
    address = driver_info.get("ipmi_address")
    if not address:
        raise InvalidParameterValue("driver_info/ipmi_address is missing: the address of the BMC.")
    if not isinstance(address, str) or not _ADDRESS.fullmatch(address):
        raise _wrong("ipmi_address", "must be an IP address or a host name")
    username, password = (_text(driver_info, key) for key in ("ipmi_username", "ipmi_password"))
    if username is not None and username.startswith("-"):
        raise _wrong("ipmi_username", "must not begin with a dash, which ipmitool would interpret as an option")
    privilege = driver_info.get("ipmi_priv_level") or "ADMINISTRATOR"
    if privilege not in PRIVILEGES:
        raise _wrong("ipmi_priv_level", f"must be one of {', '.join(PRIVILEGES)}")
    version = str(driver_info.get("ipmi_protocol_version") or "2.0")
    if version not in ("1.5", "2.0"):
        raise _wrong("ipmi_protocol_version", "must be 1.5 or 2.0")
    kg_key = _text(driver_info, "ipmi_hex_kg_key")
    if kg_key is not None and not _KG.fullmatch(kg_key):
        raise _wrong("ipmi_hex_kg_key", "must have 40 hexadecimal digits")
    cipher_suite = _number(driver_info, "ipmi_cipher_suite", 0, 255)
    if version == "1.5" and (kg_key is not None or cipher_suite is not None):
        raise _wrong("ipmi_protocol_version", "must be 2.0 with ipmi_cipher_suite or ipmi_hex_kg_key")
    boot_timeout = driver_info.get("ipmi_disable_boot_timeout", True)
    if str(boot_timeout).lower() not in _BOOLEANS:
        raise _wrong("ipmi_disable_boot_timeout", "must be true or false")
    return IPMIDriverInfo(
        address, _number(driver_info, "ipmi_port", 1, 65535) or 623, username, password or "", privilege,
        version, cipher_suite, kg_key, _BOOLEANS[str(boot_timeout).lower()])


def _text(driver_info: Mapping[str, JSON], key: str) -> str | None:
    value = driver_info.get(key)
    if value is None or value == "":
        return None
    if not isinstance(value, str) or "\0" in value or "\n" in value or "\r" in value:
        raise _wrong(key, "must be a string of one line")
    return value


def _number(driver_info: Mapping[str, JSON], key: str, least: int, most: int) -> int | None:
    value = driver_info.get(key)
    if value is None or value == "":
        return None
    text = str(value)
    if isinstance(value, bool) or not re.fullmatch(r"[0-9]{1,5}", text) or not least <= int(text) <= most:
        raise _wrong(key, f"must be a number from {least} to {most}")
    return int(text)


def _wrong(key: str, what: str) -> InvalidParameterValue:
    return InvalidParameterValue(f"driver_info/{key} {what}.")
