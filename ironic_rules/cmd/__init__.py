"""The commands. Importing this package selects oslo.service's threading backend.

That has to happen before oslo.messaging is imported, which would otherwise select eventlet for the whole process.
"""

import sys

# futurist and oslo.utils import eventlet if it is installed, and oslo.service installs it: 10 MiB of memory and a
# deprecation warning at every start, without any use. With None, the import fails as if it were not installed.
sys.modules.setdefault("eventlet", None)  # type: ignore[arg-type]

from oslo_service import backend  # noqa: E402

backend.init_backend(backend.BackendType.THREADING)
