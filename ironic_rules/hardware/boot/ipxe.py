"""``ipxe``: the machine boots the ramdisk over the network, with its own iPXE script.

``boot.ipxe`` is the script that a DHCP server passes to every machine. It continues with
``pxelinux.cfg/<MAC address>``, which exists while the node is to boot a ramdisk.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from oslo_log import log

from ironic_rules.exceptions import InvalidParameterValue, IronicRulesError
from ironic_rules.hardware.agent import ramdisk
from ironic_rules.hardware.base import BootInterface
from ironic_rules.hardware.boot import images
from ironic_rules.hardware.boot.published import PublishedFolder, write_atomically
from ironic_rules.models import mac
from ironic_rules.models.task import Task

LOG = log.getLogger(__name__)

FOLDER = "pxelinux.cfg"
#: key of ``driver_internal_info``; names of the scripts that were written
SCRIPTS = "ipxe_scripts"
BOOT_SCRIPT = """\
#!ipxe
# Written by ironic-rules. Continues with the script of this machine, if it is to boot a ramdisk.
chain --autofree pxelinux.cfg/${netX/mac:hexhyp} || chain --autofree pxelinux.cfg/${mac:hexhyp} || goto none
:none
echo This machine has nothing to boot over the network: continuing with its next boot device.
sleep 5
exit
"""


class IPXEBoot(BootInterface):
    """Writes the scripts and makes the network the next boot device, through the node's management interface."""

    properties = {
        "deploy_kernel": "URL of the ramdisk's kernel. Default: [deploy]deploy_kernel.",
        "deploy_ramdisk": "URL of the ramdisk. Default: [deploy]deploy_ramdisk.",
    }

    def validate_inspection(self, task: Task) -> None:
        for key in self.properties:
            images.url(self.conf, task, key)
        self._folder().url("x")
        if not _addresses(task):
            raise InvalidParameterValue(f"Node {task.node.uuid} has no port with pxe_enabled: without a MAC address "
                                        "no boot script can be written for it.")

    def prepare_ramdisk(self, task: Task, parameters: Mapping[str, str]) -> None:
        ramdisk.check(parameters)
        kernel, image = (images.url(self.conf, task, key) for key in ("deploy_kernel", "deploy_ramdisk"))
        self._write_boot_script()
        addresses = _addresses(task)
        # Stored, because a port may be deleted or have another address when the scripts must be removed.
        task.node.driver_internal_info[SCRIPTS] = sorted(
            {*task.node.driver_internal_info.get(SCRIPTS, ()), *map(_dashed, addresses)})
        for address in addresses:
            script = _script(kernel, image, {**parameters, "BOOTIF": f"01-{_dashed(address)}"})
            self._folder().write(_dashed(address), script.encode("ascii"))
        self.interface_of(task.node, "management").set_boot_device(task, "pxe")
        LOG.info("Node %s boots %s over the network", task.node.uuid, kernel)

    def clean_up_ramdisk(self, task: Task) -> None:
        written = task.node.driver_internal_info.get(SCRIPTS, ())
        for name in {*written, *map(_dashed, _addresses(task, every=True))}:
            self._folder().remove(name)
        task.node.driver_internal_info.pop(SCRIPTS, None)

    def _folder(self) -> PublishedFolder:
        return PublishedFolder(self.conf, FOLDER)

    def _write_boot_script(self) -> None:
        path = Path(self.conf.deploy.http_root).absolute() / "boot.ipxe"
        content = BOOT_SCRIPT.encode("ascii")
        try:
            if not path.is_file() or path.read_bytes() != content:
                write_atomically(path, content)
        except OSError as exc:
            raise IronicRulesError(f"The file {path} cannot be written ([deploy]http_root): {exc.strerror}.") from exc


def _addresses(task: Task, *, every: bool = False) -> list[str]:
    """Return the MAC addresses of the ports with ``pxe_enabled``, or of every port.

    :raises InvalidParameterValue: one is invalid
    """
    found = []
    for port in task.ports:
        if every or port.pxe_enabled:
            try:
                found.append(mac.normalize(port.address))
            except ValueError as exc:
                raise InvalidParameterValue(f"The address of port {port.uuid}: {exc}.") from exc
    return found


def _dashed(address: str) -> str:
    return address.replace(":", "-")


def _script(kernel: str, image: str, parameters: Mapping[str, str]) -> str:
    line = ramdisk.command_line({**parameters, "initrd": "ramdisk"})
    return (
        "#!ipxe\n"
        f"kernel --name kernel {kernel} {line} || goto failed\n"
        f"initrd --name ramdisk {image} || goto failed\n"
        "boot || goto failed\n"
        ":failed\n"
        "echo The ramdisk cannot be loaded; trying again in 30 seconds.\n"
        "sleep 30\n"
        "reboot\n")
