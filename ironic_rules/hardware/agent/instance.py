"""The instance's requests of the machine other than its image (boot mode, disk), and the rescue interface ``agent``.

The rescue system is the ramdisk with ironic-python-agent, with the password of the request.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from oslo_utils import secretutils

from ironic_rules.exceptions import InvalidParameterValue, IronicRulesError, Problem
from ironic_rules.hardware.agent import in_band, ramdisk
from ironic_rules.hardware.base import RescueInterface
from ironic_rules.hardware.boot import media
from ironic_rules.models import disk_hints, json_text, states
from ironic_rules.models.documents import JSON, JSONObject
from ironic_rules.models.nodes import Node
from ironic_rules.models.task import Task
from ironic_rules.rules import ActionError, capabilities

_MODES = ("uefi", "bios")
_CAPABILITIES = "/instance_info/capabilities"


def boot_mode(node: Node, default: str) -> str:
    """Return the boot mode of the instance: that which it requests, or that of the node, or ``default``."""
    return requested_boot_mode(node) or (node.boot_mode if node.boot_mode in _MODES else None) or default


def requested_boot_mode(node: Node) -> str | None:
    """Return the boot mode that the instance requests, or that the node's properties require; None if neither does."""
    modes = (_capabilities(node.instance_info).get("boot_mode"), node.instance_info.get("deploy_boot_mode"),
             _capabilities(node.properties).get("boot_mode"))
    return next((str(mode) for mode in modes if mode), None)


def check(node: Node, modes: Collection[str]) -> None:
    """Check the instance's requests of the machine.

    :param modes: the boot modes that the management interface can set; none if it cannot
    :raises InvalidParameterValue: with everything that cannot be done
    """
    if problems := list(_problems(node, modes)):
        raise InvalidParameterValue(problems=problems)


def _problems(node: Node, modes: Collection[str]) -> Iterator[Problem]:
    try:
        requested = _parsed(node.instance_info)
        of_node = _parsed(node.properties)
    except ActionError as exc:
        yield Problem(_CAPABILITIES, str(exc))
        return
    if requested.get("boot_option", "local") != "local":
        yield Problem(f"{_CAPABILITIES}/boot_option", "must be local: images are booted from the disk; to boot a "
                                                      "ramdisk, use the deploy interface ramdisk")
    for name in ("secure_boot", "trusted_boot"):
        if str(requested.get(name, "false")).lower() not in ("false", "disabled", "forbidden"):
            yield Problem(f"{_CAPABILITIES}/{name}", "a deployment does not switch it on; request it without this "
                                                     "capability from a machine where it is on")
    mode = requested_boot_mode(node)
    if mode is not None and mode not in _MODES:
        yield Problem(_CAPABILITIES, f"boot_mode must be {' or '.join(_MODES)}")
    elif mode is not None and not modes and of_node.get("boot_mode", node.boot_mode or mode) != mode:
        yield Problem(_CAPABILITIES, f"the boot mode of the machine is not {mode}, and its management interface cannot "
                                     "change it")
    yield from ramdisk.instance_problems(node)
    yield from _hint_problems("/instance_info/root_device", node.instance_info.get("root_device"))
    yield from _hint_problems("/properties/root_device", node.properties.get("root_device"))


def _hint_problems(where: str, hint: JSON) -> Iterator[Problem]:
    if hint not in (None, {}):
        try:
            disk_hints.parse(hint, where)
        except disk_hints.BadHint as exc:
            yield Problem("", str(exc))
            return
        if reason := disk_hints.agent_problem(hint, where):
            yield Problem("", reason)


def _capabilities(fields: Mapping[str, JSON]) -> JSONObject:
    try:
        return _parsed(fields)
    except ActionError:
        return {}


def _parsed(fields: Mapping[str, JSON]) -> JSONObject:
    """Return the capabilities of ``instance_info`` or ``properties``; Nova writes those of instances as JSON.

    :raises ActionError: they are invalid
    """
    value = fields.get("capabilities")
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            value = json_text.parse(value)
        except ValueError as exc:
            raise ActionError("the capabilities are no valid JSON") from exc
    return capabilities.parse(value)


#: Algorithm of the password's hash, as in /etc/shadow.
_SALT = "SHA-512"


class AgentRescue(RescueInterface):
    """Boots the ramdisk, and lets its agent set the password of the user ``rescue``; only the hash is sent."""

    def validate(self, task: Task) -> None:
        """Check that the ramdisk can be booted.

        :raises InvalidParameterValue: the boot interface cannot, and ``[inspector]require_managed_boot`` is true
        """
        media.check_rescue(self.conf, task)
        ramdisk.ramdisk_parameters(self, task)

    def rescue(self, task: Task) -> str:
        media.check_rescue(self.conf, task)
        in_band.forget(task)
        ramdisk.boot(self, task)
        return states.RESCUEWAIT

    @ramdisk.silence_tolerated
    def continue_rescue(self, task: Task) -> str | None:
        client = in_band.client_of(self.conf, task)
        if client is None:
            return states.RESCUEWAIT
        password = task.node.instance_info.get("rescue_password")
        if not isinstance(password, str):
            raise IronicRulesError("instance_info has no rescue_password any more.")
        hashed = secretutils.crypt_password(password, secretutils.crypt_mksalt(_SALT))
        client.run("rescue.finalize_rescue", {"rescue_password": hashed, "hashed": True})
        in_band.forget(task)
        return None

    def unrescue(self, task: Task) -> None:
        ramdisk.leave(self, task)
        in_band.forget(task)
        ramdisk.boot_instance(self, task)

    def clean_up(self, task: Task) -> None:
        ramdisk.stop(self, task)
        in_band.forget(task)
