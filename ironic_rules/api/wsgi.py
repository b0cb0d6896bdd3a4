"""The entry point for WSGI servers: ``gunicorn ironic_rules.api.wsgi:application``.

Configuration files are found as by the commands (``/etc/ironic-rules/ironic-rules.conf``, …), or are listed in the
environment variable ``IRONIC_RULES_CONFIG_FILE``, separated by ``:``. ``IRONIC_RULES_AUDIENCE`` is ``ramdisks`` or
``operators`` where each has a server of its own.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Iterable
from typing import Any

from oslo_config import cfg

import ironic_rules.cmd  # noqa: F401  (selects the threading backend, before oslo.messaging is imported)
from ironic_rules import service
from ironic_rules.api import authorization
from ironic_rules.api.routes import Audience
from ironic_rules.exceptions import ConfigurationError
from ironic_rules.models.documents import JSONObject
from ironic_rules.rpc import transport as rpc_transport


class Application:
    """The WSGI application, with connections of the serving process.

    uWSGI, and gunicorn with ``--preload``, import this module once and fork afterwards. Connections to the database and
    the broker do not survive a fork, nor does the thread that waits for RPC replies. So a forked process creates all of
    them again. Errors that would affect every request are raised when the module is imported.

    :raises ConfigurationError: as from the parts of ``service``, e.g. the database's schema is not the current one
    """

    def __init__(self, conf: cfg.ConfigOpts, audience: Audience = Audience.ALL) -> None:
        self._conf = conf
        self._audience = audience
        self._lock = threading.Lock()
        self._process: int | None = None
        self._present: int | None = None
        self._app: Any = None
        self._make()

    def __call__(self, environ: JSONObject, start_response: Any) -> Iterable[bytes]:
        if self._process != os.getpid():
            self._make()
        if self._present != os.getpid():
            self._be_present()
        served: Iterable[bytes] = self._app(environ, start_response)
        return served

    def _be_present(self) -> None:
        """Report this process. Not before it serves: a fork would share the connection."""
        with self._lock:
            if self._present != os.getpid():
                self._present = os.getpid()
                atexit.register(service.be_present(self._conf, self._db, "api").stop)

    def _make(self) -> None:
        with self._lock:
            if self._process != os.getpid():
                self._db = db = service.make_database(self._conf)
                transport = rpc_transport.get_transport(self._conf)
                self._app = service.make_wsgi_app(self._conf, db, transport, self._audience)
                db.dispose()  # looking at the schema left a connection, which a fork would share
                self._process = os.getpid()


def make_application() -> Application:
    """Return the application as configured by the environment.

    :raises ConfigurationError: as from :class:`Application`, or there are no such clients
    """
    value = os.environ.get("IRONIC_RULES_AUDIENCE", Audience.ALL.value)
    if value not in {audience.value for audience in Audience}:
        raise ConfigurationError(f"IRONIC_RULES_AUDIENCE is {value}: use one of "
                                 f"{', '.join(audience.value for audience in Audience)}.")
    files = os.environ.get("IRONIC_RULES_CONFIG_FILE")
    conf = service.prepare_config([], config_files=files.split(os.pathsep) if files else None, api=True)
    service.setup_logging(conf)
    authorization.warn_if_open_to_pages(conf)
    return Application(conf, Audience(value))


application = make_application()
