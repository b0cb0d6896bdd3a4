"""Some processes lack a plug-in that others have: what its rules apply to fails there, and nothing else."""

from __future__ import annotations

import pytest

from tests.functional import plugins
from tests.functional.brokers import temporary_vhost
from tests.functional.databases import migrated_database
from tests.functional.faults.conftest import Api, FaultyCluster
from tests.functional.processes import wait_for

pytestmark = pytest.mark.slow

CONFIG = "[auto_discovery]\nenabled = true\ndriver = fake-hardware\n"
MISSING = "there is no such action"
HOST = "so a plug-in is missing on this host"


class Mixed(FaultyCluster):
    """A cluster of which each process may have the sample package."""

    def __init__(self, *arguments, package):
        super().__init__(*arguments, CONFIG)
        self._package = package
        self._clients = []

    def begin(self, kind, name, *arguments, with_plugin):
        """Start a process without waiting for it: others can start meanwhile."""
        # Nodes with this conductor_group are handled by the conductor without the package, others by the other one.
        extra = "[conductor]\nconductor_group = bare\n" if (kind, name) == ("conductor", "bare") else ""
        environment = {"PYTHONPATH": str(self._package)} if with_plugin else None
        return self.start(f"ironic_rules.cmd.{kind}", self.configuration(name, extra), name, *arguments,
                          environment=environment)

    def begin_api(self, name, with_plugin):
        return self.begin("api", name, "--port", "0", with_plugin=with_plugin)

    def client(self, process):
        """Wait for an API process; return the API as it shows it."""
        self._clients.append(Api(process.printed(r"listens on (http://\S+)").group(1)))
        return self._clients[-1]

    def close(self):
        for client in self._clients:
            client.close()
        super().close()


def tagging(api, **fields):
    """Create a rule with the action of the package; return its UUID."""
    rule = {"actions": [{"op": "sample-tag", "args": {"name": "seen"}}], **fields}
    return api.patiently("POST", "/v1/inspection_rules", rule).json()["uuid"]


def inspected(api, uuid, body):
    """Let the ramdisk of a waiting node report; return the node at rest."""
    assert api("POST", "/v1/continue_inspection", body).status_code == 200
    wait_for("the end of the inspection", lambda: api.state(uuid) in ("manageable", "inspect failed"))
    return api("GET", f"/v1/nodes/{uuid}").json()


def assert_failed(node, rule):
    assert node["provision_state"] == "inspect failed"
    assert f"Inspection rule {rule} failed at /actions/0/op: it is no longer valid: {MISSING}" in node["last_error"]
    assert HOST in node["last_error"]
    assert node["extra"] == {}


def inspected_again(api, uuid, body):
    api.patiently("PUT", f"/v1/nodes/{uuid}/states/provision", {"target": "inspect"})
    wait_for("inspect wait", lambda: api.state(uuid) == "inspect wait")
    node = inspected(api, uuid, body)
    assert (node["provision_state"], node["extra"]) == ("manageable", {"tags": ["seen"]})


def test_a_conductor_and_an_api_without_the_plugin_of_a_rule(tmp_path):
    package = plugins.installed("sample_actions")
    with migrated_database("postgresql") as database, temporary_vhost() as transport:
        cluster = Mixed(tmp_path, database, transport, package=package)
        try:
            conductors = [cluster.begin("conductor", name, with_plugin=name == "full") for name in ("full", "bare")]
            processes = [cluster.begin_api("full-api", True), cluster.begin_api("bare-api", False)]
            for conductor in conductors:
                conductor.printed("is running")
            full, bare = map(cluster.client, processes)
            main = tagging(full, scope="tagged")

            # Of the conductors: only where the package is missing, and only in the scope of the rule.
            node = inspected(full, *full.waiting(inspection_scope="tagged"))
            assert (node["provision_state"], node["extra"]) == ("manageable", {"tags": ["seen"]})
            late, report = full.waiting(conductor_group="bare", inspection_scope="tagged")
            assert_failed(inspected(full, late, report), main)
            node = inspected(full, *full.waiting(conductor_group="bare", inspection_scope="other"))
            assert (node["provision_state"], node["extra"]) == ("manageable", {})
            assert full("GET", f"/v1/inspection_rules/{main}").json()["valid"] is True
            shown = bare("GET", f"/v1/inspection_rules/{main}").json()
            assert shown["valid"] is False
            assert HOST in str(shown["problems"])

            # Of the APIs: the gate is closed where the early rule cannot run.
            early = tagging(full, phase="early")
            uuid, body = bare.waiting(inspection_scope="tagged")
            assert_failed(inspected(bare, uuid, body), early)
            known = len(bare("GET", "/v1/nodes").json()["nodes"])
            assert bare("POST", "/v1/continue_inspection", Api.machine()[1]).status_code == 404
            assert len(bare("GET", "/v1/nodes").json()["nodes"]) == known
            assert MISSING in (tmp_path / "bare-api.log").read_text()
            assert full("POST", "/v1/continue_inspection", Api.machine()[1]).status_code == 200

            # The package is installed, and the processes are started again.
            for process in (conductors[1], processes[1]):
                process.terminate()
            conductor = cluster.begin("conductor", "bare", with_plugin=True)
            mended = cluster.client(cluster.begin_api("bare-api", True))
            conductor.printed("is running")
            assert mended("GET", f"/v1/inspection_rules/{early}").json()["valid"] is True
            for again in ((late, report), (uuid, body)):
                inspected_again(mended, *again)
            assert mended("POST", "/v1/continue_inspection", Api.machine()[1]).status_code == 200
        finally:
            cluster.close()
