import importlib.metadata

import pytest
from stevedore import ExtensionManager

from ironic_rules import entry_points
from ironic_rules.exceptions import ConfigurationError

GROUP = "ironic_rules.tests.plugins"


class Base:
    pass


class Plugin(Base):
    pass


class Other(Base):
    pass


def unrelated():
    pass


@pytest.fixture
def offer(monkeypatch):
    """Return a function that makes entry points of the test's group."""
    def make(*names_and_values):
        points = [importlib.metadata.EntryPoint(name, f"{__name__}:{value}", GROUP) for name, value in names_and_values]
        monkeypatch.setitem(ExtensionManager.ENTRY_POINT_CACHE, GROUP, points)

    return make


def test_classes_come_in_the_order_of_their_names(offer):
    offer(("a", "Plugin"), ("b", "Other"), ("c", "nosuch"))

    assert list(entry_points.load(GROUP, ["b", "a"], Base, "option").items()) == [("b", Other), ("a", Plugin)]


def test_a_plugin_that_cannot_be_imported_is_named(offer):
    offer(("a", "nosuch"))

    with pytest.raises(ConfigurationError, match="option: 'a' cannot be loaded: AttributeError"):
        entry_points.load(GROUP, ["a"], Base, "option")


@pytest.mark.parametrize("value", ["unrelated", "GROUP", "pytest"])
def test_something_else_than_the_expected_class_is_refused(offer, value):
    offer(("a", value))

    with pytest.raises(ConfigurationError, match=r"'a' .* is not a class derived from .*\.Base"):
        entry_points.load(GROUP, ["a"], Base, "option")


def test_a_name_that_two_packages_offer_is_refused(offer):
    offer(("a", "Plugin"), ("a", "Other"))

    with pytest.raises(ConfigurationError, match="several packages offer 'a'"):
        entry_points.load(GROUP, ["a"], Base, "option")


def test_a_missing_name_is_told_with_the_installed_ones(offer):
    offer(("a", "Plugin"))

    with pytest.raises(ConfigurationError, match=r"option names 'b', 'c', which nothing .* Installed: 'a'"):
        entry_points.load(GROUP, ["b", "a", "c"], Base, "option")


def test_a_repeated_name_is_refused(offer):
    offer(("a", "Plugin"))

    with pytest.raises(ConfigurationError, match="'a' more than once"):
        entry_points.load(GROUP, ["a", "a"], Base, "option")
