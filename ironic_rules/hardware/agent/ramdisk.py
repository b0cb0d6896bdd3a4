"""The ramdisk with ironic-python-agent: booting and stopping it, and its silence.

A step whose agent does not answer waits for the next heartbeat and calls again, for a bounded time.

Settings of Ironic that the interfaces with a ramdisk do not take into account are refused, never ignored. The API
stores them, since clients may set them before they choose interfaces; ``validate`` and the operations that would need
them report the reason.
"""

from __future__ import annotations

import datetime
import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from oslo_log import log
from oslo_utils import strutils

from ironic_rules.db import clock
from ironic_rules.exceptions import AgentSilent, InvalidParameterValue, IronicRulesError, Problem
from ironic_rules.hardware.base import Interface
from ironic_rules.hardware.boot import kernel_parameters
from ironic_rules.hardware.boot.device import boot_from
from ironic_rules.models import states
from ironic_rules.models.internal_keys import (
    AGENT_ADDRESS,
    AGENT_LAST_HEARTBEAT,
    AGENT_SILENT_SINCE,
    AGENT_STAYS,
    AGENT_URL,
)
from ironic_rules.models.nodes import Node
from ironic_rules.models.task import Task

LOG = log.getLogger(__name__)


def ramdisk_parameters(interface: Interface, task: Task) -> dict[str, str] | None:
    """Return the kernel parameters of the ramdisk; None if the service does not manage the node's boot.

    :param interface: the one that needs the ramdisk
    :raises InvalidParameterValue: the boot interface cannot boot it, and ``[inspector]require_managed_boot`` is true;
        or the node has a setting that ramdisks do not take into account
    """
    check_unsupported(task.node)
    parameters = kernel_parameters.managed_parameters(interface, task)
    if parameters is not None:
        # With it, the agent would begin with an inspection.
        parameters.pop("ipa-inspection-callback-url", None)
    return parameters


def boot(interface: Interface, task: Task) -> None:
    """Boot the ramdisk. Safe to repeat.

    :raises InvalidParameterValue: as :func:`parameters`
    """
    prepare(interface, task)
    interface.interface_of(task.node, "power").set_power_state(task, states.REBOOT)


def prepare(interface: Interface, task: Task) -> None:
    """Let the next boot of the machine, which the caller begins immediately, be one of the ramdisk. Safe to repeat.

    :raises InvalidParameterValue: as :func:`parameters`
    """
    parameters = ramdisk_parameters(interface, task)
    if parameters is None:
        boot_from(interface, task, "pxe")
    else:
        interface.interface_of(task.node, "boot").prepare_ramdisk(task, parameters)
    # The ramdisk that is booted now may have another address, and another certificate.
    forget_address(task)
    task.expect_ramdisk()


def forget_address(task: Task) -> None:
    """Remove what a heartbeat has stored about how the agent is reached."""
    for key in AGENT_ADDRESS:
        task.node.driver_internal_info.pop(key, None)


def waits_for_work(interface: Interface, task: Task) -> bool:
    """Return whether the node's agent runs and waits for its next operation (fast track), so that nothing is booted.

    As in Ironic: the machine is on, and its agent has sent a heartbeat, with its token, less than
    ``[deploy]fast_track_timeout`` seconds ago.
    """
    node, conf = task.node, interface.conf
    last = node.driver_internal_info.get(AGENT_LAST_HEARTBEAT)
    if not states.is_fast_track(node.driver_info, conf.deploy.fast_track) or node.agent_token_hash is None or not last:
        return False
    silent_s = (clock.now() - datetime.datetime.fromisoformat(last)).total_seconds()
    if AGENT_URL not in node.driver_internal_info or silent_s > conf.deploy.fast_track_timeout:
        return False
    return interface.interface_of(node, "power").get_power_state(task) == states.POWER_ON


def leave_running(interface: Interface, task: Task) -> None:
    """Undo what boots the ramdisk, which runs on; its agent keeps its token for the next operation."""
    interface.interface_of(task.node, "boot").clean_up_ramdisk(task)
    task.node.driver_internal_info[AGENT_STAYS] = True


def stop(interface: Interface, task: Task) -> None:
    """Switch the machine off (with ``disable_power_off``, reboot it), so that the ramdisk ends. Safe to repeat."""
    with interface.interface_of(task.node, "power").off(task):
        interface.interface_of(task.node, "boot").clean_up_ramdisk(task)


def leave(interface: Interface, task: Task) -> None:
    """As :func:`stop`, before something else is booted, which ends the ramdisk with ``disable_power_off``."""
    if task.node.disable_power_off:
        interface.interface_of(task.node, "boot").clean_up_ramdisk(task)
    else:
        stop(interface, task)


def prepare_instance(interface: Interface, task: Task) -> None:
    """Let the machine boot the instance from now on, as its deploy interface does."""
    if interface.interface_of(task.node, "deploy").boots_from_disk:
        boot_from(interface, task, "disk", persistent=True)
    else:
        interface.interface_of(task.node, "boot").prepare_instance(task)


def boot_instance(interface: Interface, task: Task) -> None:
    """Boot the instance, persistently, after :func:`leave`."""
    prepare_instance(interface, task)
    target = states.REBOOT if task.node.disable_power_off else states.POWER_ON
    interface.interface_of(task.node, "power").set_power_state(task, target)


class _Configured(Protocol):
    @property
    def conf(self) -> Any:
        """The options."""


_Interface = TypeVar("_Interface", bound=_Configured)
_P = ParamSpec("_P")
_Method = Callable[Concatenate[_Interface, Task, _P], str | None]


def silence_tolerated(method: _Method[_Interface, _P]) -> _Method[_Interface, _P]:
    """Let a method that requests something of the agent wait while there is no answer.

    The method must be safe to repeat, even if the agent has received the request. The wait ends with the next
    heartbeat; after ``[deploy]agent_silence_timeout`` seconds without any answer, the method fails.
    """
    @functools.wraps(method)
    def wrapper(self: _Interface, task: Task, *args: _P.args, **kwargs: _P.kwargs) -> str | None:
        try:
            ends = method(self, task, *args, **kwargs)
        except AgentSilent as exc:
            _check_time(task, exc, self.conf.deploy.agent_silence_timeout)
            LOG.warning("Node %s: %s The request is repeated after the next heartbeat.", task.node.uuid, exc)
            return states.DEPLOYWAIT
        if task.context.agent_token:  # otherwise nothing was requested
            task.node.driver_internal_info.pop(AGENT_SILENT_SINCE, None)
        return ends

    return wrapper


def _check_time(task: Task, error: AgentSilent, timeout_s: int) -> None:
    """Check that the agent may still be waited for.

    :raises IronicRulesError: it has not answered for ``timeout_s`` seconds
    """
    now = clock.now()
    since = task.node.driver_internal_info.setdefault(AGENT_SILENT_SINCE, now.isoformat())
    silent_s = (now - datetime.datetime.fromisoformat(since)).total_seconds()
    if silent_s >= timeout_s:
        raise IronicRulesError(f"{error} It has not answered for {silent_s:.0f} s, although it sends heartbeats "
                               f"([deploy]agent_silence_timeout: {timeout_s}).") from error


_NETWORK = "machines are not moved between networks"
_ARCHITECTURE = "there is one ramdisk for all architectures of a conductor; set deploy_kernel and deploy_ramdisk"
_REMOVABLE = "config drives are written to the disk only"
#: Settings of ``driver_info``.
DRIVER_INFO: dict[str, str] = {
    "agent_verify_ca": "agents send their certificates themselves",
    "bootloader": "boot images are not made; use deploy_iso", "bootloader_by_arch": _ARCHITECTURE,
    "deploy_kernel_by_arch": _ARCHITECTURE, "deploy_ramdisk_by_arch": _ARCHITECTURE,
    "rescue_kernel_by_arch": _ARCHITECTURE, "rescue_ramdisk_by_arch": _ARCHITECTURE,
    "pxe_template": "boot scripts are not made of templates",
    "vmedia_transport_protocol": "BMCs load images by HTTP",
    "config_via_floppy": _REMOVABLE, "config_via_removable": _REMOVABLE,
    "external_http_url": "there is one web server for all machines: [deploy]http_url",
    **dict.fromkeys(("cleaning_network", "inspection_network", "provisioning_network", "rescuing_network",
                     "servicing_network"), _NETWORK),
}
_PARTITIONS = "whole-disk images have their own partitions"
#: Settings of ``instance_info``, for instances on a disk.
INSTANCE_INFO: dict[str, str] = {
    "boot_iso": "is booted by the deploy interface ramdisk", "kernel_append_params": (
        "the kernel parameters of an instance on a disk are those of its image"),
    "ephemeral_gb": _PARTITIONS, "preserve_ephemeral": _PARTITIONS, "swap_mb": _PARTITIONS,
    "image_pull_secret": "images of container registries are not supported",
    **dict.fromkeys(("ks_cfg", "ks_template", "stage2"), "the deploy interface anaconda is not offered"),
}
#: Values that request nothing.
_NOTHING = frozenset({"", "0", "false", "none"})
#: Keys with the only value that the service supports.
_DONE_ANYWAY = frozenset({("vmedia_transport_protocol", "http")})


def check_unsupported(node: Node) -> None:
    """Refuse fields of a node that ramdisks do not take into account.

    :raises InvalidParameterValue: with every setting
    """
    problems = list(_set("/driver_info", node.driver_info, DRIVER_INFO))
    if node.network_data:
        problems.append(Problem("/network_data", "is not passed to ramdisks, which must use DHCP"))
    if node.driver_info.get("image_download_source") not in (None, "http"):
        problems.append(Problem("/driver_info/image_download_source", "must be http: the agent loads the image itself"))
    if not strutils.is_valid_boolstr(node.driver_info.get(states.FAST_TRACK_KEY, False)):
        problems.append(Problem(f"/driver_info/{states.FAST_TRACK_KEY}", "must be true or false"))
    if problems:
        raise InvalidParameterValue(problems=problems)


def instance_problems(node: Node) -> Iterator[Problem]:
    """Yield the problems of fields that instances on a disk cannot have."""
    yield from _set("/instance_info", node.instance_info, INSTANCE_INFO)


def _set(where: str, values: Mapping[str, object], unsupported: Mapping[str, str]) -> Iterator[Problem]:
    for key, reason in unsupported.items():
        value = str(values.get(key, "")).lower()
        if value not in _NOTHING and (key, value) not in _DONE_ANYWAY:
            yield Problem(f"{where}/{key}", f"is not supported: {reason}")
