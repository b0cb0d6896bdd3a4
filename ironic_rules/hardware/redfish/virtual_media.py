"""``redfish-virtual-media``: the machine boots the ramdisk's ISO image from a virtual CD drive of the BMC.

The operator provides the image, which is the same for all nodes. The kernel parameters differ between nodes and are
written to a second medium, a floppy disk labelled ``ir-vfd-dev``: ironic-python-agent reads ``parameters.txt`` from it
if the image's own kernel command line has ``boot_method=vmedia``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from oslo_log import log

from ironic_rules.exceptions import BMCError, InvalidParameterValue, Problem
from ironic_rules.hardware.base import BootInterface
from ironic_rules.hardware.boot import kernel_parameters, media
from ironic_rules.hardware.boot.device import boot_from
from ironic_rules.hardware.boot.media import PublishedFolder
from ironic_rules.hardware.redfish.client import RedfishInterface
from ironic_rules.hardware.redfish.driver_info import PROPERTIES
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
        kernel_parameters.APPEND: kernel_parameters.APPEND_TEXT,
    }

    def validate_inspection(self, task: Task) -> None:
        self.driver_info(task)
        media.image_url(self.conf, task, "deploy_iso")
        self._folder().url(_file(task))

    def prepare_ramdisk(self, task: Task, parameters: Mapping[str, str]) -> None:
        iso, folder, file = media.image_url(self.conf, task, "deploy_iso"), self._folder(), _file(task)
        told = dict(parameters)
        if _CALLBACK in told:  # an inspection
            # The medium identifies the node, so that a lookup by addresses cannot match another one.
            told[_CALLBACK] += f"?node_uuid={task.node.uuid}"
        kernel_parameters.check(told)
        text = "".join(f"{name}={value}\n" for name, value in told.items() if value)
        folder.write(file, media.floppy_image(LABEL, FILE, text.encode("ascii")))
        with self.system(task) as system:
            disc, second = _devices(task, system)
            for device in (disc, second):
                _eject(device)
            second.insert_media(folder.url(file), write_protected=True)
            disc.insert_media(iso, write_protected=True)
        boot_from(self, task, "cdrom")
        LOG.info("Node %s boots %s from virtual media", task.node.uuid, iso)

    def clean_up_ramdisk(self, task: Task) -> None:
        try:
            with self.system(task) as system:
                for device in _found(system):
                    if device is not None:
                        _eject(device)
        finally:
            self._folder().remove(_file(task))

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
            disc, second = _found(system)
            if disc is None:
                raise BMCError(node=task.node.uuid, reason="it has no virtual CD drive.")
            for device in filter(None, (disc, second)):
                _eject(device)
            disc.insert_media(iso, write_protected=True)
        boot_from(self, task, "cdrom", persistent=True)
        LOG.info("Node %s boots the ISO image of its instance from virtual media", task.node.uuid)

    def clean_up_instance(self, task: Task) -> None:
        self.clean_up_ramdisk(task)

    def _folder(self) -> PublishedFolder:
        return PublishedFolder(self.conf, FOLDER)


def _file(task: Task) -> str:
    return f"{task.node.uuid}.img"


def drives(system: object) -> list[JSONObject]:
    """Return the virtual drives, as ``ManagementInterface.get_virtual_media``."""
    return [{"media_types": sorted(_types(device)), "inserted": bool(device.inserted), "image": device.image or None}
            for device in _all(system)]


def insert(task: Task, system: object, device_type: str, image: str) -> None:
    """Insert an image into the first virtual drive of a type of ``MEDIA_TYPES`` that is empty.

    :raises BMCError: there is no such drive, or none is empty
    """
    fitting = [device for device in _all(system) if _types(device) & MEDIA_TYPES[device_type]]
    if not fitting:
        raise BMCError(node=task.node.uuid, reason=f"it has no virtual drive of type {device_type}.")
    free = next((device for device in fitting if not device.inserted), None)
    if free is None:
        raise BMCError(node=task.node.uuid, reason=f"its virtual drives of type {device_type} are in use; detach what "
                                                   "is in them first.")
    free.insert_media(image, write_protected=True)


def eject(system: object, device_types: Iterable[str]) -> None:
    """Eject what is in the virtual drives of these types of ``MEDIA_TYPES``."""
    wanted = frozenset().union(*(MEDIA_TYPES[kind] for kind in device_types))
    for device in _all(system):
        if _types(device) & wanted:
            _eject(device)


def _devices(task: Task, system: object) -> tuple[Any, Any]:
    disc, second = _found(system)
    if disc is None:
        raise BMCError(node=task.node.uuid, reason="it has no virtual CD drive.")
    if second is None:
        raise BMCError(node=task.node.uuid, reason="it has no virtual floppy disk or USB stick besides the CD drive; "
                                                   "the callback URL cannot be passed to the ramdisk. Use boot "
                                                   "interface ipxe.")
    return disc, second


def _found(system: object) -> tuple[Any, Any]:
    """Return the virtual CD drive and the virtual floppy disk or USB stick; None for a missing one."""
    devices = list(_all(system))
    disc = next((device for device in devices if _types(device) & _CD), None)
    second = next((device for device in devices if device is not disc and _types(device) & _FLOPPY), None)
    return disc, second


def _all(system: Any) -> list[Any]:
    # New BMCs have virtual media in the system resource, old ones in the manager resource.
    if "VirtualMedia" in system.json:
        return list(system.virtual_media.get_members())
    return [device for manager in system.managers for device in manager.virtual_media.get_members()]


def _types(device: Any) -> set[str]:
    return {str(getattr(kind, "value", kind)) for kind in device.media_types or ()}


def _eject(device: Any) -> None:
    if device.inserted or device.image:
        device.eject_media()
