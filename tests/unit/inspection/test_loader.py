import pytest
from oslo_config import cfg

from ironic_rules import conf as service_conf
from ironic_rules.exceptions import ConfigurationError
from ironic_rules.inspection import hook_settings
from ironic_rules.inspection.hook_settings import HookSettings
from ironic_rules.inspection.hooks import loader
from ironic_rules.inspection.hooks.base import InspectionHook
from tests.walking import walking


class First(InspectionHook):
    def __call__(self, task, inventory, plugin_data):
        pass


class Second(First):
    dependencies = ["first"]


class NeedsArguments(First):
    def __init__(self, argument):
        pass


class DependsByAlias(First):
    dependencies = ["validate_interfaces"]


class NoCall(InspectionHook):
    pass


CLASSES = {
    "first": First, "second": Second, "arguments": NeedsArguments, "validate-interfaces": First,
    "alias": DependsByAlias, "no-call": NoCall,
}


def test_hooks_come_in_the_order_of_their_names():
    assert [name for name, _ in loader.load(["first", "second"], None, CLASSES)] == ["first", "second"]


def test_hooks_get_the_settings():
    chosen = HookSettings(add_ports="pxe")

    assert loader.load(["first"], chosen, CLASSES)[0][1].settings is chosen


def test_a_dependency_that_comes_later_is_refused():
    with pytest.raises(ConfigurationError, match="'second' needs 'first' before it"):
        loader.load(["second", "first"], None, CLASSES)


def test_the_underscore_spelling_is_an_alias():
    assert [name for name, _ in loader.load(["validate_interfaces", "alias"], None, CLASSES)] == [
        "validate-interfaces", "alias"]


@walking("name", ["arguments", "no-call"])
def test_a_hook_that_cannot_be_made_is_refused(name):
    with pytest.raises(ConfigurationError, match=f"'{name}' cannot be created"):
        loader.load([name], None, CLASSES)


def test_names_are_split_at_commas():
    assert loader.parse(" a, b-c ,,d ") == ["a", "b-c", "d"]


def test_the_default_configuration_loads_from_entry_points():
    conf = cfg.ConfigOpts()
    service_conf.register_opts(conf)
    conf([], default_config_files=[])

    hooks = loader.load(loader.parse(conf.inspector.hooks), hook_settings.from_conf(conf))

    assert [name for name, _ in hooks] == ["ramdisk-error", "validate-interfaces", "ports", "architecture"]


def test_the_settings_have_the_defaults_of_the_options():
    conf = cfg.ConfigOpts()
    service_conf.register_opts(conf)
    conf([], default_config_files=[])

    assert hook_settings.from_conf(conf) == HookSettings()


def test_an_unknown_hook_is_named_with_the_known_ones():
    with pytest.raises(ConfigurationError, match=r"\[inspector\]hooks names 'nosuch'.*'architecture'"):
        loader.load(["nosuch"])


def test_a_repeated_hook_is_refused():
    with pytest.raises(ConfigurationError, match="'ports' more than once"):
        loader.load(["validate-interfaces", "ports", "ports"])
