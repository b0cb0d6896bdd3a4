"""Config drives: a small ISO image with the data of an instance, which the agent writes to a partition of its own."""

from __future__ import annotations

import base64
import binascii
import gzip
import io
import json
import threading
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ironic_rules.exceptions import InvalidParameterValue, Problem, too_many_config_drives
from ironic_rules.models import urls
from ironic_rules.models.documents import JSON
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
#: Bytes that are unpacked at a time, to be counted.
_CHUNK = 64 * 1024
#: Seconds that a request waits for the config drives of others. The largest one takes a second.
PATIENCE_S = 10.0
#: Held by the only thread of this process that unpacks or makes a config drive: each takes memory and a processor.
_one = threading.Lock()


def check(value: JSON) -> None:
    """Check a config drive: a URL, a gzipped and base64-encoded ISO image, or an object from which one is made.

    :raises InvalidParameterValue: it is none of these, or too large
    :raises too_many_config_drives: 503, those of others take too long
    """
    with _turn(PATIENCE_S):
        _check(value)


def _check(value: JSON) -> None:
    if problems := [Problem(where, text) for where, text in _problems(value)]:
        raise InvalidParameterValue(problems=problems)


def is_url(value: JSON) -> bool:
    """Return whether the agent is to load the config drive from a URL."""
    return urls.is_meant(value)


def to_agent(node: Node) -> str | None:
    """Return the config drive of the node's instance as agents take it: a URL, or gzipped and base64-encoded.

    Waits for those of others, however long that takes.

    :raises InvalidParameterValue: as :func:`check`
    """
    value = node.instance_info.get("configdrive")
    if value is None:
        return None
    with _turn():
        _check(value)
        if isinstance(value, dict):
            return base64.b64encode(gzip.compress(image(value, node))).decode("ascii")
    # Agents only know URLs with a lower-case scheme.
    return str(urls.parse(value)) if is_url(value) else str(value)


@contextmanager
def _turn(patience_s: float = -1) -> Iterator[None]:
    if not _one.acquire(timeout=patience_s):
        raise too_many_config_drives()
    try:
        yield
    finally:
        _one.release()


def image(parts: Mapping[str, Any], node: Node) -> bytes:
    """Return the ISO image of a config drive that is given as an object.

    ``meta_data`` gets the ``uuid`` and the ``name`` of the node, if it has none.
    """
    import pycdlib  # only deployments need it

    named = {"uuid": node.uuid, **({"name": node.name} if node.name else {})}
    contents = {**parts, "meta_data": {**named, **(parts.get("meta_data") or {})}}
    iso = pycdlib.PyCdlib()
    iso.new(interchange_level=3, joliet=3, rock_ridge="1.09", vol_ident=LABEL)
    folder = _Folder(iso).below("openstack")
    for version in _VERSIONS:
        inner = folder.below(version)
        for key, file in _FILES.items():
            if contents.get(key) is not None:
                inner.add(file, _content(contents[key]))
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


def _content(value: JSON) -> bytes:
    return value.encode() if isinstance(value, str) else json.dumps(value).encode()


def _problems(value: JSON) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        yield from _object_problems(value)
    elif not isinstance(value, str) or not value:
        yield _WHERE, "must be a URL, a gzipped and base64-encoded ISO image, or an object"
    elif problem := urls.problem(value) if is_url(value) else _image_problem(value):
        yield _WHERE, problem


def _object_problems(value: Mapping[str, JSON]) -> Iterator[tuple[str, str]]:
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
    unpacker, size = zlib.decompressobj(wbits=_GZIP), 0
    try:
        for size in _sizes(unpacker, base64.b64decode(value)):
            if size > MAX_BYTES:
                return _too_large()
    except (binascii.Error, ValueError, zlib.error):
        return "is neither a URL nor a gzipped and base64-encoded ISO image"
    return None if size and unpacker.eof else "is empty or incomplete"


def _sizes(unpacker: Any, packed: bytes) -> Iterator[int]:
    """Yield the number of bytes unpacked so far, after each piece of them, which is not kept.

    :raises zlib.error: the data are not in the format of the unpacker
    """
    size = 0
    for start in range(0, len(packed), _CHUNK):
        rest, unpacked = packed[start:start + _CHUNK], _CHUNK
        # The unpacker may have more, even if it has read everything.
        while (rest or unpacked == _CHUNK) and not unpacker.eof:
            unpacked = len(unpacker.decompress(rest, _CHUNK))
            rest = unpacker.unconsumed_tail
            size += unpacked
            yield size


def _too_large() -> str:
    return f"is larger than {MAX_BYTES // 2**20} MiB, the most that agents write"
