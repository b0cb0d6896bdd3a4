"""What every test gets: the threading backend, chosen before anything imports oslo.messaging."""

from __future__ import annotations

import ironic_rules.cmd  # noqa: F401  (selects the backend)
