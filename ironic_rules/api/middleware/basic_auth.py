"""HTTP basic authentication against an Apache-style file of bcrypt hashes."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import secrets
from pathlib import Path
from typing import Any

import bcrypt

from ironic_rules.api import faults
from ironic_rules.exceptions import Unauthorized

_REMEMBERED = 1000
#: Checked when the user does not exist, so that both take the same time.
_NOBODY = bcrypt.hashpw(secrets.token_bytes(16), bcrypt.gensalt(10))


class BasicAuth:
    """Lets users of the file in, as ``REMOTE_USER``. The file is read again when it changes.

    bcrypt takes tens of milliseconds by design, so passwords that were right are remembered as salted hashes.
    """

    def __init__(self, app: Any, path: str) -> None:
        self._app = app
        self._path = Path(path)
        self._salt = secrets.token_bytes(32)
        self._version: tuple[int, int] | None = None
        self._users: dict[str, bytes] = {}
        self._right: set[bytes] = set()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        user = self._user(environ.get("HTTP_AUTHORIZATION", ""))
        if user is None:
            return faults.send(faults.from_error(Unauthorized()), start_response)
        environ["REMOTE_USER"] = user
        return self._app(environ, start_response)

    def _user(self, header: str) -> str | None:
        scheme, _, encoded = header.partition(" ")
        if scheme.lower() != "basic":
            return None
        try:
            user, colon, password = base64.b64decode(encoded, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            return None
        if not colon:
            return None
        self._reload()
        digest = hmac.digest(self._salt, f"{user}:{password}".encode(), hashlib.sha256)
        if digest in self._right:
            return user
        known = self._users.get(user)
        # bcrypt looks at 72 bytes at most; more than that is never a password from the file.
        given = password.encode()
        if not bcrypt.checkpw(given[:72], known or _NOBODY) or known is None or len(given) > 72:
            return None
        if len(self._right) >= _REMEMBERED:
            self._right = set()
        self._right.add(digest)
        return user

    def _reload(self) -> None:
        status = os.stat(self._path)
        version = (status.st_mtime_ns, status.st_size)
        if version != self._version:
            lines = (line.strip().partition(":") for line in self._path.read_text(encoding="utf-8").splitlines())
            users = {user: known.encode() for user, _, known in lines if known.startswith(("$2y$", "$2a$", "$2b$"))}
            self._users, self._right, self._version = users, set(), version
