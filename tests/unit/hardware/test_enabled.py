import types

import pytest

from ironic_rules.exceptions import ConfigurationError, DriverNotFound, InterfaceNotFound
from ironic_rules.hardware.absent import NoInspect
from ironic_rules.hardware.base import KINDS, HardwareType
from ironic_rules.hardware.enabled import EnabledHardware
from ironic_rules.hardware.fake import FakePower
from ironic_rules.models.nodes import INTERFACES


def node(driver="fake-hardware", **interfaces):
    return types.SimpleNamespace(driver=driver, **{f"{kind}_interface": interfaces.get(kind) for kind in INTERFACES})


def concrete(cls):
    """Return a subclass of ``cls`` in which every abstract method does nothing."""
    missing = getattr(cls, "__abstractmethods__", ())
    return type(cls.__name__, (cls,), dict.fromkeys(missing, lambda *args: None))


class Documented(FakePower):
    properties = {"power_address": "Where the switch is."}


#: A hardware type whose interfaces are all named x, and these.
Minimal = type("Minimal", (HardwareType,), {f"supported_{kind}_interfaces": ("x",) for kind in KINDS})
MINIMAL = {kind: {"x": concrete(cls)} for kind, cls in KINDS.items()}


def test_the_kinds_are_those_of_the_node_fields():
    assert sorted(KINDS) == sorted(INTERFACES)


def test_the_defaults_are_those_of_the_reference(hardware):
    assert {kind: offer["default"] for kind, offer in hardware.describe()["fake-hardware"].items()} == {
        "bios": "fake", "boot": "fake", "console": "fake", "deploy": "fake", "firmware": "fake", "inspect": "agent",
        "management": "fake", "network": "noop", "power": "fake", "raid": "fake", "rescue": "fake", "storage": "noop",
        "vendor": "fake",
    }


def test_the_description_lists_what_is_enabled(hardware):
    assert hardware.describe()["fake-hardware"]["inspect"]["enabled"] == ["agent", "fake", "no-inspect"]


def test_a_configured_default_wins(conf):
    conf.set_override("default_inspect_interface", "no-inspect")

    assert EnabledHardware(conf).describe()["fake-hardware"]["inspect"]["default"] == "no-inspect"


def test_a_default_that_is_not_enabled_is_refused(conf):
    conf.set_override("default_inspect_interface", "redfish")

    with pytest.raises(ConfigurationError, match="default_inspect_interface is 'redfish'"):
        EnabledHardware(conf)


def test_a_default_that_a_type_does_not_support_is_not_its_default(conf):
    conf.set_override("default_power_interface", "fake")

    loaded = EnabledHardware(conf, {"minimal": Minimal}, {**MINIMAL, "power": {"fake": FakePower, "x": Documented}})

    assert loaded.describe()["minimal"]["power"] == {"enabled": ["x"], "default": "x"}


def test_a_type_without_an_interface_of_some_kind_is_refused(conf):
    conf.set_override("enabled_storage_interfaces", [])

    with pytest.raises(ConfigurationError, match=r"^\[DEFAULT\]enabled_storage_interfaces is empty; hardware type"):
        EnabledHardware(conf)


@pytest.mark.parametrize("option", ["enabled_hardware_types", "enabled_power_interfaces"])
def test_something_enabled_that_is_not_installed_is_named(conf, option):
    conf.set_override(option, ["nosuch"])

    with pytest.raises(ConfigurationError, match=f"{option} names 'nosuch'.*Installed: 'fake"):
        EnabledHardware(conf)


def test_something_enabled_twice_is_refused(conf):
    conf.set_override("enabled_raid_interfaces", ["fake", "fake"])

    with pytest.raises(ConfigurationError, match="'fake' more than once"):
        EnabledHardware(conf)


def test_the_interface_of_a_node_is_the_one_it_names(hardware):
    assert isinstance(hardware.interface(node(inspect="no-inspect"), "inspect"), NoInspect)


def test_a_node_that_names_none_has_the_default(hardware):
    assert isinstance(hardware.interface(node(), "power"), FakePower)


def test_the_interface_is_one_object_for_all_nodes(hardware):
    assert hardware.interface(node(), "power") is hardware.interface(node(power="fake"), "power")


def test_an_interface_that_is_not_enabled_is_refused(hardware):
    with pytest.raises(InterfaceNotFound, match="power interface 'ipmitool'"):
        hardware.interface(node(power="ipmitool"), "power")


def test_a_driver_that_is_not_enabled_is_refused(hardware):
    with pytest.raises(DriverNotFound, match="ipmi"):
        hardware.interface(node(driver="ipmi"), "power")


def test_the_properties_are_those_of_all_enabled_interfaces(conf):
    loaded = EnabledHardware(conf, {"minimal": Minimal}, {**MINIMAL, "power": {"x": Documented}})

    assert loaded.properties("minimal") == {"power_address": "Where the switch is."}


def test_the_properties_of_an_unknown_driver_are_refused(hardware):
    with pytest.raises(DriverNotFound):
        hardware.properties("nosuch")


def test_vendor_interfaces_are_not_validated():
    assert sorted({*EnabledHardware.VALIDATED_KINDS, "vendor"}) == sorted(INTERFACES)
