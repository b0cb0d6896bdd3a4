"""``/v1/flavors/{flavor}/explanation``."""

from __future__ import annotations

from ironic_rules.api import flavor_explanation
from ironic_rules.api.expose import expose
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.api.views import flavor_explanation as views
from ironic_rules.db import flavors
from ironic_rules.models.documents import JSONObject
from ironic_rules.policies import flavors as policies


class FlavorExplanationController(Resource):
    """What a flavor does here; nothing in it is stored."""

    @expose(policy=policies.EXPLAIN)
    def get_all(self, request: Request, flavor: str) -> JSONObject:
        """Show what a flavor requires of nodes, which nodes fit, and what a deployment on one of them would run.

        ``fitting`` are nodes on which an instance could be created now; ``nearly_fitting`` those that lack a single
        trait, capability or state, by what they lack. Both show up to 20 nodes, and the number of all.
        ``deployment`` is what ``/v1/nodes/{node}/deploy_steps`` shows, of a fitting node or one that only its
        state keeps from fitting; ``reason`` says why there are no steps. ``schedulable`` is false if no node could
        ever fit, for the amounts of resources; ``warnings`` says that and whatever else keeps instances from nodes.

        :raises FlavorNotFound: 404
        """
        conf = request.conf
        with request.db.reader() as conn:
            found = flavors.get(conn, flavor, or_name=True)
            told = flavor_explanation.explain(
                conn, found, request.offered_steps, pinned=bool(conf.conductor.pin_release_version),
                disallowed=conf.api.disallow_deploy_steps)
        return views.explanation(request.base, found, told)
