"""Sphinx configuration of the release notes. Build with ``tox -e releasenotes``."""

project = "ironic-rules release notes"
author = "the ironic-rules contributors"
copyright = "the ironic-rules contributors, Apache License 2.0"

extensions = ["reno.sphinxext"]
html_theme = "furo"
html_title = project
html_show_sphinx = False
