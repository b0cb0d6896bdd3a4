"""The remains of a ramdisk's report: nothing that only the garbage collector finds, whatever becomes of it.

The collector runs rarely on purpose. An error that knows the frames it came through, in a variable of one of them,
keeps the report in memory until then, and anyone may send reports of megabytes.
"""

from __future__ import annotations

import collections
import gc
from collections.abc import Iterator
from typing import Any

import pytest

from tests.functional import whole as wholes
from tests.functional.installations import only_in_one_process
from tests.functional.whole import Whole

pytestmark = only_in_one_process("its objects are looked for")

RULES = "/v1/inspection_rules"
REFUSE: dict[str, Any] = {"op": "fail", "args": {"msg": "no"}}
SET_DRIVER: dict[str, Any] = {"op": "set-attribute", "args": {"path": "/driver", "value": "{inventory[hostname]}"}}
SET_NAME: dict[str, Any] = {"op": "set-attribute", "args": {"path": "/name", "value": "taken"}}
IN_NET: dict[str, Any] = {"op": "in-net", "args": {"address": "{plugin_data[text]}", "subnet": "192.0.2.0/24"}}
OF_NET: dict[str, Any] = {"op": "in-net", "args": {"address": "192.0.2.1", "subnet": "{plugin_data[text]}"}}
#: the outcome of a report, by the rules that there are: the status of the reply, and the node's state
CASES: dict[str, tuple[list[dict[str, Any]], int, str]] = {
    "accepted": ([], 200, "manageable"),
    "refused by an early rule": ([{"phase": "early", "actions": [REFUSE]}], 404, "inspect wait"),
    "no address for an early rule": (
        [{"phase": "early", "conditions": [IN_NET], "actions": [REFUSE]}], 200, "manageable"),
    "no network for an early rule": (
        [{"phase": "early", "conditions": [OF_NET], "actions": [REFUSE]}], 200, "manageable"),
    "no address": ([{"conditions": [IN_NET], "actions": [REFUSE]}], 200, "manageable"),
    "an unknown driver": ([{"actions": [SET_DRIVER]}], 200, "inspect failed"),
    "a name that cannot be saved": ([{"actions": [SET_NAME]}], 200, "inspect failed"),
    "failed by a rule": ([{"actions": [REFUSE]}], 200, "inspect failed"),
    "failed by a rule before the hooks": ([{"phase": "preprocess", "actions": [REFUSE]}], 200, "inspect failed"),
}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Whole]:
    with wholes.running(tmp_path_factory.mktemp("garbage"), "[conductor]\nheartbeat_interval = 500\n") as found:
        found.enroll("manageable", name="taken")
        yield found


def report(service: Whole, rules: list[dict[str, Any]]) -> tuple[int, str, collections.Counter[str]]:
    """Return the status of the reply to a report, the node's state afterwards, and what only the collector finds."""
    assert service.app.put_json(RULES, {"rules": rules, "prune": True}).status_int == 200
    _, body = service.machine()
    node = service.enroll("inspect wait")
    gc.collect()
    gc.freeze()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        status = service.callback(node, {**body, "text": "x" * 100_000}).status_int
        service.at_rest(node)
        gc.collect()
        kinds = collections.Counter(type(left).__name__ for left in gc.garbage)
        return status, service.row(node).provision_state, kinds
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


@pytest.mark.parametrize("name", CASES)
def test_no_report_leaves_the_frames_that_it_went_through(service: Whole, name: str) -> None:
    rules, status, state = CASES[name]
    report(service, rules)  # what the first one prepares stays
    *found, left = report(service, rules)
    assert found == [status, state]
    assert left.keys().isdisjoint({"frame", "traceback"}), left
