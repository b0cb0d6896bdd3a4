import pytest

from ironic_rules.exceptions import DriverNotFound, InterfaceNotFound
from ironic_rules.hardware.selection import choose_interfaces, union
from ironic_rules.models.nodes import INTERFACE_FIELDS, INTERFACES


def description(**offers):
    """A description of hardware type ``h`` that offers ``fake`` for every kind, and ``offers`` instead."""
    return {"h": {kind: offers.get(kind, {"enabled": ["fake"], "default": "fake"}) for kind in INTERFACES}}


def test_every_interface_gets_its_default():
    assert choose_interfaces(description(), "h", {}) == dict.fromkeys(INTERFACE_FIELDS, "fake")


def test_a_requested_interface_is_taken():
    offered = description(inspect={"enabled": ["agent", "no-inspect"], "default": "agent"})

    chosen = choose_interfaces(offered, "h", {"inspect_interface": "no-inspect", "power_interface": None, "name": "n"})

    assert chosen["inspect_interface"] == "no-inspect"
    assert chosen["power_interface"] == "fake"


def test_an_unknown_driver_is_refused():
    with pytest.raises(DriverNotFound, match="nosuch"):
        choose_interfaces(description(), "nosuch", {})


def test_an_interface_that_is_not_offered_is_refused_with_the_valid_ones():
    offered = description(inspect={"enabled": ["agent", "no-inspect"], "default": "agent"})

    with pytest.raises(InterfaceNotFound, match=r"inspect interface 'nosuch'\. Valid: agent, no-inspect"):
        choose_interfaces(offered, "h", {"inspect_interface": "nosuch"})


def test_the_union_has_what_any_conductor_offers():
    first = description(raid={"enabled": ["no-raid"], "default": "no-raid"})
    second = {**description(raid={"enabled": ["fake", "no-raid"], "default": "fake"}), "other": {}}

    merged = union([first, second])

    assert merged["h"]["raid"] == {"enabled": ["no-raid", "fake"], "default": "no-raid"}
    assert "other" in merged


def test_the_union_changes_none_of_its_parts():
    first = description()

    union([first, description(raid={"enabled": ["no-raid"], "default": "no-raid"})])

    assert first == description()


def test_the_union_of_nothing_offers_nothing():
    assert union([]) == {}
