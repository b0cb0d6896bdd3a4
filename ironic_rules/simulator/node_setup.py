"""The operator's steps before a ramdisk can report: enroll a node, manage it, start its inspection. And deleting it."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable

from ironic_rules.models import states
from ironic_rules.models.documents import JSONObject
from ironic_rules.simulator.client import ApiError, Client, ClientError
from ironic_rules.simulator.inventories import SimulatedMachine

FIELDS = "uuid,provision_state,target_provision_state,last_error"
_FIRST_POLL_S = 0.02
_SLOWEST_POLL_S = 1.0


class SetupFailed(ClientError):
    """The node did not reach the state in which it can be inspected."""


def enrol(client: Client, machine: SimulatedMachine, driver: str) -> None:
    """Create the machine's node, and a port for the NIC that it boots from, unless they exist.

    :raises ClientError: the service refuses, or the name or address belongs to another node
    """
    body: JSONObject = {"uuid": machine.uuid, "name": machine.name, "driver": driver, "inspect_interface": "agent"}
    if machine.bmc_address:
        body["driver_info"] = {"ipmi_address": machine.bmc_address}
    _create(client, "/v1/nodes", body, lambda: [client.get(f"/v1/nodes/{machine.uuid}", fields="uuid")["uuid"]])
    if machine.pxe_mac:
        port = {"node_uuid": machine.uuid, "address": machine.pxe_mac}
        ports = client.pages("/v1/ports/detail", "ports", address=machine.pxe_mac)
        _create(client, "/v1/ports", port, lambda: [item["node_uuid"] for item in ports])


def start_inspection(client: Client, machine: SimulatedMachine, timeout_s: float) -> None:
    """Move the node from its stable state to ``inspect wait``.

    :raises SetupFailed: it reached another state, or a timeout
    """
    now = get_state(client, machine.uuid)["provision_state"]
    if now == states.ENROLL:
        request_state(client, machine.uuid, "manage")
        wait_for(client, machine.uuid, {states.MANAGEABLE}, {states.ENROLL, states.VERIFYING}, timeout_s)
    if now not in (states.INSPECTWAIT, states.INSPECTING):
        request_state(client, machine.uuid, "inspect")
    # A node that is still manageable or failed has not started yet: before the ramdisk reports, it cannot have ended.
    begun = {states.MANAGEABLE, states.AVAILABLE, states.INSPECTING} | ({now} & {states.INSPECTFAIL})
    wait_for(client, machine.uuid, {states.INSPECTWAIT}, begun, timeout_s)


def request_state(client: Client, ident: str, target: str) -> None:
    """Request a provision state. A refusal after a lost response is no error: the first request may have succeeded.

    :raises ClientError: the request was refused, or the service could not process it until the last retry
    """
    try:
        client.call("PUT", f"/v1/nodes/{ident}/states/provision", {"target": target},
                    headers={"Idempotency-Key": str(uuid.uuid4())})
    except ApiError as exc:
        if not exc.uncertain or exc.status >= 500:
            raise


def get_state(client: Client, ident: str) -> JSONObject:
    """Return uuid, provision_state, target_provision_state and last_error of a node."""
    return client.get(f"/v1/nodes/{ident}", fields=FIELDS)


def wait_for(client: Client, ident: str, goal: set[str], passing: set[str], timeout_s: float) -> JSONObject:
    """Poll, with increasing delays, until the node is in a state of ``goal``; return the result of :func:`get_state`.

    :param passing: states that it may be in before
    :raises SetupFailed: it is in any other state, or ``timeout_s`` seconds have passed
    """
    deadline = time.monotonic() + timeout_s
    pause_s = _FIRST_POLL_S
    while True:
        node = get_state(client, ident)
        state = node["provision_state"]
        if state in goal:
            return node
        expected = " or ".join(sorted(goal))
        if state not in passing or (state == states.ENROLL and node.get("last_error")):
            raise SetupFailed(f"expected {expected}, is {state}: {node.get('last_error') or 'no error given'}")
        if time.monotonic() > deadline:
            raise SetupFailed(f"still {state} after {timeout_s:g} s, expected {expected}")
        client.stop.wait(pause_s)
        pause_s = min(pause_s * 1.6, _SLOWEST_POLL_S)


def delete(client: Client, ident: str) -> None:
    """Delete a node in any state; it may already be deleted.

    :raises ClientError: the service refuses
    """
    try:
        client.call("DELETE", f"/v1/nodes/{ident}", retry_conflict=False)
    except ApiError as exc:
        if exc.status == 404:
            return
    else:
        return
    # Refused in this state: abort a waiting inspection, and set maintenance, which allows deletion.
    for path, body in (("states/provision", {"target": "abort"}), ("maintenance", {"reason": "clean-up"})):
        try:
            client.call("PUT", f"/v1/nodes/{ident}/{path}", body)
        except ApiError:
            continue
    try:
        client.call("DELETE", f"/v1/nodes/{ident}")
    except ApiError as exc:
        if exc.status != 404:
            raise


def _create(client: Client, path: str, body: JSONObject, owners: Callable[[], list[str]]) -> None:
    """Create an object that may already exist; ``owners`` returns the UUID of the node that it then belongs to."""
    try:
        client.call("POST", path, body, retry_conflict=False)
    except ApiError as exc:
        if exc.status != 409:
            raise
        try:
            owner_uuids = owners()
        except ApiError:
            owner_uuids = []
        if owner_uuids != [body.get("node_uuid") or body["uuid"]]:
            raise
