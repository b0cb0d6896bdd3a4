"""``/metrics``: the metrics of this process for Prometheus, if ``[api]serve_metrics`` is set."""

from __future__ import annotations

from ironic_rules.api.expose import expose
from ironic_rules.api.request import Request
from ironic_rules.api.resource import Resource
from ironic_rules.exceptions import NotFound
from ironic_rules.policies import metrics as policies


class MetricsController(Resource):
    """With the credentials and the policy that any other request needs."""

    @expose(policy=policies.GET)
    def get_all(self, request: Request) -> bytes:
        """Return the metrics in the format that the header ``Accept`` selects: Prometheus' text format, or OpenMetrics.

        :raises NotFound: 404, ``[api]serve_metrics`` is not set
        """
        if request.metrics_page is None:
            raise NotFound()
        request.reply.media_type, text = request.metrics_page(request.environ.get("HTTP_ACCEPT", ""))
        return text
