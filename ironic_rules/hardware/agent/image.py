"""Images that the agent writes to a disk: their fields in ``instance_info``, commands for the agent, and their URLs.

The names are those of Ironic; others are refused by :func:`of_node`, with a reason.

Before a deployment starts, each server gets a request as the agent will send it. That finds URLs of images that do not
exist, and those that lead, directly or by redirection, into networks that only the machine itself or its neighbours
must reach: ``[deploy]image_url_denied_networks``.
"""

from __future__ import annotations

import functools
import hashlib
import re
import ssl
import time
import urllib.parse
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oslo_config import cfg

from ironic_rules.exceptions import InvalidParameterValue, Problem
from ironic_rules.hardware import destinations
from ironic_rules.hardware.destinations import Destination
from ironic_rules.hardware.waiting import RequestDeadline
from ironic_rules.models import urls
from ironic_rules.models.documents import JSON, JSONObject
from ironic_rules.models.nodes import Node
from ironic_rules.models.urls import Network, Url
from ironic_rules.text import is_uuid

#: Formats that the agent writes without an option: it converts qcow2, and takes raw images as they are.
FORMATS = ("raw", "qcow2")
#: Lengths of ``image_checksum`` in hexadecimal digits (SHA-256, SHA-512); agents derive the algorithm from the length.
_LENGTHS = (64, 128)
_MD5_LENGTH = 32
_ALGORITHMS = tuple(sorted(name for name in hashlib.algorithms_guaranteed
                           if name.startswith(("sha2", "sha3", "sha5", "blake2"))))
_HEX = re.compile(r"[0-9a-fA-F]+")
_FILE = re.compile(r"file:(?://)?/(?!/)[^ ]*", re.IGNORECASE)
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9._-]")
_WHERE = "/instance_info"
_PROXIES = {"http": "image_http_proxy", "https": "image_https_proxy"}
_DRIVER_KEYS = (*_PROXIES.values(), "image_no_proxy")


@dataclass(frozen=True, slots=True)
class Image:
    """A whole-disk image.

    :ivar source: its URL; of a file of the conductor with the scheme ``file``
    :ivar checksum: ``image_checksum``, in hexadecimal digits or the URL of a list of checksums; None if there is a hash
    :ivar hash_algorithm: ``image_os_hash_algo``, None without ``image_os_hash_value``
    :ivar disk_format: one of ``FORMATS``; None: the agent finds it out
    :ivar proxies: proxy by scheme, for the agent's download;  no_proxy: hosts that are loaded without it
    """

    source: str
    checksum: str | None
    hash_algorithm: str | None
    hash_value: str | None
    disk_format: str | None
    proxies: Mapping[str, str]
    no_proxy: str | None
    #: settings that are of ``driver_info``, not of ``instance_info``
    of_driver_info: frozenset[str] = frozenset()

    @property
    def is_file(self) -> bool:
        """True if the image is a file of the conductor."""
        return _is_file(self.source)

    def urls(self) -> dict[str, str]:
        """Return the URLs that the agent loads over HTTP, by their JSON pointers in the node."""
        values = {f"{_WHERE}/image_source": None if self.is_file else self.source,
                  f"{_WHERE}/image_checksum": self.checksum, f"{_WHERE}/image_os_hash_value": self.hash_value}
        return {where: value for where, value in values.items() if value is not None and urls.is_meant(value)}

    def proxy_urls(self) -> dict[str, str]:
        """Return the proxies through which the agent loads it, by their JSON pointers in the node."""
        return {_pointer(_PROXIES[scheme], self.of_driver_info): url for scheme, url in self.proxies.items()}

    def to_agent(self, node_uuid: str, url: str, boot_mode: str, *, stream: bool) -> JSONObject:
        """Return ``image_info`` of the agent's command ``standby.prepare_image``.

        :param url: where the agent loads the image: its source, or the URL at which a file is served
        :param stream: whether a raw image is written while it is loaded, instead of to the ramdisk's memory first
        """
        name = _NOT_IN_A_NAME.sub("_", urllib.parse.urlsplit(self.source).path.rpartition("/")[2]).lstrip(".")
        info = {
            # The agent's file has this name, and its errors too.
            "id": name[:128] or "image", "urls": [url], "node_uuid": node_uuid, "image_type": "whole-disk",
            "checksum": self.checksum, "os_hash_algo": self.hash_algorithm, "os_hash_value": self.hash_value,
            "disk_format": self.disk_format, "stream_raw_images": stream, "deploy_boot_mode": boot_mode,
            "boot_option": "local", "proxies": dict(self.proxies) or None, "no_proxy": self.no_proxy,
        }
        return {key: value for key, value in info.items() if value is not None}


def image_of_node(node: Node, *, md5: bool) -> Image:
    """Return the image that a node's ``instance_info`` specifies; proxies can also be in ``driver_info``, as in Ironic.

    :param md5: accept MD5 checksums (``[deploy]allow_md5_checksum``)
    :raises InvalidParameterValue: there is none, or it cannot be written; with every problem
    """
    of_driver_info = frozenset(key for key in _DRIVER_KEYS
                               if node.driver_info.get(key) and not node.instance_info.get(key))
    info = {**node.instance_info, **{key: node.driver_info[key] for key in of_driver_info}}
    if problems := [Problem(_pointer(key, of_driver_info), text) for key, text in _problems(info, md5)]:
        raise InvalidParameterValue(problems=problems)
    algorithm = info.get("image_os_hash_algo")
    return Image(
        str(_usual(info["image_source"])), _usual(info.get("image_checksum")), algorithm,
        _usual(info.get("image_os_hash_value")), info.get("image_disk_format"),
        {scheme: _proxy(info[key]) for scheme, key in _PROXIES.items() if info.get(key)}, info.get("image_no_proxy"),
        of_driver_info)


def _pointer(key: str, of_driver_info: Collection[str]) -> str:
    return f"/driver_info/{key}" if key in of_driver_info else f"{_WHERE}/{key}"


def warnings(node: Node) -> list[Problem]:
    """Return weaknesses of the image of ``instance_info``, which :func:`image_of_node` accepts."""
    info = node.instance_info
    key = "image_os_hash_algo" if info.get("image_os_hash_algo") else "image_checksum"
    if info.get(key) != "md5" and not _is_digest(info.get(key), _MD5_LENGTH):
        return []
    return [Problem(f"{_WHERE}/{key}", "MD5 does not protect the image from being exchanged; use SHA-256 or SHA-512")]


def path_of(image: Image) -> Path:
    """Return the path of an image that is a file of the conductor."""
    return Path(urllib.parse.unquote(urllib.parse.urlsplit(image.source).path))


def _problems(info: Mapping[str, JSON], md5: bool) -> Iterator[tuple[str, str]]:
    """Yield each wrong key of ``instance_info``, and why it is invalid."""
    if problem := _source_problem(info.get("image_source")):
        yield "image_source", problem
    yield from _checksum_problems(info, md5)
    kind, disk_format = info.get("image_type"), info.get("image_disk_format")
    if kind not in (None, "whole-disk"):
        yield "image_type", "only whole-disk images are written"
    elif any(info.get(key) for key in ("kernel", "ramdisk")):
        yield ("kernel" if info.get("kernel") else "ramdisk",
               "partition images, which are booted by a kernel and a ramdisk, are not written; use a whole-disk image, "
               "or the deploy interface ramdisk")
    if disk_format not in (None, *FORMATS):
        yield "image_disk_format", f"must be {' or '.join(FORMATS)}"
    for key in _PROXIES.values():
        if (value := info.get(key)) not in (None, "") and (problem := urls.problem(_proxy(value))):
            yield key, problem
    if not isinstance(info.get("image_no_proxy"), str | None):
        yield "image_no_proxy", "must be a text"
    if info.get("image_download_source") not in (None, "http"):
        yield "image_download_source", "must be http: the agent loads the image itself"


def _source_problem(source: Any) -> str | None:
    if source is None:
        return "is missing: there is no image to write"
    if isinstance(source, str) and (is_uuid(source) or source.startswith("glance://")):
        return "is an image of an image service, which is not supported; use the URL of a file"
    if _is_file(source):
        is_path = _FILE.fullmatch(source) and source.isprintable() and len(source) <= urls.MAX_URL
        return None if is_path else "must be file:///PATH"
    return urls.problem(source) if urls.is_meant(source) else "must be a URL: http://, https:// or file:///"


def _checksum_problems(info: Mapping[str, JSON], md5: bool) -> Iterator[tuple[str, str]]:
    algorithms = ("md5", *_ALGORITHMS) if md5 else _ALGORITHMS
    checksum, algorithm, value = (info.get(f"image_{key}") for key in ("checksum", "os_hash_algo", "os_hash_value"))
    if checksum is None and algorithm is None and value is None:
        yield "image_checksum", ("is missing: an image is only written if its content can be checked; set it, or "
                                 "image_os_hash_algo and image_os_hash_value")
    if (algorithm is None) != (value is None):
        yield ("image_os_hash_value" if value is None else "image_os_hash_algo"), "is missing: both are needed"
    elif algorithm is not None and algorithm not in algorithms:
        yield "image_os_hash_algo", f"must be one of {', '.join(algorithms)}"
    elif urls.is_meant(value):
        if problem := urls.problem(value):
            yield "image_os_hash_value", problem
    elif algorithm is not None and not _is_digest(value, 2 * hashlib.new(algorithm).digest_size):
        yield "image_os_hash_value", f"is not a {algorithm} checksum in hexadecimal digits"
    if checksum is None:
        return
    if urls.is_meant(checksum):
        if problem := urls.problem(checksum):
            yield "image_checksum", problem
    elif _is_digest(checksum, _MD5_LENGTH):
        if algorithm is None and not md5:
            yield "image_checksum", ("is an MD5 checksum, which [deploy]allow_md5_checksum does not allow; use SHA-256 "
                                     "or SHA-512")
    elif not any(_is_digest(checksum, length) for length in _LENGTHS):
        yield "image_checksum", ("must be the checksum (SHA-256 or SHA-512) in hexadecimal digits, or the URL of a "
                                 "list of checksums")


def _is_digest(value: JSON, length: int) -> bool:
    return isinstance(value, str) and len(value) == length and _HEX.fullmatch(value) is not None


def _is_file(source: object) -> bool:
    return isinstance(source, str) and source[:5].lower() == "file:"


def _usual(value: str | None) -> str | None:
    """Return a checked value in the form for agents, which only know URLs with a lower-case scheme."""
    return str(urls.parse(value)) if urls.is_meant(value) and not _is_file(value) else value


def _proxy(value: JSON) -> Any:
    """Return the URL of a proxy, which may be given without a scheme."""
    return f"http://{value}" if isinstance(value, str) and "://" not in value else value


_MAX_REDIRECTS = 5
#: Servers that refuse HEAD, e.g. those of signed URLs, answer GET.
_REFUSES_HEAD = frozenset({403, 405, 501})


def check_urls(conf: cfg.ConfigOpts, texts: Mapping[str, str], schemes: Collection[str] = urls.HTTP) -> None:
    """Check the URLs of ``texts``, by their JSON pointers, as ``[deploy]`` specifies. Only those of HTTP are requested.

    :raises InvalidParameterValue: with each one that leads into a denied network, or with the first one that cannot be
        loaded
    """
    timeout_s = conf.deploy.image_check_timeout
    # URLs are compared with the denied networks even if none is requested.
    destinations.check(conf, texts, schemes)
    if timeout_s:
        denied = destinations.denied_networks(conf)
        for where, text in texts.items():
            url = urls.parse(text, schemes)
            if url.scheme in urls.HTTP:
                check_url(url, where, denied, timeout_s)


def check_url(url: Url, where: str, denied: Collection[Network], timeout_s: float) -> None:
    """Check that ``url`` can be loaded, and that neither it nor a redirection leads into a denied network.

    :param where: JSON pointer of the URL, for errors;  timeout_s: for everything
    :raises InvalidParameterValue: of URLs, the text contains only the hosts
    """
    deadline = time.monotonic() + timeout_s
    try:
        for _ in range(_MAX_REDIRECTS + 1):
            destination = destinations.find(url, denied, max(0.0, deadline - time.monotonic()))
            status, location = _ask(destination, deadline)
            if location is None:
                if status >= 300:
                    raise ValueError(f"{url.shown} answers with status {status}")
                return
            url = _redirected(url, location)
        raise ValueError(f"it is redirected more than {_MAX_REDIRECTS} times")
    except ValueError as exc:
        raise InvalidParameterValue(problems=[Problem(where, f"the image cannot be loaded: {exc}")]) from None


def _redirected(url: Url, location: str) -> Url:
    """Return the URL to which a server redirects.

    :raises ValueError: it is not an HTTP URL
    """
    try:
        return urls.parse(urllib.parse.urljoin(str(url), location))
    except ValueError as exc:
        raise ValueError(f"where it is redirected to {exc}") from None


def _ask(destination: Destination, deadline: float) -> tuple[int, str | None]:
    """Return the status of the URL, and where it is redirected to.

    :raises ValueError: the server does not answer
    """
    import httpx  # only deployments need it, and it takes 5 MiB

    url, status, location = destination.url, 0, None
    for method in ("HEAD", "GET"):
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            raise ValueError(_too_long(url))
        limit = RequestDeadline(left_s)
        try:
            with (
                limit, destinations.client(destination, _tls(), left_s) as client,
                # Without the body: it may be many gigabytes.
                client.stream(method, str(url), headers={"User-Agent": "ironic-rules"}, extensions=limit.extensions,
                              ) as answer,
            ):
                status, location = answer.status_code, answer.headers.get("Location") if answer.is_redirect else None
        except (httpx.HTTPError, httpx.InvalidURL) as exc:
            # Without its text, which may contain the URL.
            reason = _too_long(url) if limit.is_over else f"no answer from {url.shown} ({type(exc).__name__})"
            raise ValueError(reason) from None
        if status not in _REFUSES_HEAD:
            break
    return status, location


def _too_long(url: Url) -> str:
    return f"{url.shown} takes too long ([deploy]image_check_timeout)"


@functools.cache
def _tls() -> ssl.SSLContext:
    """Return the TLS settings of connections, cached because the system's certificates are read slowly."""
    return ssl.create_default_context()
