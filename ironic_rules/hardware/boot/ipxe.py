"""``ipxe``: the machine boots the ramdisk over the network, with its own iPXE script.

``boot.ipxe`` is the script that a DHCP server passes to every machine. It continues with
``pxelinux.cfg/<MAC address>``, which exists while the node is to boot a ramdisk of the service, else with
``instances/<MAC address>``, which exists while the node has an instance that is booted over the network.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from oslo_config import cfg
from oslo_log import log

from ironic_rules.exceptions import InvalidParameterValue, IronicRulesError
from ironic_rules.hardware.base import BootInterface
from ironic_rules.hardware.boot import kernel_parameters, media
from ironic_rules.hardware.boot.device import boot_from
from ironic_rules.hardware.boot.media import PublishedFolder, write_atomically
from ironic_rules.models import addresses
from ironic_rules.models.internal_keys import IPXE_INSTANCE_SCRIPTS, IPXE_SCRIPTS
from ironic_rules.models.task import Task

LOG = log.getLogger(__name__)

FOLDER = "pxelinux.cfg"
INSTANCES = "instances"
BOOT_SCRIPT = """\
#!ipxe
# Written by ironic-rules. Continues with the script of this machine, if it is to boot a ramdisk.
chain --autofree pxelinux.cfg/${netX/mac:hexhyp} || chain --autofree pxelinux.cfg/${mac:hexhyp} || goto instance
:instance
chain --autofree instances/${netX/mac:hexhyp} || chain --autofree instances/${mac:hexhyp} || goto none
:none
echo This machine has nothing to boot over the network: continuing with its next boot device.
sleep 5
exit
"""
_FAILED = """\
:failed
echo The ramdisk cannot be loaded; trying again in 30 seconds.
sleep 30
reboot
"""


class IPXEBoot(BootInterface):
    """Writes the scripts and makes the network the next boot device, through the node's management interface."""

    properties = {
        "deploy_kernel": "URL of the ramdisk's kernel. Default: [deploy]deploy_kernel.",
        "deploy_ramdisk": "URL of the ramdisk. Default: [deploy]deploy_ramdisk.",
        "rescue_kernel": "URL of the kernel for rescues. Default: that of deploy_kernel.",
        "rescue_ramdisk": "URL of the ramdisk for rescues. Default: that of deploy_ramdisk.",
        kernel_parameters.APPEND: kernel_parameters.APPEND_TEXT,
    }

    def validate_inspection(self, task: Task) -> None:
        for key in ("deploy_kernel", "deploy_ramdisk"):
            media.image_url(self.conf, task, key)
        self._folder().url("x")
        if not _addresses(task):
            raise InvalidParameterValue(_no_port(task))

    def prepare_ramdisk(self, task: Task, parameters: Mapping[str, str]) -> None:
        kernel_parameters.check(parameters)
        kernel, image = (media.image_url(self.conf, task, key) for key in ("deploy_kernel", "deploy_ramdisk"))
        self._write_boot_script()
        addresses = _addresses(task)
        # Stored, because a port may be deleted or have another address when the scripts must be removed.
        task.node.driver_internal_info[IPXE_SCRIPTS] = sorted(
            {*task.node.driver_internal_info.get(IPXE_SCRIPTS, ()), *map(_dashed, addresses)})
        for address in addresses:
            script = _script(kernel, image, {**parameters, "BOOTIF": f"01-{_dashed(address)}"})
            self._folder().write(_dashed(address), script.encode("ascii"))
        boot_from(self, task, "pxe")
        LOG.info("Node %s boots %s over the network", task.node.uuid, kernel)

    def clean_up_ramdisk(self, task: Task) -> None:
        written = task.node.driver_internal_info.get(IPXE_SCRIPTS, ())
        for name in {*written, *map(_dashed, _addresses(task, every=True))}:
            self._folder().remove(name)
        task.node.driver_internal_info.pop(IPXE_SCRIPTS, None)

    def validate_instance(self, task: Task) -> None:
        _instance_script(self.conf, task)
        self._instances().url("x")
        if not _addresses(task):
            raise InvalidParameterValue(_no_port(task))

    def prepare_instance(self, task: Task) -> None:
        script = _instance_script(self.conf, task).encode("ascii")
        self._write_boot_script()
        names = [_dashed(address) for address in _addresses(task)]
        task.node.driver_internal_info[IPXE_INSTANCE_SCRIPTS] = sorted(
            {*task.node.driver_internal_info.get(IPXE_INSTANCE_SCRIPTS, ()), *names})
        for name in names:
            self._instances().write(name, script)
        boot_from(self, task, "pxe", persistent=True)
        LOG.info("Node %s boots its instance over the network", task.node.uuid)

    def clean_up_instance(self, task: Task) -> None:
        written = task.node.driver_internal_info.pop(IPXE_INSTANCE_SCRIPTS, ())
        for name in {*written, *map(_dashed, _addresses(task, every=True))}:
            self._instances().remove(name)

    def _folder(self) -> PublishedFolder:
        return PublishedFolder(self.conf, FOLDER)

    def _instances(self) -> PublishedFolder:
        return PublishedFolder(self.conf, INSTANCES, lasting=True)

    def _write_boot_script(self) -> None:
        path = Path(self.conf.deploy.http_root).absolute() / "boot.ipxe"
        content = BOOT_SCRIPT.encode("ascii")
        try:
            if not path.is_file() or path.read_bytes() != content:
                write_atomically(path, content)
        except OSError as exc:
            raise IronicRulesError(f"The file {path} cannot be written ([deploy]http_root): {exc.strerror}.") from exc


def _no_port(task: Task) -> str:
    return (f"Node {task.node.uuid} has no port with pxe_enabled: without a MAC address no boot script can be written "
            "for it.")


def _instance_script(conf: cfg.ConfigOpts, task: Task) -> str:
    """Return the boot script of the instance.

    :raises InvalidParameterValue: what is needed in ``instance_info`` is missing or wrong
    """
    info = task.node.instance_info
    if info.get("boot_iso") is not None:
        media.refuse_with_iso(task)
        return (f"#!ipxe\nsanboot {media.instance_image_url(conf, task, 'boot_iso')} || goto failed\n{_FAILED}")
    kernel, image = (media.instance_image_url(conf, task, key) for key in ("kernel", "ramdisk"))
    return _script(kernel, image, kernel_parameters.parameters_of(info.get("kernel_append_params")))


def _addresses(task: Task, *, every: bool = False) -> list[str]:
    """Return the MAC addresses of the ports with ``pxe_enabled``, or of every port.

    :raises InvalidParameterValue: one is invalid
    """
    found = []
    for port in task.ports:
        if every or port.pxe_enabled:
            try:
                found.append(addresses.normalize_mac(port.address))
            except ValueError as exc:
                raise InvalidParameterValue(f"The address of port {port.uuid}: {exc}.") from exc
    return found


def _dashed(address: str) -> str:
    return address.replace(":", "-")


def _script(kernel: str, image: str, parameters: Mapping[str, str]) -> str:
    line = kernel_parameters.command_line({**parameters, "initrd": "ramdisk"})
    return (
        "#!ipxe\n"
        f"kernel --name kernel {kernel} {line} || goto failed\n"
        f"initrd --name ramdisk {image} || goto failed\n"
        f"boot || goto failed\n{_FAILED}")
