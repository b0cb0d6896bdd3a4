"""The real ironic-python-agent is the rescue system of a machine, over TLS."""

from __future__ import annotations

import pytest
from oslo_utils import secretutils

from tests.functional.clients import machines

# The endpoint is a fixture.
from tests.functional.clients.test_ipa_deployment import endpoint as endpoint
from tests.functional.clients.test_ipa_deployment import provision, ramdisk

pytestmark = pytest.mark.slow


def test_the_agent_gets_the_password_and_the_instance_boots_again(endpoint, tmp_path):
    machine = machines.machine(71)
    machines.call(endpoint, "POST", "nodes", {
        "uuid": machine.uuid, "driver": "fake-hardware", "rescue_interface": "agent"})
    machines.call(endpoint, "POST", "ports", {"node_uuid": machine.uuid, "address": machine.pxe_mac})
    for target, state in (("manage", "manageable"), ("adopt", "active")):
        provision(endpoint, machine, target)
        machines.wait_for_state(endpoint, machine.uuid, state)

    provision(endpoint, machine, "rescue", rescue_password="correct horse")
    machines.wait_for_state(endpoint, machine.uuid, "rescue wait")
    with ramdisk(endpoint, machine, tmp_path / "ramdisk"):
        shown = machines.wait_for_state(endpoint, machine.uuid, "rescue")
    hashed = (tmp_path / "ramdisk" / "ipa-rescue-password").read_text()
    assert hashed.startswith("$6$")
    assert secretutils.crypt_password("correct horse", hashed) == hashed
    assert (shown["power_state"], shown["last_error"]) == ("power on", None)
    assert "correct horse" not in str(shown)

    provision(endpoint, machine, "unrescue")
    shown = machines.wait_for_state(endpoint, machine.uuid, "active")
    assert (shown["power_state"], shown["instance_info"]) == ("power on", {})
    assert not [key for key in shown["driver_internal_info"] if key.startswith(("rescue", "agent_url"))]
