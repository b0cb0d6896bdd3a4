"""The configured map of networks, and hooks derived from this one."""

from __future__ import annotations

import pytest

from ironic_rules.exceptions import ConfigurationError, HookFailed
from ironic_rules.inspection.hook_settings import HookSettings
from ironic_rules.inspection.hooks import loader
from ironic_rules.inspection.hooks.physical_network import PhysicalNetworkHook
from ironic_rules.inspection.hooks.validate_interfaces import ValidateInterfacesHook
from ironic_rules.inspection.pipeline import Pipeline
from tests.unit.inspection.tasks import make_task
from tests.walking import walking

INVENTORY = {"interfaces": [
    {"name": "eno1", "mac_address": "7c:c2:55:0a:66:00", "ipv4_address": "192.0.2.31", "has_carrier": True},
    {"name": "eno2", "mac_address": "7c:c2:55:0a:66:01", "ipv4_address": None, "has_carrier": False},
]}


def configured(*entries):
    hook = PhysicalNetworkHook()
    hook.configure(HookSettings(physical_network_cidr_map=entries))
    return hook


@walking("entry, reason", [
    ("192.0.2.0/24", "is not CIDR:PHYSICAL_NETWORK"),
    ("", "is not CIDR:PHYSICAL_NETWORK"),
    (":provider", "is not CIDR:PHYSICAL_NETWORK"),
    ("provider:192.0.2.0/24", "is not CIDR:PHYSICAL_NETWORK"),
    ("192.0.2.0/33:provider", "is not CIDR:PHYSICAL_NETWORK"),
    ("192.0.2.1/24:provider", "has host bits set"),
    ("2001:db8::/64", "is not CIDR:PHYSICAL_NETWORK"),
    ("2001:db8::/64/storage", "is not CIDR:PHYSICAL_NETWORK"),
    ("192.0.2.0/24:", "the physical network must not be empty"),
    ("192.0.2.0/24: ", "the physical network must not be empty"),
    ("192.0.2.0/24:" + "x" * 65, "the physical network must be at most 64 characters"),
    ("192.0.2.0/24:a\x00b", "the physical network must not contain NUL"),
])
def test_a_bad_entry_is_refused_with_its_option(entry, reason):
    with pytest.raises(ConfigurationError) as caught:
        configured("198.51.100.0/24:good", entry)

    text = str(caught.value)
    assert text.startswith(f"[inspector]physical_network_cidr_map: '{entry.replace(chr(0), chr(92) + 'x00')}'")
    assert reason in text


def test_two_names_for_one_network_are_refused():
    with pytest.raises(ConfigurationError, match=r"'192\.0\.2\.0/24:b': an earlier entry has the same network"):
        configured("192.0.2.0/24:a", "192.0.2.0/24:b")


def test_entries_are_split_at_their_last_colon():
    hook = configured(" 2001:db8::/32 : site ", "192.0.2.0/24:provider", "192.0.2.0/24:provider")

    assert hook.get_physical_network({"ipv6_address": "2001:db8::7"}) == "site"
    assert hook.get_physical_network({"ipv4_address": "192.0.2.7"}) == "provider"
    assert hook.get_physical_network({}) is None


def test_a_bad_entry_stops_the_loading_of_hooks():
    with pytest.raises(ConfigurationError, match=r"physical_network_cidr_map: 'nonsense'"):
        loader.load(["validate-interfaces", "physical-network"], HookSettings(physical_network_cidr_map=("nonsense",)))


class ByCarrier(PhysicalNetworkHook):
    """A hook of another package."""

    def get_physical_network(self, interface):
        return super().get_physical_network(interface) or ("unplugged" if not interface["has_carrier"] else None)


class Wrong(PhysicalNetworkHook):
    def get_physical_network(self, interface):
        return ["provider"]


def run(cls):
    classes = {"validate-interfaces": ValidateInterfacesHook, "physical-network": cls}
    hooks = loader.load(classes, HookSettings(physical_network_cidr_map=("192.0.2.0/24:provider",)), classes)
    task = make_task(ports=[{"address": interface["mac_address"]} for interface in INVENTORY["interfaces"]])
    Pipeline(hooks).run(task, INVENTORY)
    return [port.physical_network for port in task.ports]


def test_m57_a_derived_hook_decides_otherwise():
    assert run(ByCarrier) == ["provider", "unplugged"]


def test_what_a_derived_hook_returns_is_checked():
    with pytest.raises(HookFailed, match="/physical_network: must be a string"):
        run(Wrong)
