"""The service's configuration, and the hardware that it enables by default."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from oslo_config import cfg

from ironic_rules import conf as service_conf
from ironic_rules.conf import opts
from ironic_rules.hardware.enabled import EnabledHardware


@pytest.fixture
def conf() -> Iterator[cfg.ConfigOpts]:
    conf = cfg.ConfigOpts()
    service_conf.register_opts(conf)
    conf([], default_config_files=[], default_config_dirs=[])
    yield conf
    # All ConfigOpts of a process share the options of a group, overrides included.
    for group, options in opts.list_opts():
        for option in options:
            conf.clear_override(option.dest, group=None if group == "DEFAULT" else group)


@pytest.fixture
def hardware(conf: cfg.ConfigOpts) -> EnabledHardware:
    return EnabledHardware(conf)
