"""Python packages of other authors: a module and its entry points, in a separate folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def install(folder: Path, name: str, source: str, entry_points: Mapping[str, Mapping[str, str]]) -> Path:
    """Write the package ``name`` into ``folder``, as pip would install it; return ``folder``, for ``PYTHONPATH``.

    :param source: of the only module, which has the name of the package
    :param entry_points: ``{group: {name: object of the module}}``
    """
    information = folder / f"{name}-1.0.dist-info"
    information.mkdir(parents=True)
    (folder / f"{name}.py").write_text(source)
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text("\n".join(
        f"[{group}]\n" + "\n".join(f"{point} = {name}:{target}" for point, target in points.items())
        for group, points in entry_points.items()) + "\n")
    return folder
