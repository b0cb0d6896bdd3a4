"""Kernel parameters of the ramdisks that this service boots."""

from __future__ import annotations

import re
from collections.abc import Mapping

from oslo_config import cfg
from oslo_log import log

from ironic_rules.exceptions import Invalid, InvalidParameterValue
from ironic_rules.hardware.base import Interface
from ironic_rules.models.task import Task
from ironic_rules.text import printable

LOG = log.getLogger(__name__)

#: key of ``driver_info``
APPEND = "kernel_append_params"
APPEND_TEXT = ("Kernel parameters of the ramdisk, separated by spaces, instead of [inspector]extra_kernel_params, for "
               "which %default% stands.")
_CALLBACK = "/v1/continue_inspection"
# These are written to boot scripts: characters that could end a line or a quoted word there must be refused.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_VALUE = re.compile(r"[A-Za-z0-9_.,:;/?&%@+~=\[\]-]*")


def inspection_parameters(conf: cfg.ConfigOpts, *, is_external: bool = False,
                          of_node: str | None = None) -> dict[str, str]:
    """Return the kernel parameters of an inspection: name to value; a flag has an empty value.

    :param is_external: whether the ramdisk may run outside the network from which machines boot
    :param of_node: ``driver_info/kernel_append_params``, in which ``%default%`` stands for those of the configuration
    :raises InvalidParameterValue: the API's address is not configured, or ``extra_kernel_params`` is malformed
    """
    roots = {"[inspector]callback_endpoint_override": conf.inspector.callback_endpoint_override,
             **({"[deploy]external_callback_url": conf.deploy.external_callback_url} if is_external else {}),
             "[api]public_endpoint": conf.api.public_endpoint}
    root = _root_url(roots, "A managed boot")
    parameters = {"ipa-inspection-callback-url": root + _CALLBACK, "ipa-api-url": root}
    configured = conf.inspector.extra_kernel_params
    parameters |= parameters_of(
        of_node.replace("%default%", configured) if isinstance(of_node, str) else of_node or configured)
    check(parameters)
    return parameters


def parameters_of_unknown_machines(conf: cfg.ConfigOpts) -> dict[str, str]:
    """Return the kernel parameters of machines without a node, which have no URL for heartbeats.

    :raises InvalidParameterValue: the API's address is not configured, or parameters are malformed
    """
    root = _root_url({"[pxe]callback_url": conf.pxe.callback_url,
                      "[inspector]callback_endpoint_override": conf.inspector.callback_endpoint_override,
                      "[api]public_endpoint": conf.api.public_endpoint}, "boot.ipxe")
    appended = conf.pxe.kernel_append_params
    return {"ipa-inspection-callback-url": root + _CALLBACK,
            **parameters_of(conf.inspector.extra_kernel_params if appended is None else appended)}


def _root_url(roots: Mapping[str, str | None], subject: str) -> str:
    """Return the first URL that is set; ``roots`` has them by their options."""
    root = next((value.rstrip("/") for value in roots.values() if value), None)
    if not root:
        *others, last = roots
        raise InvalidParameterValue(f"{subject} must pass the URL of the API to the ramdisk: set {', '.join(others)} "
                                    f"or {last}.")
    return root


def parameters_of(text: str | None) -> dict[str, str]:
    """Return the kernel parameters of a text that has them separated by spaces: name to value.

    :raises InvalidParameterValue: one has characters that are not allowed in a boot script
    """
    if not isinstance(text, str | None):
        raise InvalidParameterValue("Kernel parameters must be a text.")
    parameters = {name: value for name, _, value in (word.partition("=") for word in (text or "").split())}
    check(parameters)
    return parameters


def managed_parameters(interface: Interface, task: Task) -> dict[str, str] | None:
    """Return the kernel parameters for a boot by the node's boot interface; None if the boot is not managed.

    :param interface: the one that needs the ramdisk
    :raises InvalidParameterValue: the boot interface cannot boot the node, and a boot must be managed
    """
    try:
        boot = interface.interface_of(task.node, "boot")
        boot.validate_inspection(task)
        return inspection_parameters(interface.conf, is_external=boot.is_external,
                                     of_node=task.node.driver_info.get(APPEND))
    except Invalid as exc:
        if interface.conf.inspector.require_managed_boot:
            raise InvalidParameterValue(
                f"The boot interface '{task.node.boot_interface}' of node {task.node.uuid} cannot boot a ramdisk: "
                f"{exc} Correct that, use another boot interface, or set [inspector]require_managed_boot to false "
                "if a DHCP and TFTP environment outside this service boots the ramdisk.") from exc
        LOG.debug("The boot of node %s is not managed: %s", task.node.uuid, exc)
        return None


def check(parameters: Mapping[str, str]) -> None:
    """Refuse texts that could be interpreted as anything but a kernel parameter on any way to the ramdisk.

    :raises InvalidParameterValue: a name or a value has characters that are not allowed in a boot script
    """
    for name, value in parameters.items():
        if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
            raise InvalidParameterValue(f"The kernel parameter '{printable(name, 64)}' has characters that are not "
                                        "allowed in a boot script.")


def command_line(parameters: Mapping[str, str]) -> str:
    """Return ``parameters`` in the format of a kernel command line."""
    return " ".join(f"{name}={value}" if value else name for name, value in parameters.items())
