"""The commands. Importing this package selects oslo.service's threading backend.

The backend must be selected before oslo.messaging is imported, which would otherwise select eventlet for the process.
"""

import gc
import sys

# futurist and oslo.utils import eventlet if it is installed, and oslo.service installs it: 10 MiB of memory and a
# deprecation warning at every start, without any use. With None, the import fails as if it were not installed.
sys.modules.setdefault("eventlet", None)  # type: ignore[arg-type]

# Nearly everything that is imported stays, so the collector would look at it again and again: 0.1 s of each start.
# Commands set their own threshold when they have started (lifecycle.settle).
gc.set_threshold(100_000, 10, 10)

from oslo_service import backend  # noqa: E402

backend.init_backend(backend.BackendType.THREADING)
