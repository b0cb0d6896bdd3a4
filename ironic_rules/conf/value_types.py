"""Types of option values that oslo.config does not have. Their errors say what is allowed, without the value."""

from __future__ import annotations

import ipaddress
import re
from typing import Any
from urllib.parse import urlsplit

from oslo_config import types

from ironic_rules.models.fields import GROUP_CHARACTERS, GROUP_NAME, MAX_LENGTH

_LABEL = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_HOST_PATTERN = re.compile(rf"\*|\.?{_LABEL}(?:\.{_LABEL})*\.?")


class ConductorGroup(types.String):
    """The name of a conductor group, checked as that of a node; the value is in lower case, as that of a node."""

    def __init__(self) -> None:
        super().__init__(type_name="conductor group")

    def __call__(self, value: Any) -> str:
        text = str(super().__call__(value))
        if len(text) > MAX_LENGTH or not re.fullmatch(GROUP_NAME, text):
            raise ValueError(f"at most {MAX_LENGTH} {GROUP_CHARACTERS}")
        return text.lower()


class HostPattern(types.String):
    """A name, an address, all names with a suffix (``.example.org``), or ``*``."""

    def __init__(self) -> None:
        super().__init__(type_name="host")

    def __call__(self, value: Any) -> str:
        text = str(super().__call__(value))
        try:
            if not _HOST_PATTERN.fullmatch(text):
                ipaddress.ip_address(text.removeprefix("[").removesuffix("]"))
        except ValueError as exc:
            raise ValueError("names and addresses without scheme and port are expected, such as ironic.example.org, "
                             ".example.org or 192.0.2.10; or *") from exc
        return text


class HttpUrlType(types.URI):
    """A URL with scheme http or https and a host, to which paths are added; error messages contain an example.

    Such URLs are public: in links, and in what ramdisks are booted with.
    """

    def __init__(self) -> None:
        super().__init__(schemes=["http", "https"])

    def __call__(self, value: Any) -> str:
        try:
            text = str(super().__call__(value))
        except ValueError as exc:
            raise ValueError("an http or https URL is expected, such as http://192.0.2.10:6385") from exc
        if "?" in text or "#" in text or "@" in urlsplit(text).netloc:
            raise ValueError("an http or https URL without user, password, query and fragment is expected")
        return text


class ImageUrl(types.String):
    """The URL of an image that machines load. Empty: none."""

    def __init__(self) -> None:
        super().__init__(type_name="URL of an image")

    def __call__(self, value: Any) -> str:
        text = str(super().__call__(value))
        try:
            parts = urlsplit(text)
        except ValueError:
            parts = urlsplit("")
        if text and not (parts.scheme and parts.netloc):
            raise ValueError("a URL with a host is expected, such as http://192.0.2.10/ramdisk.kernel")
        return text


class Folder(types.String):
    """An absolute path."""

    def __init__(self) -> None:
        super().__init__(type_name="folder")

    def __call__(self, value: Any) -> str:
        text = str(super().__call__(value))
        if not text.startswith("/"):
            raise ValueError("absolute paths are expected, which begin with /")
        return text


class IpNetwork(types.String):
    """A network in CIDR form, without host bits."""

    def __init__(self) -> None:
        super().__init__(type_name="network")

    def __call__(self, value: Any) -> str:
        text = str(super().__call__(value))
        try:
            ipaddress.ip_network(text)
        except ValueError as exc:
            raise ValueError("networks are expected in CIDR form, such as 192.0.2.0/24 or fe80::/10") from exc
        return text


class RegularExpression(types.String):
    """The text of a regular expression of Python."""

    def __init__(self) -> None:
        super().__init__(type_name="regular expression")

    def __call__(self, value: Any) -> str:
        text = str(super().__call__(value))
        try:
            re.compile(text)
        except re.error as exc:
            raise ValueError(f"a regular expression is expected: {exc}") from exc
        return text


class StepName(types.String):
    """INTERFACE.STEP"""

    def __init__(self) -> None:
        super().__init__(type_name="step")

    def __call__(self, value: Any) -> str:
        text = str(super().__call__(value))
        if not re.fullmatch(r"[a-z]+\.\S+", text):
            raise ValueError("steps are expected as INTERFACE.STEP, such as vendor.send_raw")
        return text
