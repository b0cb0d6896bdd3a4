"""The page at ``/ui/``: its files, served to everybody, and ``/ui/session``, where a user's password becomes a token.

The files hold no data. The page requests data from the API with the user's own credentials.

``GET /ui/session`` says whether passwords are accepted. ``POST`` forwards a user and a password to the identity service
that checks the tokens of all requests, and returns its token; no password is stored. Addresses that send wrong
passwords wait, and password checks take turns by address.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import ipaddress
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import orjson
from oslo_config import cfg
from oslo_log import log as logging

from ironic_rules.api import body, message_page
from ironic_rules.exceptions import (
    ConfigurationError,
    Invalid,
    IronicRulesError,
    LoginRefused,
    MethodNotAllowed,
    NotFound,
    Problem,
    TooManyAttempts,
    Unavailable,
)
from ironic_rules.hardware.waiting import RequestDeadline
from ironic_rules.httpd import faults
from ironic_rules.models.documents import JSON, JSONObject

LOG = logging.getLogger(__name__)

PREFIX = "/ui"
#: Suffix -> media type; a file with another suffix is not served.
MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml", ".png": "image/png", ".json": "application/json", ".txt": "text/plain; charset=utf-8",
}
#: Everything comes from this service, nothing is inline, and no other page may show this one within it.
POLICY = "default-src 'self'; base-uri 'none'; form-action 'none'; object-src 'none'; frame-ancestors 'none'"
_ALWAYS: faults.Headers = [
    ("Content-Security-Policy", POLICY),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    # A browser asks each time whether a file is still the current one: after an upgrade none is of the version before.
    ("Cache-Control", "no-cache"),
    ("Vary", "Accept-Encoding"),
]
#: Smaller files do not become smaller.
_WORTH_COMPRESSING = 512


class WebPage:
    """Replies to ``GET`` and ``HEAD`` below ``/ui``; everything else goes to ``app``.

    The files are read once, when the process starts; a path is a key of a dictionary, so that none leads out of the
    folder.
    """

    def __init__(self, app: WSGIApplication) -> None:
        self._app = app
        self._files = dict(_files(resources.files("ironic_rules") / "ui", PREFIX + "/"))
        self._files[PREFIX + "/"] = self._files[PREFIX + "/index.html"]
        self._files[PREFIX + "/messages.html"] = _File(MEDIA_TYPES[".html"], message_page.page())

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        if path != PREFIX and not path.startswith(PREFIX + "/"):
            return self._app(environ, start_response)
        if environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
            refused = faults.from_status(405, "Files are only read.", allow=("GET", "HEAD"))
            return _send(refused, environ, start_response)
        if path == PREFIX:
            # Relative, so that it is right behind a proxy that serves the API below a path of its own.
            return _send(faults.Fault(308, [("Location", "ui/")], b""), environ, start_response)
        file = self._files.get(path)
        if file is None:
            return _send(faults.from_status(404, "There is no such file."), environ, start_response)
        return _send(file.reply(environ), environ, start_response)


class _File:
    """One file in memory."""

    def __init__(self, media_type: str, content: bytes) -> None:
        self._media_type = media_type
        self._content = content
        self._tag = hashlib.sha256(content).hexdigest()[:32]

    @cached_property
    def _compressed(self) -> bytes | None:
        """The content for clients that accept gzip; None if it would not be smaller. Made when one asks."""
        if len(self._content) < _WORTH_COMPRESSING:
            return None
        compressed = gzip.compress(self._content, mtime=0)
        return compressed if len(compressed) < len(self._content) else None

    def reply(self, environ: WSGIEnvironment) -> faults.Fault:
        compressed = self._compressed if _accepts_gzip(environ.get("HTTP_ACCEPT_ENCODING", "")) else None
        tag = f'"{self._tag}"' if compressed is None else f'"{self._tag}-gzip"'
        headers = [("ETag", tag), ("Content-Type", self._media_type)]
        if compressed is not None:
            headers.append(("Content-Encoding", "gzip"))
        if tag in _tags(environ.get("HTTP_IF_NONE_MATCH", "")):
            return faults.Fault(304, [("ETag", tag)], b"")
        return faults.Fault(200, headers, compressed or self._content)


def _files(folder: Traversable, path: str) -> Any:
    """Yield ``(path, file)`` for everything below ``folder`` that is served."""
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _files(entry, f"{path}{entry.name}/")
            continue
        media_type = MEDIA_TYPES.get("." + entry.name.rpartition(".")[2])
        if media_type is not None:
            yield path + entry.name, _File(media_type, entry.read_bytes())


def _accepts_gzip(header: str) -> bool:
    for part in header.lower().split(","):
        coding, _, quality = part.partition(";")
        if coding.strip() in ("gzip", "*"):
            return quality.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


def _tags(header: str) -> set[str]:
    """Return the tags of ``If-None-Match``, without ``W/``: a proxy that compresses makes tags weak."""
    return {tag.strip().removeprefix("W/") for tag in header.split(",")}


def _send(reply: faults.Fault, environ: WSGIEnvironment, start_response: StartResponse) -> list[bytes]:
    headers = [*reply.headers, *_ALWAYS]
    if reply.status != 304:
        headers.append(("Content-Length", str(len(reply.body))))
    start_response(faults.status_line(reply.status), headers)
    return [reply.body] if reply.body and environ["REQUEST_METHOD"] == "GET" else []


#: Maximum number of addresses.
_REMEMBERED = 1000
#: Wrong passwords that an address may send before it has to wait so many seconds between two, until it has sent none
#: for a minute.
_FREE_ATTEMPTS = 5
_WAIT_S = 1.0
_FORGOTTEN_S = 60.0
#: Length of the prefix of an IPv6 network whose addresses all belong to one user.
_OF_ONE_USER = 64


class Sources:
    """Addresses from which wrong passwords came: after some of them, one is checked per second, right or wrong.

    Passwords that were right before are not checked again, so that users behind the same proxy are not affected.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        #: Address -> (wrong passwords, time of the last attempt); the one that failed longest ago is first.
        self._failed: dict[str, tuple[int, float]] = {}
        #: Address -> the same for its requests in vain: those with a wrong password, and those refused unchecked.
        self._in_vain: dict[str, tuple[int, float]] = {}

    def check(self, source: str) -> None:
        """Count an attempt.

        :raises TooManyAttempts: 429, there was one within the last second
        """
        source, now = _user(source), self._clock()
        with self._lock:
            failures, last = self._failed.get(source, (0, now))
            if now - last >= _FORGOTTEN_S:
                self._failed.pop(source, None)
            elif failures >= _FREE_ATTEMPTS:
                if now - last < _WAIT_S:
                    raise TooManyAttempts()
                self._failed[source] = (failures, now)

    def note(self, source: str, is_right: bool) -> None:
        """Note that a password was checked."""
        source = _user(source)
        with self._lock:
            if is_right:
                self._failed.pop(source, None)
                self._in_vain.pop(source, None)
                return
            self._count(self._in_vain, source)
            failures = self._count(self._failed, source)
        LOG.log(logging.WARNING if failures == _FREE_ATTEMPTS else logging.INFO,
                "Wrong user name or password from %s (%d in a row).", source, failures)

    def note_refused(self, source: str) -> None:
        """Note that a request was refused before its password was checked."""
        with self._lock:
            self._count(self._in_vain, _user(source))

    def in_vain(self, source: str) -> int:
        """Return how many requests of an address were in vain, the last of them within a minute."""
        with self._lock:
            count, last = self._in_vain.get(_user(source), (0, 0.0))
        return count if self._clock() - last < _FORGOTTEN_S else 0

    def _count(self, counts: dict[str, tuple[int, float]], source: str) -> int:
        count, last = counts.pop(source, (0, 0.0))
        now = self._clock()
        count = 1 if now - last >= _FORGOTTEN_S else count + 1
        counts[source] = (count, now)
        if len(counts) > _REMEMBERED:
            del counts[next(iter(counts))]
        return count


class _Check:
    def __init__(self, source: str) -> None:
        self.source = source
        self.decided = threading.Event()
        self.is_refused = False


class PasswordChecks:
    """The checks of passwords that run, and those that wait for them: each address has its share.

    The next check is that of the address with the fewest requests, in vain or still waiting, and when all places are
    taken, one of the address with the most gives way. So a user waits for few checks, however many addresses send one
    wrong password after the other.

    :param at_once: how many run at the same time;  places: how many run or wait
    """

    def __init__(self, sources: Sources, at_once: int, places: int) -> None:
        self._sources = sources
        self._places = max(places, 1)
        self._at_once = min(at_once, self._places)
        self._lock = threading.Lock()
        self._running: list[_Check] = []
        #: checks that wait, in the order in which they came
        self._waiting: list[_Check] = []

    @contextlib.contextmanager
    def turn(self, source: str) -> Iterator[None]:
        """Run the block, which checks a password, when it is its turn.

        :raises TooManyAttempts: 429, the address has to wait;  Unavailable: 503, others come first
        """
        self._sources.check(source)
        check = _Check(_user(source))
        with self._lock:
            self._waiting.append(check)
            self._begin()
            if len(self._running) + len(self._waiting) > self._places:
                refused = self._by_turn()[-1]
                self._waiting.remove(refused)
                refused.is_refused = True
                refused.decided.set()
        check.decided.wait()
        if check.is_refused:
            self._sources.note_refused(source)
            raise Unavailable()
        try:
            yield
        finally:
            with self._lock:
                self._running.remove(check)
                self._begin()

    def _begin(self) -> None:
        while self._waiting and len(self._running) < self._at_once:
            check = self._by_turn()[0]
            self._waiting.remove(check)
            self._running.append(check)
            check.decided.set()

    def _by_turn(self) -> Sequence[_Check]:
        """Return the waiting checks, the next one first."""
        before = [check.source for check in self._running]
        shares: list[tuple[int, int, _Check]] = []
        for check in self._waiting:
            shares.append((self._sources.in_vain(check.source) + before.count(check.source), len(shares), check))
            before.append(check.source)
        return [check for *_, check in sorted(shares, key=lambda share: share[:2])]


def _user(source: str) -> str:
    """Return the address for what its user may have: the network of an IPv6 address."""
    try:
        address = ipaddress.ip_address(source)
    except ValueError:
        return source
    if isinstance(address, ipaddress.IPv4Address):
        return source
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((int(address), _OF_ONE_USER), strict=False))


PATH = "/ui/session"
#: Maximum bytes of a request, and levels of its JSON.
_MOST, _LEVELS = 16 * 1024, 2
#: Seconds that Keystone may take.
_TIMEOUT_S = 10.0
#: Requests that wait for Keystone at the same time, and that wait for these.
_AT_ONCE, _WAITING = 2, 2
_LONGEST = 4096
_TEXTS = ("user", "password", "user_domain", "project", "project_domain")
_REQUIRED = ("user", "password")


class Session:
    """Replies to ``/ui/session``; everything else goes to ``app``.

    :raises ConfigurationError: passwords are to be accepted, but Keystone does not check tokens, or has no known URL
    """

    def __init__(self, app: WSGIApplication, conf: cfg.ConfigOpts, clock: Callable[[], float] = time.monotonic) -> None:
        self._app = app
        self._is_on = conf.api.ui_password_login
        if not self._is_on:
            return
        if conf.auth_strategy != "keystone" or not conf.keystone_authtoken.www_authenticate_uri:
            raise ConfigurationError("[api]ui_password_login needs [DEFAULT]auth_strategy = keystone and "
                                     "[keystone_authtoken]www_authenticate_uri, the URL of the identity service.")
        base = conf.keystone_authtoken.www_authenticate_uri.rstrip("/")
        self._url = f"{base if base.endswith('/v3') else base + '/v3'}/auth/tokens"
        self._verify = not conf.keystone_authtoken.insecure and (conf.keystone_authtoken.cafile or True)
        self._sources = Sources(clock)
        self._checks = PasswordChecks(self._sources, _AT_ONCE, _AT_ONCE + _WAITING)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if environ.get("PATH_INFO") != PATH:
            return self._app(environ, start_response)
        try:
            reply = self._reply(environ)
        except IronicRulesError as error:
            fault = faults.from_error(error)
        else:
            fault = faults.Fault(200, [faults.CONTENT_TYPE, ("Cache-Control", "no-store")], orjson.dumps(reply))
        return faults.send(fault, environ, start_response)

    def _reply(self, environ: WSGIEnvironment) -> JSONObject:
        if environ["REQUEST_METHOD"] in ("GET", "HEAD"):
            return {"password": self._is_on}
        if environ["REQUEST_METHOD"] != "POST":
            raise MethodNotAllowed()
        if not self._is_on:
            raise NotFound("Passwords are not accepted here ([api]ui_password_login is false).")
        credentials = _given(environ)
        source = environ.get("REMOTE_ADDR", "")
        with self._checks.turn(source):
            token = self._ask(_request(credentials))
            self._sources.note(source, token is not None)
        if token is None:
            raise LoginRefused()
        return {"token": token}

    def _ask(self, body: JSONObject) -> str | None:
        """Return Keystone's token; None if it refuses the user.

        :raises Unavailable: 503
        """
        import httpx  # most services need none of it

        limit = RequestDeadline(_TIMEOUT_S)
        try:
            # Only the head of the answer is read.
            with (limit, httpx.Client(verify=self._verify, trust_env=False, timeout=_TIMEOUT_S) as client,
                  client.stream("POST", self._url, json=body, params={"nocatalog": ""},
                                extensions=limit.extensions) as answer):
                status, token = answer.status_code, answer.headers.get("X-Subject-Token")
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as exc:
            LOG.error("The identity service does not answer: %s", type(exc).__name__)
            raise Unavailable() from None
        if status == 201 and token:
            return str(token)
        if status not in (400, 401, 403, 404):
            LOG.error("The identity service answers a log-in with status %d", status)
            raise Unavailable()
        return None


def _given(environ: WSGIEnvironment) -> JSONObject:
    """Return the fields of the request.

    :raises Invalid: 400, with pointers
    """
    length = environ.get("CONTENT_LENGTH") or ""
    if not length.isdecimal() or int(length) > _MOST:
        raise Invalid(f"The body must be JSON of at most {_MOST} bytes, with its Content-Length.")
    value = body.parse(environ["wsgi.input"].read(int(length)), _LEVELS)
    if not isinstance(value, dict):
        raise Invalid("The body must be an object.")
    problems = [Problem(f"/{name}", "unknown; expected user, password, user_domain, project, project_domain or system")
                for name in value if name not in (*_TEXTS, "system")]
    problems += [Problem(f"/{name}", f"must be a text of 1 to {_LONGEST} characters") for name in _TEXTS
                 if (name in value or name in _REQUIRED) and not _is_text(value.get(name))]
    if not isinstance(value.get("system", False), bool):
        problems.append(Problem("/system", "must be true or false"))
    elif value.get("system", False) == ("project" in value):
        problems.append(Problem("/project", "expected either a project, or system = true"))
    elif value.get("system", False) and "project_domain" in value:
        problems.append(Problem("/project_domain", "expected only with a project"))
    if problems:
        raise Invalid(problems=problems)
    return value


def _is_text(value: JSON) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _LONGEST


def _request(credentials: JSONObject) -> JSONObject:
    """Return the body of Keystone's ``POST /v3/auth/tokens``."""
    domain = {"name": credentials.get("user_domain", "Default")}
    user = {"name": credentials["user"], "password": credentials["password"], "domain": domain}
    scope: JSONObject = {"system": {"all": True}} if credentials.get("system") else {"project": {
        "name": credentials["project"], "domain": {"name": credentials.get("project_domain", "Default")}}}
    return {"auth": {"identity": {"methods": ["password"], "password": {"user": user}}, "scope": scope}}
