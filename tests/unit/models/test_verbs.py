"""Verbs that a node allows, in the order in which Ironic refuses them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ironic_rules.exceptions import Invalid, IronicRulesError, NodeLocked, Wording, invalid_state, node_protected
from ironic_rules.models import states
from tests.walking import walking
from tests.wordings import refused

UUID = "6eb2c0c4-1f57-4ac4-9f0f-6f0f8bd8c3b1"
DEPLOYS_IN_MAINTENANCE = "provisioning operation can't be performed on node"


def node(state: str, **fields: Any) -> Any:
    return SimpleNamespace(**{"uuid": UUID, "provision_state": state, "target_provision_state": None,
                              "maintenance": False, "protected": False, "retired": False, "reservation": None,
                              **fields})


@walking("state, fields, verb, error, text", [
    ("available", {"maintenance": True}, "active", Invalid, DEPLOYS_IN_MAINTENANCE),
    ("active", {"maintenance": True, "protected": True}, "rebuild", Invalid, DEPLOYS_IN_MAINTENANCE),
    ("enroll", {"maintenance": True}, "active", Invalid, DEPLOYS_IN_MAINTENANCE),
    ("manageable", {"retired": True}, "provide", Invalid, "it is retired"),
    ("active", {"protected": True}, "deleted", node_protected, "does not allow undeploy"),
    ("enroll", {"protected": True}, "deleted", node_protected, "does not allow undeploy"),
    ("enroll", {}, "inspect", invalid_state, 'requested action "undeploy" can not be performed'),
    ("enroll", {"maintenance": True}, "clean", invalid_state, "can not be performed"),
    ("enroll", {"reservation": "other"}, "inspect", NodeLocked, "is locked by host other"),
    ("enroll", {"reservation": "own"}, "inspect", invalid_state, "can not be performed"),
    ("enroll", {}, "done", invalid_state, "can not be performed"),
    ("manageable", {"maintenance": True}, "clean", Invalid, "The clean operation can't be performed"),
    ("active", {"maintenance": True}, "service", Invalid, "The service operation can't be performed"),
])
def test_what_a_node_does_not_allow(
        state: str, fields: dict[str, Any], verb: str, error: type[IronicRulesError] | Wording[IronicRulesError],
        text: str) -> None:
    with refused(error, match=text) as caught:
        states.after_verb(node(state, **fields), verb, requested="undeploy", holder="own")
    assert type(caught.value) is (error.error if isinstance(error, Wording) else error)


@walking("state, fields, verb, leads_to", [
    ("manageable", {"maintenance": True}, "inspect", ("inspecting", "manageable")),
    ("manageable", {"reservation": "other"}, "provide", ("cleaning", "available")),
    ("active", {"protected": True, "maintenance": True}, "adopt", None),
    ("manageable", {}, "clean", ("cleaning", "manageable")),
])
def test_what_a_node_allows(state: str, fields: dict[str, Any], verb: str, leads_to: Any) -> None:
    found = states.after_event(node(state, **fields), verb)
    assert found == leads_to
    if found is not None:
        assert states.after_verb(node(state, **fields), verb) == found


@walking("state", [states.CLEANING, states.CLEANWAIT])
@walking("target", [states.MANAGEABLE, states.AVAILABLE])
def test_cleaning_ends_where_it_was_going_to(state: str, target: str) -> None:
    failed = states.after_event(node(state, target_provision_state=target), "fail")
    assert failed == (states.CLEANFAIL, target)
