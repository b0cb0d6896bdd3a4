"""The deploy interfaces of ironic-python-agent: ``custom-agent``, ``direct`` and ``ramdisk``.

``custom-agent`` writes no image, as Ironic's interface of that name: it requires an agent with a suitable hardware
manager, whose own deploy steps deploy the instance.

``direct`` has the agent write the image of ``instance_info`` to a disk, from which the machine boots. The agent's
commands are started and their results read after its heartbeats; the node waits for these in between.

``ramdisk`` writes no disk: the node's boot interface boots the instance each time, from ``boot_iso`` of
``instance_info``, or ``kernel``, ``ramdisk`` and ``kernel_append_params``. No agent runs, except to clean and to
service the machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from oslo_log import log
from oslo_utils import strutils

from ironic_rules.exceptions import AgentSilent, BMCError, InvalidParameterValue, IronicRulesError, Problem
from ironic_rules.hardware import destinations, waiting
from ironic_rules.hardware.agent import config_drive, image, instance, ramdisk
from ironic_rules.hardware.agent.client import RUNNING, SUCCEEDED, failure
from ironic_rules.hardware.agent.in_band import AgentSteps, client_of, forget
from ironic_rules.hardware.boot import media
from ironic_rules.hardware.boot.device import PROPERTIES, boot_from, forced_persistence
from ironic_rules.hardware.boot.media import PublishedFolder
from ironic_rules.models import states, urls
from ironic_rules.models.documents import JSON, JSONObject
from ironic_rules.models.internal_keys import AGENT_COMMAND_STARTED, AGENT_LAST_COMMAND
from ironic_rules.models.task import Task
from ironic_rules.steps import procedures
from ironic_rules.steps.declaration import deploy_step
from ironic_rules.steps.procedures import ALL

LOG = log.getLogger(__name__)


class CustomAgentDeploy(AgentSteps):
    """Boots the ramdisk, runs its deploy steps, and boots the instance from disk."""

    @deploy_step(priority=40, core=True, rerunnable=True)
    def tear_down_agent(self, task: Task) -> str | None:
        """Stop the ramdisk; with ``disable_power_off``, it runs until the instance is booted."""
        self.leave_ramdisk(task)
        return None

    @deploy_step(priority=30, core=True, rerunnable=True)
    def switch_to_tenant_network(self, task: Task) -> None:
        """Connect the instance's networks: no network interface requires it."""

    @deploy_step(priority=20, core=True, rerunnable=True)
    def boot_instance(self, task: Task) -> None:
        """Boot the instance from disk, persistently."""
        ramdisk.boot_instance(self, task)


FOLDER = "images"
#: key of ``driver_info``
_BY_BMC = "deploy_forces_oob_reboot"


class DirectDeploy(CustomAgentDeploy):
    """Boots the ramdisk, lets it write the image, and boots the instance from disk."""

    properties = {
        **CustomAgentDeploy.properties,
        _BY_BMC: "Whether the BMC switches the machine off after a deployment (with disable_power_off, reboots it), "
                 "without the ramdisk. Default: false.",
        **{f"image_{scheme}_proxy": f"URL of the proxy through which agents load {scheme} images, unless instance_info "
                                    "has one." for scheme in ("http", "https")},
        "image_no_proxy": "Hosts whose images are loaded without a proxy, unless instance_info has them.",
    }

    def validate(self, task: Task) -> None:
        """Check the ramdisk's boot, the image, and what the instance requests.

        The image is requested from its server (``[deploy]image_check_timeout``).

        :raises InvalidParameterValue: the node cannot be deployed with it; the text says why
        """
        super().validate(task)
        instance.check(task.node, self.interface_of(task.node, "management").get_supported_boot_modes(task))
        requested = self._wanted(task)
        loaded = requested.urls()
        if requested.is_file:
            self._file(requested)
            self._folder().url(task.node.uuid)
        drive = task.node.instance_info.get("configdrive")
        if drive is not None:
            config_drive.check(drive)
            if config_drive.is_url(drive):
                loaded["/instance_info/configdrive"] = drive
        destinations.check(self.conf, requested.proxy_urls())
        image.check_urls(self.conf, loaded)

    def warnings(self, task: Task) -> list[Problem]:
        return image.warnings(task.node)

    @deploy_step(priority=100, core=True, rerunnable=True)
    def deploy(self, task: Task) -> str | None:
        """Set the boot mode that the instance requests, and boot the ramdisk unless it runs in it (fast track)."""
        management = self.interface_of(task.node, "management")
        mode = instance.requested_boot_mode(task.node)
        if mode is not None and mode in management.get_supported_boot_modes(task):
            if ramdisk.waits_for_work(self, task) and management.get_boot_mode(task) != mode:
                ramdisk.forget_address(task)  # so it is booted again, in the mode in which it prepares the disk
            management.set_boot_mode(task, mode)
        return super().deploy(task)

    @deploy_step(priority=80, core=True, rerunnable=True)
    @ramdisk.silence_tolerated
    def write_image(self, task: Task) -> str | None:
        """Let the agent write the image and the config drive to the disk."""
        return self._run(task, "standby.prepare_image", lambda: self._image(task))

    @deploy_step(priority=60, core=True, rerunnable=True)
    @ramdisk.silence_tolerated
    def prepare_instance_boot(self, task: Task) -> str | None:
        """Let the agent register the image's boot loader in UEFI mode, and make the disk the boot device."""
        client = client_of(self.conf, task)
        if client is None:
            return states.DEPLOYWAIT
        mode = instance.boot_mode(task.node, self.conf.deploy.default_boot_mode)
        # In BIOS mode, the boot loader of a whole-disk image needs no preparation.
        if mode == "uefi":
            def parameters() -> JSONObject:
                uuids = client.run("standby.get_partition_uuids", {})
                efi = uuids.get("efi system partition uuid") if isinstance(uuids, dict) else None
                return {"root_uuid": None, "efi_system_part_uuid": efi, "target_boot_mode": mode}

            if (waits := self._run(task, "image.install_bootloader", parameters)) is not None:
                return waits
        boot_from(self, task, "disk", persistent=True)
        return None

    @deploy_step(priority=40, core=True, rerunnable=True)
    @ramdisk.silence_tolerated
    def tear_down_agent(self, task: Task) -> str | None:
        """Let the agent flush its buffers and switch the machine off; with ``disable_power_off``, reboot it."""
        power, node = self.interface_of(task.node, "power"), task.node
        if power.get_power_state(task) != states.POWER_OFF:
            client = client_of(self.conf, task)
            if client is None:
                return states.DEPLOYWAIT
            client.run("standby.sync", {})
            # Before the machine boots again.
            self._undo_boot(task)
            by_bmc = strutils.bool_from_string(node.driver_info.get(_BY_BMC))
            if node.disable_power_off:
                if by_bmc:
                    power.set_power_state(task, states.REBOOT)
                else:
                    client.start("standby.run_image", {})
            else:
                timeout_s = self.conf.deploy.agent_power_off_timeout
                if timeout_s and not by_bmc:
                    try:
                        client.start("standby.power_off", {})
                    except AgentSilent as exc:  # also if the machine is off before the answer is sent
                        LOG.info("Node %s: the request to switch the machine off: %s", node.uuid, exc)
                    self._await_power_off(task, timeout_s)
                power.set_power_state(task, states.POWER_OFF)
        self._undo_boot(task)
        forget(task)
        return None

    def boot_instance(self, task: Task) -> None:
        """Boot the instance from disk, persistently; with ``disable_power_off``, tear_down_agent has rebooted it."""
        boot_from(self, task, "disk", persistent=True)
        self.interface_of(task.node, "power").set_power_state(task, states.POWER_ON)

    def tear_down(self, task: Task) -> None:
        with self.interface_of(task.node, "power").off(task):
            self._undo_boot(task)
        forget(task)

    def clean_up(self, task: Task) -> None:
        self._undo_boot(task)

    def continue_step(self, task: Task, step: str, args: Mapping[str, JSON]) -> str | None:
        if any(step == procedure.boot_step for procedure in ALL):
            return super().continue_step(task, step, args)
        waits: str | None = getattr(self, step)(task, **args)
        return waits

    def _run(self, task: Task, command: str, parameters: Callable[[], JSONObject]) -> str | None:
        """Let the agent run an asynchronous command: start it, or check its progress. Safe to repeat.

        :returns: None when it is done, else ``states.DEPLOYWAIT``
        :raises IronicRulesError: it failed, or the agent no longer knows it
        """
        client = client_of(self.conf, task)
        if client is None:
            return states.DEPLOYWAIT
        internal = task.node.driver_internal_info
        commands = client.commands()
        last = internal.get(AGENT_LAST_COMMAND)
        processed = next((place for place, entry in enumerate(commands, 1) if entry.get("id") == last), 0)
        # The command is identified by its name among the new ones, so that it is found even if a conductor failed
        # after starting it and before storing that.
        name = command.partition(".")[2]
        own = next((entry for entry in reversed(commands[processed:]) if entry.get("command_name") == name), None)
        if own is None:
            if internal.get(AGENT_COMMAND_STARTED):
                raise IronicRulesError("The agent no longer knows the command; the ramdisk must have been restarted.")
            client.start(command, parameters())
        if own is None or own.get("command_status") == RUNNING:
            internal[AGENT_COMMAND_STARTED] = True
            return states.DEPLOYWAIT
        if own.get("command_status") != SUCCEEDED:
            raise IronicRulesError(f"The agent reports: {failure(own)}")
        internal[AGENT_LAST_COMMAND] = own.get("id")
        internal.pop(AGENT_COMMAND_STARTED, None)
        return None

    def _wanted(self, task: Task) -> image.Image:
        return image.image_of_node(task.node, md5=self.conf.deploy.allow_md5_checksum)

    def _image(self, task: Task) -> JSONObject:
        """Return the parameters of the command that writes the image."""
        requested, node = self._wanted(task), task.node
        url = requested.source
        if requested.is_file:
            self._folder().link(node.uuid, self._file(requested))
            url = self._folder().url(node.uuid)
        mode = instance.boot_mode(node, self.conf.deploy.default_boot_mode)
        parameters = {"image_info": requested.to_agent(node.uuid, url, mode, stream=self.conf.deploy.stream_raw_images)}
        drive = config_drive.to_agent(node)
        LOG.info("Node %s: the agent writes the image of %s%s", node.uuid, urls.shown(url),
                 " and a config drive" if drive else "")
        return {**parameters, "configdrive": drive} if drive else parameters

    def _file(self, requested: image.Image) -> Path:
        """Return the path of an image that is a file of this conductor.

        :raises InvalidParameterValue: it is in none of ``[conductor]file_url_allowed_paths``, or no file
        """
        path = destinations.allowed_file(image.path_of(requested), self.conf.conductor.file_url_allowed_paths)
        if path is None or not path.is_file():
            raise InvalidParameterValue(problems=[Problem(
                "/instance_info/image_source", "is not a file in one of the folders that are allowed "
                                               "([conductor]file_url_allowed_paths)")])
        return path

    def _await_power_off(self, task: Task, timeout_s: int) -> None:
        power = self.interface_of(task.node, "power")
        try:
            waiting.wait_for_power(task, lambda: power.get_power_state(task), states.POWER_OFF, timeout_s)
        except BMCError as exc:
            LOG.warning("The ramdisk of node %s does not switch the machine off, so the BMC does: %s", task.node.uuid,
                        exc)

    def _undo_boot(self, task: Task) -> None:
        self.interface_of(task.node, "boot").clean_up_ramdisk(task)
        self._folder().remove(task.node.uuid)

    def _folder(self) -> PublishedFolder:
        return PublishedFolder(self.conf, FOLDER)


_BOOTED = ("boot_iso", "kernel", "ramdisk")
#: Keys of ``instance_info`` that only make sense for an instance on a disk.
_OF_DISKS = {
    "image_source": "is not written by the deploy interface ramdisk; use direct, or boot_iso, or kernel and ramdisk",
    "configdrive": "cannot be passed to a ramdisk",
}


class RamdiskDeploy(AgentSteps):
    """Boots the ramdisk of the instance; cleaning and servicing boot the agent's."""

    properties = PROPERTIES
    has_in_band_steps = False
    boots_from_disk = False

    def validate(self, task: Task) -> None:
        """Check that the node can boot what the instance specifies.

        :raises Invalid: it cannot; the text says why
        """
        info = task.node.instance_info
        if problems := [Problem(f"/instance_info/{key}", text) for key, text in _OF_DISKS.items() if info.get(key)]:
            raise InvalidParameterValue(problems=problems)
        ramdisk.check_unsupported(task.node)
        forced_persistence(task)
        self.interface_of(task.node, "boot").validate_instance(task)
        image.check_urls(
            self.conf, {f"/instance_info/{key}": info[key] for key in _BOOTED if isinstance(info.get(key), str)},
            media.IMAGE_SCHEMES)

    @deploy_step(priority=100, core=True, rerunnable=True)
    def deploy(self, task: Task) -> None:
        """Boot the ramdisk of the instance."""
        self.interface_of(task.node, "boot").prepare_instance(task)
        self.interface_of(task.node, "power").set_power_state(task, states.REBOOT)
        forget(task)  # with fast track, an agent may have run until now

    def tear_down(self, task: Task) -> None:
        with self.interface_of(task.node, "power").off(task):
            self.clean_up(task)

    def clean_up(self, task: Task) -> None:
        super().clean_up(task)
        # A failed servicing leaves the instance as it was, and the agent's ramdisk may have been in its place.
        if procedures.of_state(task.node.provision_state) is procedures.SERVICE:
            ramdisk.prepare_instance(self, task)
        else:
            self.interface_of(task.node, "boot").clean_up_instance(task)
