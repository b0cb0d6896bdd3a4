"""The entry point of WSGI servers: ``gunicorn ironic_rules.api.wsgi:application``.

Configuration files are found as the commands find them (``/etc/ironic-rules/ironic-rules.conf``, …), or are named by
the environment variable ``IRONIC_RULES_CONFIG_FILE``, separated by ``:``.
"""

from __future__ import annotations

import os
from typing import Any

import ironic_rules.cmd  # noqa: F401  (selects the threading backend, before oslo.messaging is imported)
from ironic_rules import service
from ironic_rules.rpc import transport as rpc_transport


def make_application() -> Any:
    """Return the WSGI application of this process."""
    files = os.environ.get("IRONIC_RULES_CONFIG_FILE")
    conf = service.prepare_config([], config_files=files.split(os.pathsep) if files else None)
    service.setup_logging(conf)
    return service.make_wsgi_app(conf, service.make_database(conf), rpc_transport.get_transport(conf))


application = make_application()
