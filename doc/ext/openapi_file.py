"""Writes ``openapi.json``, the description of the API, beside the pages. Its server is the one of the README."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from ironic_rules.api import openapi
from ironic_rules.api.v1 import root


def write(app: Sphinx, error: Exception | None) -> None:
    """Write the file after a build of HTML pages."""
    if error is None and app.builder.format == "html":
        Path(app.outdir, "openapi.json").write_bytes(openapi.served(root(), "http://127.0.0.1:6385"))


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the writer."""
    app.connect("build-finished", write)
    return {"parallel_read_safe": True}
