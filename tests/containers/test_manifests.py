"""The files for Compose and Kubernetes, by the schemas of both."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.containers.engine import FILES

COMPOSE = sorted((FILES / "compose").glob("*.yaml"))
KUBERNETES = sorted((FILES / "kubernetes").glob("*.yaml"))


def test_compose_files_fit_the_schema_of_compose() -> None:
    subprocess.run(["check-jsonschema", "--builtin-schema", "vendor.compose-spec", *COMPOSE], check=True)


def test_resources_fit_the_schemas_of_kubernetes(tmp_path: Path) -> None:
    """The resources as Kustomize makes them, where it is installed; otherwise as they are written."""
    files = [path for path in KUBERNETES if path.name != "kustomization.yaml"]
    if shutil.which("kubectl"):
        done = subprocess.run(["kubectl", "kustomize", FILES / "kubernetes"], check=True, capture_output=True,
                              text=True)
        assert done.stdout.count("image: localhost/ironic-rules:latest") == 3
        files = [tmp_path / "all.yaml"]
        files[0].write_text(done.stdout)
    subprocess.run(["kubernetes-validate", "--strict", *files], check=True)
