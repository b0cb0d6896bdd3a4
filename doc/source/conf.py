"""Sphinx configuration. Build with ``tox -e docs``; warnings are errors."""

import logging
import sys
from importlib import metadata
from pathlib import Path

import ironic_rules.cmd  # noqa: F401  (imported before the extensions, which would otherwise select eventlet)

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "ext"))

project = "ironic-rules"
author = "the ironic-rules contributors"
copyright = "the ironic-rules contributors, Apache License 2.0"
release = version = metadata.version("ironic-rules")

# It logs each file of the history.
logging.getLogger("reno").setLevel(logging.WARNING)

extensions = [
    "reno.sphinxext",
    "sphinx.ext.autodoc",
    "oslo_config.sphinxext",
    "oslo_policy.sphinxext",
    "api_reference",
    "bmc_deviations",
    "driver_info_reference",
    "extra_specs",
    "hook_reference",
    "route_table",
    "ironic_support",
    "ironic_values", "message_reference", "openapi_file",
    "state_table",
    "rule_reference",
    "step_reference",
]

html_theme = "furo"
html_title = f"ironic-rules {release}"
html_static_path = ["_static"]
html_css_files = ["wide.css"]
html_show_sphinx = False
highlight_language = "none"
nitpicky = True
