"""``redfish``: machines whose BMC supports Redfish, and the settings of a node's BMC in ``driver_info``.

No side effects, but a CA file is looked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from ironic_rules.exceptions import InvalidParameterValue
from ironic_rules.hardware import destinations
from ironic_rules.hardware.base import HardwareType
from ironic_rules.models import urls
from ironic_rules.models.documents import JSON
from ironic_rules.text import nearest, printable

PROPERTIES = {
    "redfish_address": "URL of the BMC, such as https://192.0.2.1; the default scheme is https. Required.",
    "redfish_system_id": "Path of the system on its BMC, such as /redfish/v1/Systems/1. Default: the BMC's only "
                         "system.",
    "redfish_username": "User name on the BMC.",
    "redfish_password": "Password on the BMC.",
    "redfish_verify_ca": "Whether the BMC's certificate is verified: true (the default), false, or the path of a file "
                         "or folder with trusted certificates on the conductor's machine, in one of "
                         "[redfish]verify_ca_allowed_paths.",
    "redfish_auth_type": "Login: basic, session, or auto (session, else basic). Default: [redfish]auth_type.",
}
_PREFIX = "redfish_"
#: Names of earlier releases of Ironic -> those of today.
_RENAMED = {"redfish_deploy_iso": "deploy_iso", "redfish_rescue_iso": "rescue_iso"}
AUTH_TYPES = ("auto", "basic", "session")
_BOOLEANS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
_ZONE = re.compile(r"[A-Za-z0-9._~-]+")
_PATH = re.compile(r"/[A-Za-z0-9._~:@%+=,/-]*")


@dataclass(frozen=True, slots=True)
class RedfishDriverInfo:
    """The address of a BMC, a URL without a path, and how to log in. ``system_id`` None: its only system."""

    address: str
    username: str | None
    password: str | None = field(repr=False)
    verify: bool | str
    auth_type: str
    system_id: str | None


def parse(driver_info: Mapping[str, Any], auth_type: str, ca_folders: Iterable[str] = ()) -> RedfishDriverInfo:
    """Return the settings in ``driver_info``.

    :param auth_type: the default of nodes without their own
    :param ca_folders: the folders in which files with trusted certificates may be
    :raises InvalidParameterValue: a key is missing or wrong; the text names it and does not show secret values
    """
    for key in sorted(driver_info):
        if key.startswith(_PREFIX) and key not in PROPERTIES:
            near = _RENAMED.get(key) or nearest(key, PROPERTIES)
            raise _wrong(printable(key, 64), "is not known" + (f"; set {near} instead" if near else ""))
    settings = {key: driver_info.get(key) for key in PROPERTIES}
    for key in ("redfish_address", "redfish_system_id", "redfish_username", "redfish_password"):
        if settings[key] is not None and not isinstance(settings[key], str):
            raise _wrong(key, "must be a string")
    if not settings["redfish_address"]:
        raise InvalidParameterValue("driver_info/redfish_address is missing: the URL of the BMC.")
    if settings["redfish_password"] and not settings["redfish_username"]:
        raise InvalidParameterValue("driver_info/redfish_username is missing: there is a redfish_password.")
    system_id = settings["redfish_system_id"]
    if system_id is not None and (not _PATH.fullmatch(system_id) or ".." in system_id):
        raise _wrong("redfish_system_id", "must be a path such as /redfish/v1/Systems/1")
    auth = settings["redfish_auth_type"] or auth_type
    if auth not in AUTH_TYPES:
        raise _wrong("redfish_auth_type", f"must be one of {', '.join(AUTH_TYPES)}")
    return RedfishDriverInfo(
        _address(settings["redfish_address"]), settings["redfish_username"], settings["redfish_password"],
        verification(settings["redfish_verify_ca"], ca_folders), auth, system_id)


def _address(text: str) -> str:
    url = text.strip() if "://" in text else f"https://{text.strip()}"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise _wrong("redfish_address", "is not a URL") from None
    if parts.scheme not in urls.HTTP or not host or not url.isprintable() or " " in url:
        raise _wrong("redfish_address", "must be a URL such as https://192.0.2.1")
    bare, percent, zone = host.partition("%")
    if urls.usual_host(bare) is None or (percent and (":" not in bare or not _ZONE.fullmatch(zone))):
        raise _wrong("redfish_address", "must have a name of ASCII characters or an IP address in its usual form, such "
                                        "as 192.0.2.1 or [2001:db8::1]")
    if parts.username is not None or parts.password is not None:
        raise _wrong("redfish_address", "must not have credentials; there are redfish_username and redfish_password")
    if parts.query or parts.fragment or parts.path.strip("/"):
        raise _wrong("redfish_address", "must end with the host or the port; the rest goes to redfish_system_id")
    name = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{name}" + (f":{port}" if port is not None else "")


def verification(value: JSON, ca_folders: Iterable[str]) -> bool | str:
    """Return whether a BMC's certificate is verified, or the path of trusted certificates, from ``redfish_verify_ca``.

    :raises InvalidParameterValue: the value is wrong, or its path is not in ``ca_folders``
    """
    if value is None:
        return True
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        if value.strip().lower() in _BOOLEANS:
            return _BOOLEANS[value.strip().lower()]
        if value.startswith("/") and (path := destinations.allowed_file(value, ca_folders)) is not None:
            return str(path)
    raise _wrong("redfish_verify_ca", "must be true, false, or the path of a file or folder with certificates that the "
                                      "conductor can read, in one of the folders that are allowed "
                                      "([redfish]verify_ca_allowed_paths)")


def _wrong(key: str, text: str) -> InvalidParameterValue:
    return InvalidParameterValue(f"driver_info/{key} {text}.")


class RedfishHardware(HardwareType):
    supported_bios_interfaces = ("redfish", "no-bios")
    supported_boot_interfaces = ("redfish-virtual-media", "ipxe", "fake")
    supported_deploy_interfaces = ("direct", "ramdisk", "custom-agent")
    supported_firmware_interfaces = ("redfish", "no-firmware")
    supported_inspect_interfaces = ("agent", "redfish", "no-inspect")
    supported_management_interfaces = ("redfish",)
    supported_power_interfaces = ("redfish",)
    supported_raid_interfaces = ("redfish", "no-raid")
    supported_vendor_interfaces = ("redfish", "no-vendor")
