"""Config drives: a small ISO image with the data of an instance, which the agent writes to a partition of its own."""

from __future__ import annotations

import base64
import binascii
import gzip
import io
import json
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

from ironic_rules.exceptions import InvalidParameterValue, Problem
from ironic_rules.models import urls
from ironic_rules.models.nodes import Node

#: Maximum size of the image: agents refuse larger ones.
MAX_BYTES = 64 * 2**20
LABEL = "config-2"
_WHERE = "/instance_info/configdrive"
#: Parts of a config drive that is given as an object -> the file below openstack/VERSION.
_FILES = {"meta_data": "meta_data.json", "user_data": "user_data", "network_data": "network_data.json",
          "vendor_data": "vendor_data2.json"}
_VERSIONS = ("2012-08-10", "latest")
#: zlib's number for the format of gzip.
_GZIP = 31


def check(value: Any) -> None:
    """Check a config drive: a URL, a gzipped and base64-encoded ISO image, or an object from which one is made.

    :raises InvalidParameterValue: it is none of these, or too large
    """
    if problems := [Problem(where, text) for where, text in _problems(value)]:
        raise InvalidParameterValue(problems=problems)


def is_url(value: Any) -> bool:
    """Return whether the agent is to load the config drive from a URL."""
    return urls.is_meant(value)


def to_agent(node: Node) -> str | None:
    """Return the config drive of the node's instance as agents take it: a URL, or gzipped and base64-encoded.

    :raises InvalidParameterValue: as :func:`check`
    """
    value = node.instance_info.get("configdrive")
    if value is None:
        return None
    check(value)
    if isinstance(value, dict):
        return base64.b64encode(gzip.compress(image(value, node))).decode("ascii")
    # Agents only know URLs with a lower-case scheme.
    return str(urls.parse(value)) if is_url(value) else str(value)


def image(parts: Mapping[str, Any], node: Node) -> bytes:
    """Return the ISO image of a config drive that is given as an object.

    ``meta_data`` gets the ``uuid`` and the ``name`` of the node, if it has none.
    """
    import pycdlib  # only deployments need it

    named = {"uuid": node.uuid, **({"name": node.name} if node.name else {})}
    told = {**parts, "meta_data": {**named, **(parts.get("meta_data") or {})}}
    iso = pycdlib.PyCdlib()
    iso.new(interchange_level=3, joliet=3, rock_ridge="1.09", vol_ident=LABEL)
    folder = _Folder(iso).below("openstack")
    for version in _VERSIONS:
        inner = folder.below(version)
        for key, file in _FILES.items():
            if told.get(key) is not None:
                inner.add(file, _content(told[key]))
    written = io.BytesIO()
    iso.write_fp(written)
    iso.close()
    return written.getvalue()


class _Folder:
    """A folder of an image that is made. Each file has three paths there, for three kinds of readers."""

    def __init__(self, iso: Any, plain: str = "", path: str = "") -> None:
        self._iso, self._plain, self._path = iso, plain, path

    def below(self, name: str) -> _Folder:
        inner = _Folder(self._iso, f"{self._plain}/{_plain(name)}", f"{self._path}/{name}")
        self._iso.add_directory(inner._plain, rr_name=name, joliet_path=inner._path)
        return inner

    def add(self, name: str, content: bytes) -> None:
        stem, dot, extension = _plain(name).rpartition("_JSON")
        plain = f"{stem}.JSON" if dot else f"{extension}."
        self._iso.add_fp(io.BytesIO(content), len(content), f"{self._plain}/{plain};1", rr_name=name,
                         joliet_path=f"{self._path}/{name}")


def _plain(name: str) -> str:
    """Return the name with the characters that every reader of ISO 9660 knows."""
    return name.upper().replace("-", "_").replace(".", "_")


def _content(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else json.dumps(value).encode()


def _problems(value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        yield from _object_problems(value)
    elif not isinstance(value, str) or not value:
        yield _WHERE, "must be a URL, a gzipped and base64-encoded ISO image, or an object"
    elif problem := urls.problem(value) if is_url(value) else _image_problem(value):
        yield _WHERE, problem


def _object_problems(value: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key in value:
        if key not in _FILES:
            yield f"{_WHERE}/{key}", f"is not one of {', '.join(_FILES)}"
        elif not isinstance(value[key], (dict, str) if key == "user_data" else dict):
            yield f"{_WHERE}/{key}", "must be an object or a text" if key == "user_data" else "must be an object"
    # Each version of the format has the files.
    if len(_VERSIONS) * sum(len(_content(part)) for part in value.values()) > MAX_BYTES - 2**20:
        yield _WHERE, _too_large()


def _image_problem(value: str) -> str | None:
    # A bound before anything is decoded: base64 makes four characters of three bytes.
    if len(value) > 2 * MAX_BYTES:
        return _too_large()
    try:
        unpacker = zlib.decompressobj(wbits=_GZIP)
        unpacked = unpacker.decompress(base64.b64decode(value), MAX_BYTES + 1)
    except (binascii.Error, ValueError, zlib.error):
        return "is neither a URL nor a gzipped and base64-encoded ISO image"
    if len(unpacked) > MAX_BYTES:
        return _too_large()
    return None if unpacked and unpacker.eof else "is empty or incomplete"


def _too_large() -> str:
    return f"is larger than {MAX_BYTES // 2**20} MiB, the most that agents write"
