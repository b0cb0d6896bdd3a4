"""Every option of the service explains itself and has a default that works on a laptop."""

from __future__ import annotations

import collections
from pathlib import Path

import pytest
from oslo_config import cfg, types

from ironic_rules import conf as service_conf
from ironic_rules.conf import opts

OPTIONS = [(group, option) for group, options in opts.list_opts() for option in options]

#: A bounded wait, size or count needs a lower bound; these types have numbers that may be unbounded.
NUMBERS = (types.Integer, types.Float)

every_option = pytest.mark.parametrize(
    ("group", "option"), OPTIONS, ids=[f"{group}.{option.name}" for group, option in OPTIONS])


@every_option
def test_the_help_is_a_sentence(group, option):
    assert option.help
    assert option.help[0].isupper() or option.help[0] in "'/$"
    assert option.help.endswith(".")


@every_option
def test_a_number_has_a_lower_bound(group, option):
    assert not isinstance(option.type, NUMBERS) or option.type.min is not None


@every_option
def test_the_default_is_valid(group, option):
    conf = cfg.ConfigOpts()
    service_conf.register_opts(conf)
    conf([], default_config_files=[], default_config_dirs=[])

    value = conf[option.name] if group == "DEFAULT" else conf[group][option.name]

    assert value is None or not option.required


def test_every_option_is_registered_once():
    counts = collections.Counter((group, option.dest) for group, option in OPTIONS)

    assert [name for name, count in counts.items() if count > 1] == []


def test_every_group_module_is_listed():
    listed = {module.__name__.rpartition(".")[2] for module in service_conf.MODULES}
    present = {path.stem for path in Path(service_conf.__file__).parent.glob("*.py")}

    # The options of "database" are oslo.db's, which lists them itself.
    assert present - listed == {"__init__", "opts", "database"}
