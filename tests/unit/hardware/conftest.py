"""The service's configuration, and the hardware that it enables by default."""

from __future__ import annotations

import pytest
from oslo_config import cfg

from ironic_rules import conf as service_conf
from ironic_rules.hardware.registry import Hardware


@pytest.fixture
def conf() -> cfg.ConfigOpts:
    conf = cfg.ConfigOpts()
    service_conf.register_opts(conf)
    conf([], default_config_files=[], default_config_dirs=[])
    return conf


@pytest.fixture
def hardware(conf: cfg.ConfigOpts) -> Hardware:
    return Hardware(conf)
