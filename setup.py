"""All metadata is in setup.cfg; pbr reads it, and takes the version from git's tags."""

import os
import pathlib
import subprocess

import setuptools

HERE = pathlib.Path(__file__).resolve().parent
UNTAGGED_VERSION = "0.1.0.dev0"


def has_tags() -> bool:
    """Tell whether git can name a tag that this folder descends from.

    It cannot before the first tag, in a shallow clone, in an unpacked archive, without git, or in a clone that belongs
    to another user. pbr refuses some of these and calls the others 0.0.0, so they get a fixed version instead.
    """
    try:
        return subprocess.run(["git", "describe", "--tags"], cwd=HERE, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


if not (HERE / "PKG-INFO").exists() and not has_tags():
    os.environ.setdefault("PBR_VERSION", UNTAGGED_VERSION)

setuptools.setup(setup_requires=["pbr>=6.1.1"], pbr=True)
