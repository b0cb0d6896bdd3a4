"""``redfish-virtual-media``: the machine boots the ramdisk's ISO image from a virtual CD drive of the BMC.

The operator provides the image. Each node gets a copy of it with the node's kernel parameters, if the image has a place
for them and its file is at hand: :mod:`ironic_rules.hardware.boot.node_iso`. Other images are the same for all nodes,
and the parameters are written to a second medium, a floppy disk labelled ``ir-vfd-dev``: ironic-python-agent reads
``parameters.txt`` from it if the image's own kernel command line has ``boot_method=vmedia``.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from oslo_log import log

from ironic_rules.exceptions import BMCError, InvalidParameterValue, Problem
from ironic_rules.hardware.base import BootInterface, RamdiskFiles
from ironic_rules.hardware.boot import kernel_parameters, media, node_iso
from ironic_rules.hardware.boot.device import boot_from
from ironic_rules.hardware.boot.media import PublishedFolder
from ironic_rules.hardware.redfish.client import RedfishInterface
from ironic_rules.hardware.redfish.driver_info import PROPERTIES
from ironic_rules.hardware.redfish.quirks import VIRTUAL_MEDIA, Form
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.task import Task

LOG = log.getLogger(__name__)

FOLDER = "redfish"
LABEL = "ir-vfd-dev"
FILE = "parameters.txt"
_CALLBACK = "ipa-inspection-callback-url"
_CD = frozenset({"CD", "DVD"})
_FLOPPY = frozenset({"Floppy", "USBStick"})
#: Name of a drive for clients -> its names for BMCs.
MEDIA_TYPES = {"cdrom": _CD, "disk": frozenset({"USBStick"}), "floppy": frozenset({"Floppy"})}


class RedfishVirtualMediaBoot(RedfishInterface, BootInterface):
    """Boots the ISO image of ``deploy_iso`` once."""

    is_external = True
    properties = {
        **PROPERTIES, "deploy_iso": "URL of a bootable ISO image with the ramdisk. Default: [deploy]deploy_iso.",
        "rescue_iso": "URL of such an image for rescues. Default: that of deploy_iso.",
        kernel_parameters.APPEND: kernel_parameters.APPEND_TEXT,
    }

    def validate_inspection(self, task: Task) -> None:
        self.driver_info(task)
        media.image_url(self.conf, task, "deploy_iso")
        self._folder().url(_floppy(task))

    def prepare_ramdisk(self, task: Task, parameters: Mapping[str, str]) -> None:
        iso, folder = media.image_url(self.conf, task, "deploy_iso"), self._folder()
        passed = dict(parameters)
        if _CALLBACK in passed:  # an inspection
            # The medium identifies the node, so that a lookup by addresses cannot match another one.
            passed[_CALLBACK] += f"?node_uuid={task.node.uuid}"
        kernel_parameters.check(passed)
        base = node_iso.base_at(self.conf, iso)
        second = None
        if base is not None:
            node_iso.write(folder, _copy(task), base, task, passed)
            iso = folder.url(_copy(task))
        else:
            text = "".join(f"{name}={value}\n" for name, value in passed.items() if value)
            folder.write(_floppy(task), media.floppy_image(LABEL, FILE, text.encode("ascii")))
            second = folder.url(_floppy(task))
        with self.system(task) as system:
            drives = _Drives(self, task, system)
            drives.check(needs_second=second is not None)
            for device in drives.usual():
                drives.eject(device)
            disc = drives.insert(_CD, iso)
            if second is not None:
                drives.insert(_FLOPPY, second, but=disc)
        boot_from(self, task, "cdrom")
        LOG.info("Node %s boots %s from virtual media", task.node.uuid, iso)

    def clean_up_ramdisk(self, task: Task) -> None:
        try:
            with self.system(task) as system:
                drives, ours = _Drives(self, task, system), self._images(task)
                usual = [device.path for device in drives.usual()]
                for device in drives.all:
                    if device.path in usual or device.image in ours:
                        drives.eject(device)
        finally:
            for file in (_copy(task), _floppy(task)):
                self._folder().remove(file)

    def ramdisk_files(self, task: Task) -> RamdiskFiles | None:
        folder = self._folder()
        for name, file in (("its image", _copy(task)), ("the floppy image with its parameters", _floppy(task))):
            if (written := folder.written_at(file)) is not None:
                return RamdiskFiles(written, {name: [folder.url(file)]})
        return None

    def validate_instance(self, task: Task) -> None:
        self.driver_info(task)
        if task.node.instance_info.get("boot_iso") is None and task.node.instance_info.get("kernel") is not None:
            raise InvalidParameterValue(problems=[Problem(
                "/instance_info/kernel", "virtual media are ISO images: set boot_iso, or use boot interface ipxe")])
        media.instance_image_url(self.conf, task, "boot_iso")
        media.refuse_with_iso(task)

    def prepare_instance(self, task: Task) -> None:
        iso = media.instance_image_url(self.conf, task, "boot_iso")
        with self.system(task) as system:
            drives = _Drives(self, task, system)
            drives.check(needs_second=False)
            for device in drives.usual():
                drives.eject(device)
            drives.insert(_CD, iso)
        boot_from(self, task, "cdrom", persistent=True)
        LOG.info("Node %s boots the ISO image of its instance from virtual media", task.node.uuid)

    def clean_up_instance(self, task: Task) -> None:
        self.clean_up_ramdisk(task)

    def _images(self, task: Task) -> set[str]:
        """Return the URLs of the images that this interface inserts for the node, into whichever drive."""
        node = task.node
        images = [self.conf.deploy.deploy_iso, *map(node.driver_info.get, ("deploy_iso", "rescue_iso")),
                  node.instance_info.get("boot_iso")]
        with contextlib.suppress(InvalidParameterValue):
            images += [self._folder().url(file) for file in (_copy(task), _floppy(task))]
        return {url for url in images if isinstance(url, str) and url}

    def _folder(self) -> PublishedFolder:
        return PublishedFolder(self.conf, FOLDER)


def _copy(task: Task) -> str:
    return f"{task.node.uuid}.iso"


def _floppy(task: Task) -> str:
    return f"{task.node.uuid}.img"


class _Drives:
    """The virtual drives of a system: its own, then those of managers that have no other system.

    A manager of several systems does not say whose its drives are.
    """

    def __init__(self, interface: RedfishInterface, task: Task, system: Any) -> None:
        self._interface = interface
        self._task = task
        own = list(system.virtual_media.get_members()) if "VirtualMedia" in system.json else []
        others = [device for manager in _managers(system) for device in manager.virtual_media.get_members()]
        #: each drive that can be used; some BMCs have them in both places
        self.all: list[Any] = list({device.path: device for device in (*own, *others)}.values())
        #: each drive once
        self.listed: list[Any] = own or others
        self._emptied: list[Any] = []

    def check(self, *, needs_second: bool = True) -> None:
        """Check that there is a CD drive, and a second one.

        :raises BMCError: there is not
        """
        discs = self._of(_CD)
        if not discs:
            raise BMCError(node=self._task.node.uuid, reason="it has no virtual CD drive.")
        if needs_second and not any(device.path != discs[0].path for device in self._of(_FLOPPY)):
            raise BMCError(node=self._task.node.uuid, reason=(
                "it has no virtual floppy disk or USB stick beside the CD drive, by which the ramdisk of this image "
                "would get its parameters. Use one made by ironic-rules-ramdisk, below [deploy]http_root and with a "
                "URL below [deploy]http_url, or boot interface ipxe."))

    def usual(self) -> list[Any]:
        """Return the first CD drive, and the first other floppy disk or USB stick."""
        discs = self._of(_CD)[:1]
        return [*discs, *[device for device in self._of(_FLOPPY) if device not in discs][:1]]

    def insert(self, types: frozenset[str], image: str, *, but: Any = None) -> Any:
        """Insert an image into the first empty drive of these types that accepts it, and return the drive."""
        # Some BMCs show an image for some time after it was ejected.
        return self.insert_in([device for device in self._of(types) if device is not but
                               and (device in self._emptied or not device.inserted)], image)

    def insert_in(self, drives: Sequence[Any], image: str) -> Any:
        """Insert an image into the first of these drives that accepts it, and return the drive."""
        if not drives:
            raise BMCError(node=self._task.node.uuid, reason="no virtual drive is left that may accept the image.")
        forms = [Form(device.path, functools.partial(device.insert_media, image, write_protected=True),
                      functools.partial(_has, device, image)) for device in drives]
        change = self._interface.change(VIRTUAL_MEDIA, forms)
        return next(device for device in drives if device.path == change.form.name)

    def eject(self, device: Any) -> None:
        """Eject what is in a drive."""
        if device.inserted or device.image:
            self._interface.change(VIRTUAL_MEDIA, [
                Form("ejection", device.eject_media, functools.partial(_has, device, None))])
        self._emptied.append(device)

    def _of(self, types: frozenset[str]) -> list[Any]:
        """Return the drives of these types; of CD drives, those last that could also be the second medium."""
        drives = [device for device in self.all if _types(device) & types]
        return sorted(drives, key=lambda device: types is _CD and bool(_types(device) & _FLOPPY))


def drives(interface: RedfishInterface, task: Task, system: object) -> list[JSONObject]:
    """Return the virtual drives, as ``ManagementInterface.get_virtual_media``."""
    return [{"media_types": sorted(_types(device)), "inserted": bool(device.inserted), "image": device.image or None}
            for device in _Drives(interface, task, system).listed]


def insert(interface: RedfishInterface, task: Task, system: object, device_type: str, image: str) -> None:
    """Insert an image into the first virtual drive of a type of ``MEDIA_TYPES`` that is empty and accepts it.

    :raises BMCError: there is no such drive, or none is empty
    """
    drives = _Drives(interface, task, system)
    fitting = [device for device in drives.all if _types(device) & MEDIA_TYPES[device_type]]
    if not fitting:
        raise BMCError(node=task.node.uuid, reason=f"it has no virtual drive of type {device_type}.")
    free = [device for device in fitting if not device.inserted]
    if not free:
        raise BMCError(node=task.node.uuid, reason=f"its virtual drives of type {device_type} are in use; detach what "
                                                   "is in them first.")
    drives.insert_in(free, image)


def eject(interface: RedfishInterface, task: Task, system: object, device_types: Iterable[str]) -> None:
    """Eject what is in the virtual drives of these types of ``MEDIA_TYPES``."""
    types = frozenset().union(*(MEDIA_TYPES[kind] for kind in device_types))
    drives = _Drives(interface, task, system)
    for device in drives.all:
        if _types(device) & types:
            drives.eject(device)


def _managers(system: Any) -> list[Any]:
    if "ManagedBy" not in (system.json.get("Links") or {}):
        return []
    return [manager for manager in system.managers if "VirtualMedia" in manager.json
            and len((manager.json.get("Links") or {}).get("ManagerForServers") or ()) <= 1]


def _types(device: Any) -> set[str]:
    return {str(getattr(kind, "value", kind)) for kind in device.media_types or ()}


def _has(device: Any, image: str | None) -> bool:
    """Return whether a drive has an image; None: whether it has none."""
    device.refresh(force=True)
    if image is None:
        return not device.inserted and not device.image
    return bool(device.inserted) and device.image == image
