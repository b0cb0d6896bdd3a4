"""HTTP basic authentication against an Apache-style file of bcrypt hashes."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import re
import secrets
import time
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import bcrypt
from oslo_log import log as logging

from ironic_rules.api.page import PasswordChecks, Sources
from ironic_rules.exceptions import ConfigurationError, TooManyAttempts, Unauthorized, Unavailable
from ironic_rules.httpd import faults
from ironic_rules.text import printable

LOG = logging.getLogger(__name__)

#: Roles that users can have, as in Keystone for the whole system.
ROLES = ("admin", "member", "reader")
_REMEMBERED = 1000
#: Checked if the user does not exist, with the cost factor of the existing users, so that both take the same time.
_NOBODY = bcrypt.hashpw(secrets.token_bytes(16), bcrypt.gensalt(10))
_HASH = re.compile(rb"\$2[aby]\$(?:0[4-9]|[12][0-9]|3[01])\$[./A-Za-z0-9]{53}")


class BasicAuth:
    """Authenticates users of the file and sets ``REMOTE_USER``. The file is read again when it changes.

    bcrypt is slow by design, so valid passwords are cached as salted hashes.

    :param threads: how many requests are served at the same time; at most half of them wait for bcrypt
    :param checks: how many passwords are checked at the same time
    :param groups: path of the file with the roles of users; None: all are administrators
    :raises ConfigurationError: a file cannot be read, there is no user, or no administrator
    """

    def __init__(self, app: WSGIApplication, path: str, threads: int = 10, checks: int = 2,
                 clock: Callable[[], float] = time.monotonic, groups: str | None = None) -> None:
        self._app = app
        self._groups = None if groups is None else Groups(groups)
        self._sources = Sources(clock)
        self._checks = PasswordChecks(self._sources, checks, threads // 2)
        self._path = Path(path)
        self._salt = secrets.token_bytes(32)
        self._version: tuple[int, int] | None = None
        self._users: dict[str, bytes] = {}
        self._nobody = _NOBODY
        self._right: set[bytes] = set()
        try:
            self._reload()
        except (OSError, UnicodeDecodeError) as exc:
            raise ConfigurationError(f"[DEFAULT]http_basic_auth_user_file cannot be read: {exc}") from exc
        if not self._users:
            raise ConfigurationError(f"[DEFAULT]http_basic_auth_user_file: {path} has no user with a bcrypt hash, and "
                                     "no one could log in: add one with htpasswd -B.")
        if self._groups is not None:
            self._groups.check(self._users)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        try:
            user = self._user(environ.get("HTTP_AUTHORIZATION", ""), environ.get("REMOTE_ADDR", ""))
            if user is not None and self._groups is not None:
                environ["ironic_rules.roles"] = self._groups.roles(user)
        except (TooManyAttempts, Unavailable) as exc:
            fault = faults.from_status(exc.code, str(exc))
            return faults.send(fault._replace(headers=[*fault.headers, ("Retry-After", "1")]), environ, start_response)
        except (OSError, UnicodeDecodeError) as exc:
            # Current users and roles are not known: no one is authenticated until the file can be read again.
            LOG.error("[DEFAULT]http_basic_auth_user_file or http_basic_auth_group_file can no longer be read: %s",
                      exc)
            return faults.send(faults.from_error(Unavailable()), environ, start_response)
        if user is None:
            return faults.send(faults.from_error(Unauthorized()), environ, start_response)
        environ["REMOTE_USER"] = user
        return self._app(environ, start_response)

    def _user(self, header: str, source: str) -> str | None:
        scheme, _, encoded = header.partition(" ")
        if scheme.lower() != "basic":
            return None
        try:
            user, colon, password = base64.b64decode(encoded, validate=True).decode().partition(":")
        except ValueError:  # neither base64 nor UTF-8
            return None
        if not colon:
            return None
        self._reload()
        digest = hmac.digest(self._salt, f"{user}:{password}".encode(), hashlib.sha256)
        if digest in self._right:
            return user
        with self._checks.turn(source):
            is_right = digest in self._right or self._is_right(user, password, digest)
            self._sources.note(source, is_right)
        return user if is_right else None

    def _is_right(self, user: str, password: str, digest: bytes) -> bool:
        stored = self._users.get(user)
        # bcrypt uses at most 72 bytes; a longer password never matches one from the file.
        sent = password.encode()
        if not bcrypt.checkpw(sent[:72], stored or self._nobody) or stored is None or len(sent) > 72:
            return False
        if len(self._right) >= _REMEMBERED:
            self._right = set()
        self._right.add(digest)
        return True

    def _reload(self) -> None:
        status = os.stat(self._path)
        version = (status.st_mtime_ns, status.st_size)
        if version != self._version:
            users: dict[str, bytes] = {}
            for number, line in enumerate(self._path.read_text(encoding="utf-8").splitlines(), 1):
                user, _, hashed = line.strip().partition(":")
                if _is_hash(hashed.encode()):
                    users[user] = hashed.encode()
                elif user and not user.startswith("#"):
                    LOG.warning("%s, line %d, has no valid bcrypt hash and is ignored.", self._path, number)
            cost = max((hashed[4:6] for hashed in users.values()), default=_NOBODY[4:6])
            self._nobody = _NOBODY[:4] + cost + _NOBODY[6:]
            self._users, self._right, self._version = users, set(), version


class Groups:
    """The roles of users, from lines ``ROLE: USER USER``; the file is read again when it changes.

    :raises ConfigurationError: the file cannot be read
    """

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._version: tuple[int, int] | None = None
        self._roles: dict[str, list[str]] = {}
        try:
            self._reload()
        except (OSError, UnicodeDecodeError) as exc:
            raise ConfigurationError(f"[DEFAULT]http_basic_auth_group_file cannot be read: {exc}") from exc

    def check(self, users: Collection[str]) -> None:
        """Check that a user is an administrator, and log which users have no role, and roles no user.

        :raises ConfigurationError: no user is
        """
        if not any("admin" in self._roles.get(user, ()) for user in users):
            raise ConfigurationError(f"[DEFAULT]http_basic_auth_group_file: {self._path} makes no user of "
                                     "http_basic_auth_user_file an administrator: add a line 'admin: NAME'.")
        for text, names in (("have no role, and may do nothing", set(users) - set(self._roles)),
                            ("have a role, but no password, and cannot log in", set(self._roles) - set(users))):
            if names:
                LOG.warning("[DEFAULT]http_basic_auth_group_file: these users %s: %s", text,
                            printable(", ".join(sorted(names))))

    def roles(self, user: str) -> list[str]:
        """Return the roles of a user.

        :raises OSError: the file cannot be read any more;  UnicodeDecodeError: it is not text
        """
        self._reload()
        return self._roles.get(user, [])

    def _reload(self) -> None:
        status = os.stat(self._path)
        version = (status.st_mtime_ns, status.st_size)
        if version == self._version:
            return
        roles: dict[str, list[str]] = {}
        for number, line in enumerate(self._path.read_text(encoding="utf-8").splitlines(), 1):
            role, colon, names = line.partition(":")
            if not line.strip() or line.startswith("#"):
                continue
            if not colon or role.strip() not in ROLES:
                LOG.warning("%s, line %d, does not begin with one of the roles %s and is ignored.", self._path, number,
                            ", ".join(f"{each}:" for each in ROLES))
                continue
            for name in names.split():
                roles.setdefault(name, []).append(role.strip())
        self._roles, self._version = roles, version


def _is_hash(hashed: bytes) -> bool:
    if _HASH.fullmatch(hashed) is None:
        return False
    try:
        bcrypt.checkpw(b"", hashed[:4] + b"04" + hashed[6:])  # the lowest cost
    except ValueError:
        return False
    return True
