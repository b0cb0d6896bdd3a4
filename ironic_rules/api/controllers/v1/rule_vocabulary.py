"""What a rule can be written with, and machines to try it on: ``/v1/inspection_rules/vocabulary`` and ``…/samples``."""

from __future__ import annotations

from ironic_rules import samples
from ironic_rules.api import versions
from ironic_rules.api.expose import expose
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.db import inventory
from ironic_rules.models.documents import JSONObject
from ironic_rules.policies import inspection_rules as policies
from ironic_rules.rules import vocabulary


class RuleVocabularyController(Resource):
    """Since API 1.96."""

    @expose(since=versions.INSPECTION_RULES, policy=policies.LIST)
    def get_all(self, request: Request) -> JSONObject:
        """Show what rules of this service can be written with.

        ``operators``, ``actions`` (those of other packages included) and ``conversions`` each have a ``name``, a
        ``text`` and an ``example``; ``arguments`` their ``name``, whether one is ``required``, and its ``values`` if
        there are only some. ``paths`` are those that inventories have, ``/interfaces/*/name``: ``*`` is any index or a
        key that is data, and of what is below ``**`` nothing is known.
        """
        with request.db.reader() as conn:
            paths = inventory.list_paths(conn)
        return {**vocabulary(), "paths": paths}


class RuleSamplesController(Resource):
    """Since API 1.96. The inventories of fictitious machines that the package has."""

    @expose(since=versions.INSPECTION_RULES, policy=policies.LIST)
    def get_all(self, request: Request) -> JSONObject:
        """List samples of reports; each ``report`` can be that of a dry run."""
        return {"samples": [{"name": name, "report": samples.inventory(name)} for name in samples.inventory_names()]}
