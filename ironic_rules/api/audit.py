"""The audit log: who has changed what, from where, and whether it was allowed, as lines of JSON in a file of its own.

Each request that changes something has a line, and each one that was refused with 401 or 403. Secrets are concealed as
everywhere; what rules consist of, which may contain some, is in the revisions of the rules. Lines of a flood of refused
logins are counted instead. Another program rotates the file: it is opened again when it was moved away.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import datetime
import logging
import logging.handlers
import os
import pwd
import queue
import re
import threading
from collections.abc import Iterable
from typing import Any, Final
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import orjson
from oslo_config import cfg
from oslo_db import exception as db_exc

from ironic_rules import context
from ironic_rules.api import routes
from ironic_rules.db import outbox
from ironic_rules.db.session import Database
from ironic_rules.exceptions import ConfigurationError
from ironic_rules.inspection.journal import Lines
from ironic_rules.metrics.numbers import Numbers
from ironic_rules.models import events, secrets
from ironic_rules.models.documents import JSON, JSONObject
from ironic_rules.text import printable

LOG = logging.getLogger(__name__)

_READING = frozenset({"GET", "HEAD", "OPTIONS"})
_REFUSED = frozenset({"401", "403"})
#: The path of the heartbeats of agents, which come every few seconds, and change nothing that a user sees.
_HEARTBEAT = "/v1/heartbeat/{node}"
#: Lines about refused logins: so many at once, and so many per second on average.
_AT_ONCE, _PER_SECOND = 200, 5.0
#: Bodies of more bytes are not in the log: inventories.
_MOST_BYTES = 65536
#: Parts of bodies that are not shown, by the beginnings of paths: what they contain is not recognized by its key.
_HIDDEN: Final = (
    ("/v1/inspection_rules", frozenset({"actions", "conditions"})), ("/v1/rules", frozenset({"actions", "conditions"})),
    ("/v1/webhooks", frozenset({"url"})))
#: Paths of requests whose bodies are not shown: what a ramdisk sends, and logins.
_WITHOUT_BODY = re.compile(r"/v1/continue_inspection\b|/ui\b")
#: Events that wait to be stored, and how many one transaction stores.
_WAITING, _BATCH = 1000, 100


class _File(logging.handlers.WatchedFileHandler):
    """The file. The log of the process reports lines that cannot be written."""

    def handleError(self, record: logging.LogRecord) -> None:
        LOG.error("A line of the audit log cannot be written to %s", self.baseFilename, exc_info=True)


class _Events:
    """Stores records as events, in a thread: a request does not wait, and a flood is no flood of transactions."""

    def __init__(self, db: Database, numbers: Numbers) -> None:
        self._db, self._numbers = db, numbers
        self._queue: queue.Queue[JSONObject] = queue.Queue(_WAITING)
        threading.Thread(target=self._run, name="audit", daemon=True).start()

    def put(self, record: JSONObject) -> None:
        """Store a record soon, or count it if too many wait."""
        try:
            self._queue.put_nowait(record)
        except queue.Full:
            self._numbers.count("audit_events_dropped")

    def _run(self) -> None:
        while True:
            batch = [self._queue.get()]
            with contextlib.suppress(queue.Empty):
                while len(batch) < _BATCH:
                    batch.append(self._queue.get_nowait())
            rows = [events.of_audit(record) for record in batch]
            try:
                self._db.write(lambda conn: outbox.add(conn, rows))  # noqa: B023
            except db_exc.DBError as exc:
                self._numbers.count("audit_events_dropped", by=len(batch))
                LOG.warning("%d events of the audit log cannot be stored: %s", len(batch), exc)
            finally:
                for _ in batch:
                    self._queue.task_done()

    def wait(self) -> None:
        """Wait until all records are stored."""
        self._queue.join()


class Audit:
    """The receivers of records: a file, and events."""

    def __init__(self, conf: cfg.ConfigOpts, db: Database, numbers: Numbers) -> None:
        """Open the file.

        :raises ConfigurationError: it cannot be written, or nothing would read the events
        """
        if conf.audit.events and conf.notification_level is None and not conf.events.webhooks:
            raise ConfigurationError("[audit]events = true: nothing reads these events: set [events]webhooks or "
                                     "[DEFAULT]notification_level, too.")
        self._events = _Events(db, numbers) if conf.audit.events else None
        self._file: logging.Handler | None = None
        if conf.audit.log_file:
            try:
                self._file = _File(conf.audit.log_file, encoding="utf-8")
            except OSError as exc:
                raise ConfigurationError(f"[audit]log_file: {printable(conf.audit.log_file)} cannot be written: "
                                         f"{exc.strerror}.") from exc
            self._file.setFormatter(logging.Formatter("%(message)s"))

    def write(self, record: JSONObject) -> None:
        """Write a record."""
        if self._file is not None:
            line = orjson.dumps(record, default=str).decode()
            self._file.handle(logging.LogRecord("audit", logging.INFO, "", 0, line.replace("%", "%%"), (), None))
        if self._events is not None:
            self._events.put(record)

    def close(self) -> None:
        """Wait until all records are stored, and close the file: the process of a command ends."""
        if self._events is not None:
            self._events.wait()
        if self._file is not None:
            self._file.close()


def make(conf: cfg.ConfigOpts, db: Database, numbers: Numbers) -> Audit | None:
    """Return where the audit goes; None: nothing is audited.

    :raises ConfigurationError: the file cannot be written
    """
    return Audit(conf, db, numbers) if conf.audit.log_file or conf.audit.events else None


class AuditedRequests:
    """Writes a record when the reply to a request starts that is audited."""

    def __init__(self, app: WSGIApplication, root: routes.Resource, audit: Audit) -> None:
        self._app, self._audit = app, audit
        self._logins = Lines(_AT_ONCE, _PER_SECOND)
        self._routes: dict[Any, str] = {}
        for route in routes.walk_routes(root):
            self._routes.setdefault(route.controller, route.path)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        with context.noting_changes() as changes:

            def start(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
                self._note(environ, status[:3], changes)
                return start_response(status, headers, exc_info) if exc_info else start_response(status, headers)

            return self._app(environ, start)

    def _note(self, environ: WSGIEnvironment, status: str, changes: list[context.Change]) -> None:
        if environ["REQUEST_METHOD"] in _READING and status not in _REFUSED:
            return
        match = environ.get("ironic_rules.found")
        route = None if match is None else self._routes.get(match.controller)
        if route == _HEARTBEAT:
            return
        unwritten = self._logins.take() if status == "401" else 0
        if unwritten is None:
            return
        try:
            record = _record(environ, status, route, changes)
        except Exception:  # a request that was done must be answered, whatever it contains
            LOG.exception("The audit log has no line of request %s", environ.get("openstack.request_id"))
            return
        self._audit.write(record if not unwritten else {**record, "unwritten": unwritten})


def _record(environ: WSGIEnvironment, status: str, route: str | None, changes: list[context.Change]) -> JSONObject:
    caller = context.current()
    match = environ.get("ironic_rules.found")
    is_done = status < "400"
    path = environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")
    record: JSONObject = {
        "time": events.moment(datetime.datetime.now(datetime.UTC)), "request_id": environ.get("openstack.request_id"),
        "user": caller and caller.user_id, "project": caller and caller.project_id,
        "address": environ.get("REMOTE_ADDR"), "method": environ["REQUEST_METHOD"], "path": printable(path, 1024),
        "route": route, "policy": None if match is None or match.controller is None else match.controller.route.policy,
        "status": int(status), "outcome": "success" if is_done else "refused" if status in _REFUSED else "failure"}
    if status == "401" and (login := _login(environ)) is not None:
        record["login"] = login
    if (content := _content(environ)) is not None:
        record["request"] = content
    if changes:
        record["changes"] = [_change(each) for each in changes]
    return record


def of_command(command: str, changes: Iterable[context.Change], error: BaseException | str | None) -> JSONObject:
    """Return the record of what a command has changed, or of why it has failed.

    :param error: None: it has not
    """
    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        user = str(os.getuid())
    record: JSONObject = {"time": events.moment(datetime.datetime.now(datetime.UTC)), "user": user, "command": command,
                          "outcome": "success" if error is None else "failure"}
    if error is not None:
        record["error"] = secrets.message(str(error) or type(error).__name__)
    if shown := [_change(each) for each in changes]:
        record["changes"] = shown
    return record


def _login(environ: WSGIEnvironment) -> str | None:
    """Return the name with which a client has tried to log in."""
    scheme, _, value = environ.get("HTTP_AUTHORIZATION", "").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        return printable(base64.b64decode(value, validate=True).partition(b":")[0].decode("utf-8", "replace"), 64)
    except (binascii.Error, ValueError):
        return None


def _content(environ: WSGIEnvironment) -> JSON:
    raw: bytes = environ.get("ironic_rules.body", b"")
    # The path as it is routed: below the prefix of a WSGI server, and without empty segments.
    path = "".join(f"/{segment}" for segment in environ.get("PATH_INFO", "").split("/") if segment)
    if not raw or _WITHOUT_BODY.match(path):
        return None
    if len(raw) > _MOST_BYTES:
        return f"{len(raw)} bytes"
    try:
        value: JSON = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return f"{len(raw)} bytes that are no JSON"
    hidden = next((names for beginning, names in _HIDDEN if path.startswith(beginning)), frozenset[str]())
    if isinstance(value, list):
        return [_operation(each, hidden) for each in value]
    return _concealed(value, hidden)


def _operation(operation: JSON, hidden: frozenset[str]) -> JSON:
    """Return an operation of a JSON patch, or an item of another list, without secrets."""
    if not isinstance(operation, dict) or not isinstance(path := operation.get("path"), str):
        return _concealed(operation, hidden)
    shown = {name: _concealed(value, hidden) for name, value in operation.items()}
    if "value" in shown and (secrets.is_secret_path(path) or path.strip("/").partition("/")[0] in hidden):
        shown["value"] = secrets.MASK
    return shown


def _concealed(value: JSON, hidden: frozenset[str]) -> JSON:
    """Return JSON without secrets, and without what is ``hidden``, also in lists of resources."""
    if isinstance(value, dict):
        return {name: secrets.MASK if name in hidden else _concealed(item, hidden) if hidden else item
                for name, item in secrets.mask(value).items()}
    if isinstance(value, list):
        return [_concealed(item, hidden) for item in value]
    return secrets.mask(value)  # type: ignore[no-any-return]


def _change(change: context.Change) -> JSONObject:
    return {"object": change.kind, "id": change.ident, "action": change.action, "difference": change.difference}
