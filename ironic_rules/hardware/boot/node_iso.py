"""ISO images of nodes: copies of the operator's image, each with the kernel parameters of its node.

An image that ``ironic-rules-ramdisk`` has made has a place for them, whose content can be replaced without a change of
anything else: so a copy boots by BIOS and UEFI, and by secure boot, as the image does.
"""

from __future__ import annotations

import urllib.parse
from pathlib import Path
from typing import BinaryIO, NamedTuple

import pycdlib
from oslo_config import cfg
from oslo_log import log
from pycdlib.pycdlibexception import PyCdlibException

from ironic_rules.exceptions import InvalidParameterValue, Problem
from ironic_rules.hardware.boot import kernel_parameters
from ironic_rules.hardware.boot.media import PublishedFolder
from ironic_rules.models import boot_parameters
from ironic_rules.models.boot_parameters import BootParameters
from ironic_rules.models.task import Task

LOG = log.getLogger(__name__)

_SECTOR = 2048
#: Names of an architecture in ``properties/cpu_arch`` that an image for it boots.
_SAME_MACHINE = {"x86_64": frozenset({"x86_64", "amd64", "i686", "i386", "x86"})}


class Base(NamedTuple):
    """An operator's image that nodes can have copies of. ``file`` is that of its parameters, ``offset`` its place."""

    path: Path
    offset: int
    file: bytes
    parameters: BootParameters


def base_at(conf: cfg.ConfigOpts, url: str) -> Base | None:
    """Return the image that a URL names; None if it is no file below ``[deploy]http_root``, or has no such place."""
    path = _local_path(conf, url)
    if path is None:
        return None
    try:
        with path.open("rb") as file:
            return _base(path, file)
    except OSError as exc:
        # Then the web server has it elsewhere, or may read more than this process.
        LOG.warning("%s is not used as %s: %s", path, url, exc.strerror)
        return None


def write(folder: PublishedFolder, file: str, base: Base, task: Task, parameters: dict[str, str]) -> None:
    """Write the node's copy of an image.

    :param parameters: kernel parameters of the node
    :raises InvalidParameterValue: the node's architecture is another one, or the parameters are too long
    :raises IronicRulesError: the folder cannot be written
    """
    machine, cpu_arch = base.parameters.machine, task.node.properties.get("cpu_arch")
    if isinstance(cpu_arch, str) and cpu_arch and cpu_arch.lower() not in _SAME_MACHINE.get(machine, {machine}):
        raise InvalidParameterValue(problems=[Problem(
            "/properties/cpu_arch", f"is {cpu_arch}, and the image {base.path.name} boots {machine} machines; set "
                                    "driver_info/deploy_iso to one for the node's architecture")])
    try:
        content = base.parameters.content(kernel_parameters.command_line(parameters))
    except ValueError as exc:
        raise InvalidParameterValue(f"Node {task.node.uuid} cannot be booted by its image: {exc}.") from None
    folder.copy(file, base.path, base.offset, base.file, content)


def _local_path(conf: cfg.ConfigOpts, url: str) -> Path | None:
    root = (conf.deploy.http_url or "").rstrip("/")
    if not root or not url.startswith(f"{root}/"):
        return None
    parts = urllib.parse.unquote(url[len(root):].partition("?")[0]).split("/")[1:]
    # No other name of a folder leads out of it; links are the operator's.
    if not all(parts) or {".", ".."} & set(parts) or any("\0" in part for part in parts):
        return None
    return Path(conf.deploy.http_root).absolute().joinpath(*parts)


def _base(path: Path, image_file: BinaryIO) -> Base | None:
    image = pycdlib.PyCdlib()
    try:
        image.open_fp(image_file)
        try:
            record = image.get_record(rr_path=f"/{boot_parameters.PATH}")
            offset, size = record.extent_location() * _SECTOR, record.get_data_length()
        finally:
            image.close()
    except PyCdlibException:
        return None
    if size != boot_parameters.SIZE:
        return None
    image_file.seek(offset)
    file = image_file.read(size)
    parameters = boot_parameters.read(file)
    return None if parameters is None else Base(path, offset, file, parameters)
