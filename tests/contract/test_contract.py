"""The service does what its description in OpenAPI says: ``tox -e contract`` lets schemathesis try every operation.

schemathesis derives requests from the description, valid and invalid ones, and checks each reply: no 5xx, no status,
field, header or media type that the description does not declare, no invalid request accepted, no operation without
authentication where one is needed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import bcrypt
import httpx
import pytest

from ironic_rules.api import examples, versions
from tests.functional.processes import standalone
from tests.suites import identity

#: Number of requests for each operation.
CASES = os.environ.get("IRONIC_RULES_TEST_CASES", "50")
#: Checks that do not fit. What a valid request means is beyond JSON schema: steps that no interface has, rules that do
#: not compile, patches of fields that do not exist; and most operations need a state that a single request does not
#: bring about. Deleted resources are requested again on purpose.
NOT_CHECKED = "positive_data_acceptance,use_after_free,ensure_resource_availability"
#: Identifiers in paths: those of resources that exist, so that not every request ends with 404.
SETTINGS = """\
[parameters]
node = ["{node}", "unknown"]
chassis = ["{chassis}", "unknown"]
driver = ["fake-hardware"]
runbook = ["CUSTOM_A"]
template = ["CUSTOM_A"]
flavor = ["flavor-1"]
"""


def stock(client: httpx.Client) -> str:
    """Create one of each resource that the identifiers name; return the settings of schemathesis."""
    def created(path: str, body: object) -> str:
        reply = client.post(path, json=body)
        assert reply.is_success, reply.text
        return str(reply.json().get("uuid"))

    node = created("/v1/nodes", {"driver": "fake-hardware"})
    chassis = created("/v1/chassis", {})
    created("/v1/runbooks", {"name": "CUSTOM_A", "steps": [examples.RUNBOOK_STEP]})
    created("/v1/deploy_templates", {"name": "CUSTOM_A", "steps": [examples.STEP]})
    created("/v1/flavors", {"flavor": {"name": "baremetal", "id": "flavor-1", "ram": 1, "vcpus": 1, "disk": 1}})
    return SETTINGS.format(node=node, chassis=chassis)


@pytest.mark.parametrize("authentication", ["noauth", "http_basic", "keystone"])
def test_every_operation_does_what_the_description_says(tmp_path: Path, authentication: str) -> None:
    program = shutil.which("schemathesis")
    assert program is not None, "schemathesis is not installed"
    (tmp_path / "users").write_bytes(b"admin:" + bcrypt.hashpw(b"secret", bcrypt.gensalt(4)))
    with identity.running() as keystone:
        config, headers, skipped = {
            "noauth": ("", {}, ",ignored_auth"),
            "http_basic": (f"[DEFAULT]\nauth_strategy = http_basic\nhttp_basic_auth_user_file = {tmp_path / 'users'}\n",
                           # After some wrong passwords the next one gets 429.
                           {"Authorization": "Basic YWRtaW46c2VjcmV0"}, ",ignored_auth"),
            "keystone": (keystone.configuration(), {"X-Auth-Token": "admin:system"}, ""),
        }[authentication]
        headers["X-OpenStack-Ironic-API-Version"] = versions.MAX_STRING
        with standalone(tmp_path, config=config) as (_, url):
            with httpx.Client(base_url=url, headers=headers) as client:
                (tmp_path / "schemathesis.toml").write_text(stock(client))
            done = subprocess.run(
                [program, "--config-file", str(tmp_path / "schemathesis.toml"), "run", f"{url}/v1/openapi.json",
                 *(f"--header={name}: {value}" for name, value in headers.items()),
                 "--exclude-checks", NOT_CHECKED + skipped, "--phases", "examples,fuzzing", "--max-examples", CASES,
                 "--no-shrink", "--seed", os.environ.get("IRONIC_RULES_TEST_SEED", "1"),
                 "--suppress-health-check", "all", "--no-color"],
                cwd=tmp_path, capture_output=True, text=True, check=False)

    failures = done.stdout.partition("FAILURES")[2].partition("WARNINGS")[0]
    assert done.returncode == 0, failures or done.stdout + done.stderr
