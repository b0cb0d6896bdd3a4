"""Every metric of the API and of conductors, with its labels. The PXE filter's metrics are in its own package.

Labels have few values, which do not depend on what clients send: routes are those of the API, and reasons those of
the code. Rules have their UUIDs, but no more than ``numbers`` allows for a metric.
"""

from __future__ import annotations

from typing import NamedTuple

PREFIX = "ironic_rules_"
COUNTER, GAUGE, HISTOGRAM = "counter", "gauge", "histogram"
#: Upper bounds in seconds.
_OF_REQUESTS = (0.005, 0.025, 0.1, 0.5, 2.0, 10.0, 60.0)
_OF_STAGES = (0.005, 0.025, 0.1, 0.5, 2.0, 10.0, 60.0, 300.0)


class Family(NamedTuple):
    """A metric. ``name`` is without the prefix, and without the ``_total`` that Prometheus shows for counters."""

    name: str
    kind: str
    text: str
    labels: tuple[str, ...] = ()
    #: upper bounds of a histogram
    bounds: tuple[float, ...] = ()

    @property
    def shown(self) -> str:
        """The name as it is in queries; that of a histogram without ``_bucket``, ``_sum`` or ``_count``."""
        return f"{PREFIX}{self.name}" + ("_total" if self.kind == COUNTER else "")


_API = (
    Family("api_requests", COUNTER, "Requests that were answered, by method, route and status.",
           ("method", "route", "status")),
    Family("api_request_duration_seconds", HISTOGRAM, "Seconds from a complete request to the start of its reply.",
           ("route",), _OF_REQUESTS),
    Family("api_threads", GAUGE, "Threads of the API's own HTTP server that are busy, and that are idle.", ("state",)),
    Family("api_requests_waiting", GAUGE, "Complete requests that wait for a thread."),
    Family("api_connections", GAUGE, "Connections to the API's own HTTP server, by what they wait for.", ("phase",)),
    Family("api_connections_refused", COUNTER,
           "Connections that the API's own HTTP server closed, or requests that it refused before they were complete.",
           ("reason",)),
    Family("api_bodies_refused", COUNTER, "Bodies of requests that were refused.", ("reason",)),
    Family("api_callbacks_refused", COUNTER, "Reports of ramdisks that were refused, by reason.", ("reason",)),
    Family("discovered_nodes", COUNTER, "Nodes that discovery has created."),
    Family("rpc_call_duration_seconds", HISTOGRAM, "Seconds that the API waited for a conductor, by call and outcome.",
           ("call", "outcome"), _OF_REQUESTS),
    Family("audit_events_dropped", COUNTER, "Records of the audit log that were not stored as events."),
    Family("rpc_calls_waiting", GAUGE, "Threads of the API that wait for a conductor."),
)
_FLEET = (
    Family("nodes", GAUGE, "Nodes by provision state.", ("provision_state",)),
    Family("nodes_in_maintenance", GAUGE, "Nodes in maintenance."),
    Family("nodes_with_fault", GAUGE, "Nodes by the fault for which the service has put them into maintenance.",
           ("fault",)),
    Family("nodes_in_group", GAUGE, "Nodes by conductor group.", ("conductor_group",)),
    Family("nodes_waiting_longest_seconds", GAUGE,
           "Seconds for which the node that waits longest has been in a state in which it waits for its ramdisk.",
           ("provision_state",)),
    Family("conductors_alive", GAUGE, "Conductors that are alive, for each group that has conductors or nodes.",
           ("conductor_group",)),
    Family("oldest_lock_seconds", GAUGE, "Seconds for which a node has been locked: of the one locked longest."),
    Family("fleet_age_seconds", GAUGE, "Seconds since these gauges of the fleet were read."),
    Family("outbox_oldest_seconds", GAUGE,
           "Seconds for which an event has waited for a receiver: of the one that waits longest."),
    Family("outbox_dead_letters", GAUGE, "Events that were given up and are kept, of all webhooks."),
    Family("inspection_rule_info", GAUGE, "1 for each inspection rule, with its name.", ("rule", "name")),
)
_CONDUCTOR = (
    Family("conductor_slots", GAUGE, "Slots for work on nodes that are taken, and that are free.", ("lane", "state")),
    Family("conductor_work", GAUGE, "Pieces of work that run, and that wait for a thread.", ("lane", "state")),
    Family("conductor_workers_written_off", COUNTER, "Threads that exceeded a deadline and were replaced."),
    Family("conductor_workers_missing", GAUGE, "Threads that were written off and have not returned."),
    Family("inspections", COUNTER, "Inspections that have ended, by outcome and by the stage in which they ended.",
           ("outcome", "stage")),
    Family("inspection_stage_duration_seconds", HISTOGRAM, "Seconds that the stages of inspections took.", ("stage",),
           _OF_STAGES),
    Family("fact_changes", COUNTER,
           "Values of facts that inspections have changed, and those of watched facts that became less.", ("kind",)),
    Family("events_delivered", COUNTER, "Deliveries of events, by receiver and outcome.", ("receiver", "outcome")),
    Family("recoveries", COUNTER, "Nodes whose interrupted work was resumed, or given up.", ("outcome",)),
    Family("dead_conductors", COUNTER, "Conductors that this one has found to be dead."),
    *(Family(f"inspection_rule_{name}", COUNTER, f"Inspections {text}, by the UUID of the rule.", ("rule",))
      for name, text in (
          ("considered", "that have come to an inspection rule"),
          ("evaluated", "in which the index of the rules did not exclude an inspection rule"),
          ("matched", "in which an inspection rule matched"), ("failed", "that an inspection rule has failed"))),
    Family("locks", GAUGE, "Locked nodes of the conductor group whose lock is older than so many seconds.",
           ("older_than",)),
)
FAMILIES = {family.name: family for family in (*_API, *_FLEET, *_CONDUCTOR)}
