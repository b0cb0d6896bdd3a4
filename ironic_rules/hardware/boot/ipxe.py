"""``ipxe``: the machine boots the ramdisk over the network, with its own iPXE script.

``boot.ipxe`` is the script that a DHCP server passes to every machine. It continues with
``pxelinux.cfg/<MAC address>``, which exists while the node is to boot a ramdisk of the service, else with
``instances/<MAC address>``, which exists while the node has an instance that is booted over the network. Machines
without either do as ``[pxe]unknown_machines`` says.
"""

from __future__ import annotations

import hashlib
import re
import string
from collections.abc import Mapping
from importlib import resources
from pathlib import Path

from oslo_config import cfg
from oslo_log import log

from ironic_rules.exceptions import ConfigurationError, Invalid, InvalidParameterValue, IronicRulesError
from ironic_rules.hardware.base import BootInterface, RamdiskFiles
from ironic_rules.hardware.boot import kernel_parameters, media
from ironic_rules.hardware.boot.device import boot_from
from ironic_rules.hardware.boot.media import PublishedFolder, write_atomically
from ironic_rules.models import addresses
from ironic_rules.models.internal_keys import IPXE_INSTANCE_SCRIPTS, IPXE_SCRIPTS
from ironic_rules.models.task import Task

LOG = log.getLogger(__name__)

FOLDER = "pxelinux.cfg"
INSTANCES = "instances"
BOOT_SCRIPT = "boot.ipxe"
#: The script or URL of an operator; a name is below ``http_root``.
_SCRIPT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._~:/?&%@+=,-]*")
#: The line of a file that the service has written, with a hash of the lines after it.
_MARK = "# Written by ironic-rules, which replaces this file while it has this hash: "
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
        write_boot_script(self.conf)
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

    def ramdisk_files(self, task: Task) -> RamdiskFiles | None:
        folder, names = self._folder(), task.node.driver_internal_info.get(IPXE_SCRIPTS, ())
        if not (written := [at for name in names if (at := folder.written_at(name)) is not None]):
            return None
        kernel, image = (media.image_url(self.conf, task, key) for key in ("deploy_kernel", "deploy_ramdisk"))
        return RamdiskFiles(min(written), {
            "its boot script": [folder.url(name) for name in names], "the kernel": [kernel], "the ramdisk": [image]})

    def validate_instance(self, task: Task) -> None:
        _instance_script(self.conf, task)
        self._instances().url("x")
        if not _addresses(task):
            raise InvalidParameterValue(_no_port(task))

    def prepare_instance(self, task: Task) -> None:
        script = _instance_script(self.conf, task).encode("ascii")
        write_boot_script(self.conf)
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


class _Template(string.Template):
    """Text with ``@{name}``: iPXE has ``${name}`` itself."""

    delimiter = "@"


def is_used(conf: cfg.ConfigOpts) -> bool:
    """Return whether machines may begin with ``boot.ipxe``: there is a web server, or something needs the script."""
    return bool(conf.deploy.http_url or conf.pxe.unknown_machines or conf.pxe.ipxe_fallback_script
                or "ipxe" in conf.enabled_boot_interfaces)


def write_boot_script(conf: cfg.ConfigOpts) -> None:
    """Write ``boot.ipxe``, unless there is one that an operator has written or changed.

    :raises ConfigurationError: as from :func:`boot_script`
    :raises IronicRulesError: the folder cannot be written
    """
    path = Path(conf.deploy.http_root).absolute() / BOOT_SCRIPT
    content = boot_script(conf)
    try:
        present = path.read_bytes() if path.exists() else None
        if present is None or (present != content and _is_ours(present)):
            write_atomically(path, content)
        elif present != content:
            LOG.debug("%s was not written by the service: it remains as it is", path)
    except OSError as exc:
        raise IronicRulesError(f"The file {path} cannot be written ([deploy]http_root): {exc.strerror}.") from exc


def is_of_operator(conf: cfg.ConfigOpts) -> bool:
    """Return whether ``boot.ipxe`` exists and is not what the service would write."""
    path = Path(conf.deploy.http_root).absolute() / BOOT_SCRIPT
    try:
        return path.exists() and not _is_ours(path.read_bytes())
    except OSError:
        return False


def _is_ours(content: bytes) -> bool:
    first, mark, rest = (*content.split(b"\n", 2), b"", b"")[:3]
    return mark == _mark(first, rest)


def _mark(first: bytes, rest: bytes) -> bytes:
    return _MARK.encode() + hashlib.sha256(first + b"\n" + rest).hexdigest().encode()


def boot_script(conf: cfg.ConfigOpts) -> bytes:
    """Return the content of ``boot.ipxe``, made from ``[pxe]ipxe_boot_script``.

    :raises ConfigurationError: the template cannot be used, or what it needs is not configured
    """
    template = _template(conf.pxe.ipxe_boot_script)
    try:
        text = _Template(template).substitute(_values(conf))
    except (KeyError, ValueError) as exc:
        names = ", ".join(f"@{{{name}}}" for name in sorted(_values(conf)))
        raise ConfigurationError(f"[pxe]ipxe_boot_script has a name that is not one of {names}, or a single @, for "
                                 f"which it must have @@: {exc}.") from exc
    first, _, rest = text.encode().partition(b"\n")
    if first != b"#!ipxe":
        raise ConfigurationError("[pxe]ipxe_boot_script must begin with the line #!ipxe.")
    return b"\n".join((first, _mark(first, rest), rest))


def _template(path: str | None) -> str:
    if not path:
        return resources.files(__package__).joinpath(BOOT_SCRIPT).read_text(encoding="utf-8")
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else "it is not UTF-8"
        raise ConfigurationError(f"[pxe]ipxe_boot_script: the file {path} cannot be read: {reason}.") from exc


def _values(conf: cfg.ConfigOpts) -> dict[str, str]:
    """Return the names of the template."""
    chosen = conf.pxe.unknown_machines
    script = conf.pxe.ipxe_fallback_script or ""
    if script and not _SCRIPT.fullmatch(script):
        raise ConfigurationError("[pxe]ipxe_fallback_script must be the name of a file or a URL, without white space, "
                                 "quotes and other characters that have a meaning in boot scripts.")
    if chosen == "script" and not script:
        raise ConfigurationError("[pxe]unknown_machines is script, but [pxe]ipxe_fallback_script is not set.")
    ramdisk = dict.fromkeys(("kernel", "ramdisk", "kernel_parameters"), "")
    try:
        ramdisk = _ramdisk_of_unknown_machines(conf)
    except Invalid as exc:
        if chosen == "inspect":
            raise ConfigurationError(f"[pxe]unknown_machines is inspect: {exc}") from exc
        if not chosen and not script and conf.auto_discovery.enabled:
            LOG.warning("boot.ipxe cannot boot the inspection ramdisk on unknown machines, which continue with their "
                        "next boot device: %s", exc)
    default = "script" if script else "inspect" if conf.auto_discovery.enabled and ramdisk["kernel"] else "next"
    return {"unknown_machines": chosen or default, "script": script, **ramdisk}


def _ramdisk_of_unknown_machines(conf: cfg.ConfigOpts) -> dict[str, str]:
    image_urls = {}
    for name in ("kernel", "ramdisk"):
        option = f"[pxe]{name}" if conf.pxe[name] else f"[deploy]deploy_{name}"
        if not (value := conf.pxe[name] or conf.deploy[f"deploy_{name}"]):
            raise InvalidParameterValue(f"Neither [pxe]{name} nor [deploy]deploy_{name} is set.")
        image_urls[name] = media.operators_url(value, option)
    parameters = kernel_parameters.parameters_of_unknown_machines(conf)
    return {**image_urls, "kernel_parameters": kernel_parameters.command_line(parameters)}


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
    macs = []
    for port in task.ports:
        if every or port.pxe_enabled:
            try:
                macs.append(addresses.normalize_mac(port.address))
            except ValueError as exc:
                raise InvalidParameterValue(f"The address of port {port.uuid}: {exc}.") from exc
    return macs


def _dashed(address: str) -> str:
    return address.replace(":", "-")


def _script(kernel: str, image: str, parameters: Mapping[str, str]) -> str:
    line = kernel_parameters.command_line({**parameters, "initrd": "ramdisk"})
    return (
        "#!ipxe\n"
        f"kernel --name kernel {kernel} {line} || goto failed\n"
        f"initrd --name ramdisk {image} || goto failed\n"
        f"boot || goto failed\n{_FAILED}")
