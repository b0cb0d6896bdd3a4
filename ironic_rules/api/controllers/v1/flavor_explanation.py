"""``/v1/flavors/{flavor}/explanation``."""

from __future__ import annotations

from typing import Any

from ironic_rules.api.expose import expose
from ironic_rules.api.resource import Resource
from ironic_rules.policies import flavors as policies


class FlavorExplanationController(Resource):
    """What a flavor does here."""

    @expose(policy=policies.EXPLAIN)
    def get_all(self, flavor: str) -> dict[str, Any]:
        """Show what a flavor requires."""
        return {}
