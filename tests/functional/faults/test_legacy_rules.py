"""A conductor is killed while legacy rules take values back and write others: what they own and the node agree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.functional.brokers import temporary_vhost
from tests.functional.databases import migrated_database
from tests.functional.faults.conftest import Api, FaultyCluster
from tests.functional.processes import Process, wait_for

pytestmark = pytest.mark.long

#: From the passes to the last statement of the transaction, in order.
POINTS = [
    "ironic_rules.legacy.rule_set:_Run.take_back:after",
    "ironic_rules.legacy.rule_set:_Run.matching:after",
    "ironic_rules.legacy.rule_set:_Run.act:after",
    "ironic_rules.conductor.task_store:save:after",
    "ironic_rules.db.legacy_values:save:after",
    "ironic_rules.db.node_records:add_inspection:after",
]
#: An inspection is resumed at most so many times: the last time by a conductor that lives.
DEATHS = 5
HOST = "conductor"
LARGE, SMALL = 8192, 2048


class Site:
    """An API, one conductor after the other with the same name, and a node with legacy rules."""

    def __init__(self, cluster: FaultyCluster, api: Api) -> None:
        self.cluster, self.api = cluster, api
        self._started = 0
        self._sound: Process | None = None
        self.live()
        rules: list[dict[str, Any]] = [
            {"conditions": [{"field": "memory_mb", "op": "ge", "value": 4096}], "actions": [
                {"action": "set-capability", "name": "memory", "value": "much"},
                {"action": "append-attribute", "path": "/extra/list", "value": "much"},
                {"action": "add-trait", "name": "CUSTOM_MUCH"}]},
            {"actions": [{"action": "set-attribute", "path": "/extra/memory", "value": "{data[memory_mb]}"}]}]
        for rule in rules:
            assert api("POST", "/v1/rules", rule).status_code == 201
        self.uuid, self._body = api.waiting(properties={"capabilities": "shelf:3"}, extra={"list": ["by hand"]})
        self.memory_mb = SMALL
        self.report(SMALL)
        self.rests()

    def report(self, memory_mb: int) -> None:
        """Send what the ramdisk reports of a machine with that memory."""
        self._body["inventory"]["memory"] = {"physical_mb": memory_mb, "total": memory_mb * 2**20}
        self.api("POST", f"/v1/continue_inspection?node_uuid={self.uuid}", self._body)

    def live(self) -> None:
        """Start a conductor without a fault."""
        self._started += 1
        self._sound = self.cluster._faulty(f"sound-{self._started}", ["ironic_rules.cmd.conductor"], {}, HOST)
        self._sound.printed("is running")

    def doomed(self, point: str) -> Process:
        """Start a conductor that kills itself at a point, in the place of the one without a fault."""
        if self._sound is not None:
            self._sound.terminate()
            self._sound = None
        self._started += 1
        return self.cluster._faulty(f"doomed-{self._started}", ["ironic_rules.cmd.conductor"],
                                    {"IRONIC_RULES_TEST_DIES_AT": point}, HOST)

    def wait_for_death(self, doomed: Process, memory_mb: int | None = None) -> None:
        """Wait until a conductor has killed itself, and report until then, as a ramdisk without an answer does."""

        def died() -> bool:
            if doomed.is_running() and memory_mb is not None:
                self.report(memory_mb)
            return not doomed.is_running()

        wait_for("the death", died)
        assert doomed.status == -9

    def rests(self) -> None:
        wait_for("the end of the inspection", lambda: self.api.state(self.uuid) == "manageable")

    def found(self) -> dict[str, Any]:
        """Return what rules have written, and what they own."""
        node = self.api("GET", f"/v1/nodes/{self.uuid}").json()
        owned = self.api("GET", f"/v1/nodes/{self.uuid}/legacy_values").json()["legacy_values"]
        return {"capabilities": set(node["properties"]["capabilities"].split(",")), "extra": node["extra"],
                "traits": node["traits"], "owned": {(value["place"], value["written"]) for value in owned}}

    def expected(self, memory_mb: int) -> dict[str, Any]:
        much = memory_mb >= 4096
        owned = {("/extra/memory", str(memory_mb))}
        if much:
            owned |= {("memory", "much"), ("/extra/list/-", "much"), ("CUSTOM_MUCH", True)}
        return {"capabilities": {"shelf:3"} | ({"memory:much"} if much else set()),
                "extra": {"list": ["by hand", *["much"] * much], "memory": str(memory_mb)},
                "traits": ["CUSTOM_MUCH"] * much, "owned": owned}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with migrated_database("mysql") as database, temporary_vhost() as transport:
        cluster = FaultyCluster(tmp_path_factory.mktemp("legacy"), database, transport)
        try:
            api = Api(cluster.api("api")[1])
            yield Site(cluster, api)
            api.close()
        finally:
            cluster.close()


@pytest.mark.parametrize("point", POINTS)
def test_what_is_owned_and_the_node_agree_if_conductors_are_killed_ten_times(site: Site, point: str) -> None:
    for _ in range(2):
        before, now = site.memory_mb, LARGE if site.memory_mb == SMALL else SMALL
        site.api.patiently("PUT", f"/v1/nodes/{site.uuid}/states/provision", {"target": "inspect"})
        wait_for("the ramdisk's turn", lambda: site.api.state(site.uuid) == "inspect wait")
        doomed = site.doomed(point)
        doomed.printed("is running")
        site.wait_for_death(doomed, now)
        assert site.found() == site.expected(before)
        for _ in range(DEATHS - 1):
            site.wait_for_death(site.doomed(point))
            assert site.found() == site.expected(before)
        site.live()
        site.rests()
        assert site.found() == site.expected(now)
        site.memory_mb = now
