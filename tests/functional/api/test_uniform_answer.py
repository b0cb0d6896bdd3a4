"""The one answer for every failed callback, with discovery: the same bytes, and about the same work."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import pytest

from ironic_rules import rules
from ironic_rules.api.app import make_app
from ironic_rules.db import inspection_rules, nodes, ports
from ironic_rules.exceptions import NodeLocked, NotFound
from tests.functional.api.conftest import Client
from tests.functional.api.raw import Reply
from tests.functional.api.test_secrecy import (  # noqa: F401 (fixtures are found by their names)
    IDLE,
    MACS,
    NOBODY,
    OTHER,
    WAITING,
    deliver,
    look_up,
    three,
)

#: The reasons to refuse a ramdisk, by what it sends.
CASES: dict[str, Callable[[Client], Reply]] = {
    "known MAC in another state": lambda app: deliver(app, IDLE),
    "known BMC in another state": lambda app: deliver(app, bmc_of=IDLE),
    "known MAC and BMC in another state": lambda app: deliver(app, IDLE, bmc_of=IDLE),
    "new MAC and known BMC in another state": lambda app: deliver(app, NOBODY, bmc_of=IDLE),
    "MACs of two nodes": lambda app: deliver(app, WAITING, OTHER),
    "MACs of two nodes, one idle": lambda app: deliver(app, WAITING, IDLE),
    "BMC of another node": lambda app: deliver(app, WAITING, bmc_of=OTHER),
    "UUID and MAC of two nodes": lambda app: deliver(app, WAITING, uuid=OTHER),
    "unknown UUID": lambda app: deliver(app, uuid=NOBODY),
    "unknown UUID and new MAC": lambda app: deliver(app, NOBODY, uuid=NOBODY),
}
#: Maximum ratio between the work of two refusals; reading every node, or waiting, would be far above.
FACTOR = 3.0
ROUNDS = 40
ATTEMPTS = 4


def new_machine(app: Client) -> Reply:
    return deliver(app, NOBODY, bmc_of=NOBODY)


def refuse_early(db: Any) -> None:
    with db.writer() as conn:
        inspection_rules.create(conn, rules.from_wire({
            "phase": "early", "conditions": [], "actions": [{"op": "fail", "args": {"msg": "no"}}]}))


def reach_the_limit(db: Any, conf: Any) -> None:
    conf.set_override("max_nodes_per_minute", 1, group="auto_discovery")
    with db.writer() as conn:
        nodes.create(conn, {"driver": "fake-hardware", "auto_discovered": True})


def test_m21_a_refusal_does_not_say_whether_there_is_discovery_nor_why_it_enrolled_nothing(
        app, db, three, conf, rpc):  # noqa: F811
    refused = {"discovery is off": new_machine(app)}
    conf.set_override("enabled", True, group="auto_discovery")
    conf.set_override("driver", "fake-hardware", group="auto_discovery")
    refused |= {case: ask(app) for case, ask in CASES.items()}
    conf.set_override("driver", "nosuch", group="auto_discovery")
    refused["no conductor has the driver"] = new_machine(app)
    conf.set_override("driver", "fake-hardware", group="auto_discovery")
    for error in (NotFound("gone"), NodeLocked(node="x", host="y")):
        rpc.fail_with("continue_inspection", error)
        refused[f"another callback was faster: {type(error).__name__}"] = new_machine(app)
    with db.writer() as conn:
        fresh = ports.node_ids_by_addresses(conn, [MACS[NOBODY]])[MACS[NOBODY]]
        nodes.destroy(conn, fresh)
    reach_the_limit(db, conf)
    refused["too many new machines"] = new_machine(app)
    refuse_early(db)
    refused["an early rule"] = deliver(Client(make_app(conf, db, rpc)), NOBODY)
    refused["an early rule, for a node that waits"] = deliver(Client(make_app(conf, db, rpc)), WAITING)

    one = refused["discovery is off"]
    assert one.status == 404
    assert {case: reply for case, reply in refused.items() if reply != one} == {}
    lookups = [look_up(app, NOBODY), look_up(app, IDLE), look_up(app, WAITING, OTHER), look_up(app, uuid=NOBODY)]
    assert [reply.body for reply in lookups] == [one.body] * 4


@pytest.mark.parametrize("discovery", ["off", "at its limit", "refused by an early rule"])
def test_m21_no_refusal_takes_much_longer_than_another(app, db, three, conf, rpc, discovery):  # noqa: F811
    if discovery == "at its limit":
        conf.set_override("enabled", True, group="auto_discovery")
        conf.set_override("driver", "fake-hardware", group="auto_discovery")
        reach_the_limit(db, conf)
    elif discovery == "refused by an early rule":
        refuse_early(db)

    # With a UUID discovery is not tried, and there is less to do. A client that sends one knows that.
    assert_alike(app, {case: ask for case, ask in CASES.items() if "UUID" in case})
    others = {case: ask for case, ask in CASES.items() if "UUID" not in case}
    assert_alike(app, {**others, "new machine": new_machine})


def test_m21_no_failed_lookup_takes_much_longer_than_another(app, three):  # noqa: F811
    assert_alike(app, {
        "unknown MAC": lambda app: look_up(app, NOBODY), "unknown UUID": lambda app: look_up(app, uuid=NOBODY),
        "MAC in another state": lambda app: look_up(app, IDLE), "two nodes": lambda app: look_up(app, WAITING, OTHER),
        "UUID in another state": lambda app: look_up(app, uuid=IDLE),
        "UUID and MAC of two nodes": lambda app: look_up(app, WAITING, uuid=OTHER)})


def assert_alike(app: Client, cases: dict[str, Callable[[Client], Reply]]) -> None:
    """Fail if one of the cases takes much longer than another each time, not just once (other programs run too)."""
    for _ in range(ATTEMPTS):
        medians = measured(app, cases)
        if max(medians.values()) < FACTOR * min(medians.values()):
            return
    pytest.fail(f"medians of {ROUNDS} requests, in seconds: {medians}")


def measured(app: Client, cases: dict[str, Callable[[Client], Reply]]) -> dict[str, float]:
    """Return the median of this thread's processor time by case, the requests taking turns."""
    times: dict[str, list[float]] = {case: [] for case in cases}
    for _ in range(ROUNDS):
        for case, ask in cases.items():
            began = time.thread_time()
            reply = ask(app)
            times[case].append(time.thread_time() - began)
            assert reply.status == 404
    return {case: statistics.median(values) for case, values in times.items()}
