"""``/ui/session``: a user's password becomes a token, by Keystone alone; nothing of it is kept here.

``GET`` tells the page whether passwords are accepted. ``POST`` forwards a user and a password to the identity service
that checks the tokens of all requests, and returns its token.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import orjson
from oslo_config import cfg
from oslo_log import log as logging

from ironic_rules.api import json_body
from ironic_rules.api.middleware.attempts import PasswordChecks, Sources
from ironic_rules.exceptions import (
    ConfigurationError,
    Invalid,
    IronicRulesError,
    LoginRefused,
    MethodNotAllowed,
    NotFound,
    Problem,
    Unavailable,
)
from ironic_rules.hardware.request_deadline import RequestDeadline
from ironic_rules.httpd import faults
from ironic_rules.models.documents import JSON, JSONObject

LOG = logging.getLogger(__name__)

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
        given = _given(environ)
        source = environ.get("REMOTE_ADDR", "")
        with self._checks.turn(source):
            token = self._ask(_request(given))
            self._sources.note(source, token is not None)
        if token is None:
            raise LoginRefused()
        return {"token": token}

    def _ask(self, body: JSONObject) -> str | None:
        """Return Keystone's token; None if it refuses the user.

        :raises Unavailable: 503
        """
        import httpx  # most services need none of it, and it takes 5 MiB

        limit = RequestDeadline(_TIMEOUT_S)
        try:
            # Of the answer only the head is read.
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


def _given(environ: WSGIEnvironment) -> dict[str, Any]:
    """Return the fields of the request.

    :raises Invalid: 400, with pointers
    """
    length = environ.get("CONTENT_LENGTH") or ""
    if not length.isdecimal() or int(length) > _MOST:
        raise Invalid(f"The body must be JSON of at most {_MOST} bytes, with its Content-Length.")
    value = json_body.parse(environ["wsgi.input"].read(int(length)), _LEVELS)
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


def _request(given: JSONObject) -> JSONObject:
    """Return the body of Keystone's ``POST /v3/auth/tokens``."""
    domain = {"name": given.get("user_domain", "Default")}
    user = {"name": given["user"], "password": given["password"], "domain": domain}
    scope: JSONObject = {"system": {"all": True}} if given.get("system") else {"project": {
        "name": given["project"], "domain": {"name": given.get("project_domain", "Default")}}}
    return {"auth": {"identity": {"methods": ["password"], "password": {"user": user}}, "scope": scope}}
