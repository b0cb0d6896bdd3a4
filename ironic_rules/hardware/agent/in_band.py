"""Steps of the ramdisk: the common part of every deploy interface that boots ironic-python-agent.

Agents are called only after their heartbeats, whose token is not stored: a call without a token waits for the next
heartbeat. Options of ``[deploy]`` say how the agent erases disks; it reads them of ``driver_internal_info``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from oslo_config import cfg
from oslo_log import log

from ironic_rules.exceptions import AgentChanged, IronicRulesError
from ironic_rules.hardware import destinations
from ironic_rules.hardware.agent import ramdisk
from ironic_rules.hardware.agent.client import RUNNING, SUCCEEDED, AgentClient, failure
from ironic_rules.hardware.base import DeployInterface
from ironic_rules.hardware.boot.device import PROPERTIES, forced_persistence
from ironic_rules.models import secrets, states
from ironic_rules.models.documents import JSON, JSONObject
from ironic_rules.models.internal_keys import (
    AGENT_COMMAND_STARTED,
    AGENT_ERASURE,
    AGENT_LAST_COMMAND,
    AGENT_MANAGERS,
    AGENT_REBOOTS,
    AGENT_SILENT_SINCE,
    AGENT_URL,
    AGENT_VERIFY_CA,
)
from ironic_rules.models.steps import MAX_PRIORITY, STEP_INTERFACES
from ironic_rules.models.task import Task
from ironic_rules.steps.declaration import StepInfo, clean_step, deploy_step, service_step
from ironic_rules.steps.procedures import ALL, CLEANING, DEPLOYMENT, Procedure, of_state

LOG = log.getLogger(__name__)


def tell_erasure(task: Task, conf: Any) -> None:
    """Write the values of the options where the agent reads them."""
    for key, option in AGENT_ERASURE.items():
        task.node.driver_internal_info[key] = conf.deploy[option]


_CHANGED = frozenset({"CLEAN_VERSION_MISMATCH", "VERSION_MISMATCH"})
_MAX_STEPS = 500
#: Maximum size of the agent's steps and versions in the node, in bytes.
_MAX_STORED = 256 * 1024


class AgentSteps(DeployInterface):
    """Boots the ramdisk for each procedure, and runs the agent's steps."""

    has_in_band_steps = True
    properties = PROPERTIES

    def validate(self, task: Task) -> None:
        """Check that the ramdisk can be booted.

        :raises InvalidParameterValue: the boot interface cannot, and ``[inspector]require_managed_boot`` is true
        """
        self.validate_ramdisk(task)

    def validate_ramdisk(self, task: Task) -> None:
        """Check that the ramdisk can be booted, as :meth:`validate` does."""
        forced_persistence(task)
        ramdisk.ramdisk_parameters(self, task)

    @deploy_step(priority=100, core=True, rerunnable=True)
    def deploy(self, task: Task) -> str | None:
        """Boot the ramdisk unless it runs (fast track), and request its deploy steps."""
        return self._begin(task, DEPLOYMENT)

    @clean_step(priority=0, core=True, rerunnable=True, abortable=True)
    def prepare_cleaning(self, task: Task) -> str | None:
        """Boot the ramdisk unless it runs (fast track), and request its clean steps."""
        return self._begin(task, CLEANING)

    @service_step(priority=0, core=True, rerunnable=True, abortable=True)
    def prepare_service(self, task: Task) -> str:
        """Boot the ramdisk, and request its service steps when it runs."""
        return self._boot(task)

    @clean_step(priority=0, core=True, rerunnable=True)
    def tear_down_cleaning(self, task: Task) -> None:
        """Stop the ramdisk; with fast track, let it run on."""
        if states.is_fast_track(task.node.driver_info, self.conf.deploy.fast_track):
            ramdisk.leave_running(self, task)
            forget_steps(task)
        else:
            ramdisk.stop(self, task)
            forget(task)

    @service_step(priority=0, core=True, rerunnable=True)
    def tear_down_service(self, task: Task) -> None:
        """Stop the ramdisk, and boot the instance again."""
        self.leave_ramdisk(task)
        ramdisk.boot_instance(self, task)

    def tear_down(self, task: Task) -> None:
        ramdisk.stop(self, task)
        forget(task)

    def clean_up(self, task: Task) -> None:
        self.interface_of(task.node, "boot").clean_up_ramdisk(task)

    def leave_ramdisk(self, task: Task) -> None:
        """Stop the ramdisk before something else is booted; with ``disable_power_off``, only that ends it."""
        ramdisk.leave(self, task)
        forget(task)

    def prepare_reboot(self, task: Task) -> bool:
        procedure = of_state(task.node.provision_state)
        internal = task.node.driver_internal_info
        if procedure is None or procedure.ramdisk_key not in internal:
            return False
        ramdisk.prepare(self, task)
        # An agent knows only the commands since its start.
        internal.pop(AGENT_LAST_COMMAND, None)
        return True

    def _begin(self, task: Task, procedure: Procedure) -> str | None:
        """Boot the ramdisk, or request the steps of the one that runs, at the latest after its next heartbeat."""
        runs = ramdisk.waits_for_work(self, task)
        if runs:
            LOG.info("Node %s: the %s continues with the agent that runs, without a reboot", task.node.uuid,
                     procedure.noun)
            forget_steps(task)
            task.resume_agent()
        else:
            self._boot(task)
        if procedure is CLEANING:
            tell_erasure(task, self.conf)
        return self.continue_step(task, procedure.boot_step, {}) if runs else states.DEPLOYWAIT

    def _boot(self, task: Task) -> str:
        forget(task)
        ramdisk.boot(self, task)
        return states.DEPLOYWAIT

    @ramdisk.silence_tolerated
    def continue_step(self, task: Task, step: str, args: Mapping[str, JSON]) -> str | None:
        """Request the agent's steps, which completes the step that has booted the ramdisk."""
        procedure = next(candidate for candidate in ALL if candidate.boot_step == step)
        client = client_of(self.conf, task)
        if client is None:
            return states.DEPLOYWAIT
        answer = client.run(f"{procedure.name}.get_{procedure.steps_key}", _machine(task))
        internal = task.node.driver_internal_info
        steps = [{"interface": info.interface, "offers": info.to_wire(), **({"reboots": True} if reboots else {})}
                 for info, reboots in _offered(answer, procedure)]
        versions = answer.get("hardware_manager_version")
        if len(json.dumps([steps, versions])) > _MAX_STORED:
            raise IronicRulesError(f"The {procedure.name} steps of the agent, with their arguments and its versions, "
                                   f"take more than {_MAX_STORED // 1024} KiB.")
        internal[procedure.ramdisk_key] = steps
        internal[AGENT_MANAGERS] = versions
        internal[AGENT_LAST_COMMAND] = _last(client.commands())
        return None

    def in_band_steps(self, task: Task, procedure: Procedure = DEPLOYMENT) -> list[StepInfo]:
        """Return the steps that the node's agent offers; none before it has reported them."""
        return [StepInfo.from_wire(step["interface"], step["offers"])
                for step in task.node.driver_internal_info.get(procedure.ramdisk_key) or ()]

    @ramdisk.silence_tolerated
    def run_in_band(self, task: Task, step: Mapping[str, JSON], procedure: Procedure = DEPLOYMENT) -> str | None:
        """Let the agent run one of its steps: start it, or check its progress. Safe to repeat.

        :param step: as in ``node.deploy_step``
        :returns: None when it is done, else ``states.DEPLOYWAIT``
        :raises AgentChanged: the hardware managers of the agent have other versions than when the steps were planned
        :raises IronicRulesError: it failed, or the agent no longer knows it
        """
        client = client_of(self.conf, task)
        if client is None:
            return states.DEPLOYWAIT
        internal = task.node.driver_internal_info
        commands = client.commands()
        if internal.pop(AGENT_REBOOTS, False):
            internal[AGENT_LAST_COMMAND] = _last(commands)
            return None
        last = commands[-1] if commands else None
        # The command is identified by its position, so that it is found even if a conductor failed after starting it
        # and before storing that.
        if last is None or last.get("id") == internal.get(AGENT_LAST_COMMAND):
            if internal.get(AGENT_COMMAND_STARTED):
                raise IronicRulesError("The agent no longer knows the command; the ramdisk must have been restarted.")
            client.start(f"{procedure.name}.execute_{procedure.step_field}", {
                "step": dict(step), f"{procedure.name}_version": internal.get(AGENT_MANAGERS), **_machine(task)})
            internal[AGENT_COMMAND_STARTED] = True
            return states.DEPLOYWAIT
        if last.get("command_status") == RUNNING:
            internal[AGENT_COMMAND_STARTED] = True
            return states.DEPLOYWAIT
        if last.get("command_status") in _CHANGED:
            raise AgentChanged(reason=failure(last))
        if last.get("command_status") != SUCCEEDED:
            raise IronicRulesError(f"The agent reports: {failure(last)}")
        internal[AGENT_LAST_COMMAND] = last.get("id")
        internal.pop(AGENT_COMMAND_STARTED, None)
        if self._reboots_after(task, step, procedure):
            ramdisk.boot(self, task)
            internal[AGENT_REBOOTS] = True
            return states.DEPLOYWAIT
        return None

    def _reboots_after(self, task: Task, step: Mapping[str, JSON], procedure: Procedure) -> bool:
        """Return whether the agent has requested a reboot after the step."""
        offered = task.node.driver_internal_info.get(procedure.ramdisk_key) or ()
        return any(entry.get("reboots") and entry["interface"] == step["interface"]
                   and entry["offers"]["step"] == step["step"] for entry in offered)


def forget(task: Task) -> None:
    """Remove the stored data of the node's agent."""
    forget_steps(task)
    ramdisk.forget_address(task)


def forget_steps(task: Task) -> None:
    """Remove the stored steps and commands of the node's agent."""
    own = (AGENT_MANAGERS, AGENT_LAST_COMMAND, AGENT_COMMAND_STARTED, AGENT_REBOOTS, AGENT_SILENT_SINCE)
    for key in (*(procedure.ramdisk_key for procedure in ALL), *AGENT_ERASURE, *own):
        task.node.driver_internal_info.pop(key, None)


def client_of(conf: cfg.ConfigOpts, task: Task) -> AgentClient | None:
    """Return a client of the node's agent; None unless its heartbeat is processed now, because it has the token."""
    internal = task.node.driver_internal_info
    token, url = task.context.agent_token, internal.get(AGENT_URL)
    if not token or not url:
        return None
    return AgentClient(url, token, destinations.denied_networks(conf), internal.get(AGENT_VERIFY_CA))


def _machine(task: Task) -> JSONObject:
    """Return the node and its ports as they are sent to agents: without secrets."""
    node = task.node.read()
    fields = ("uuid", "name", "driver", "properties", "instance_info", "driver_internal_info", "extra", "raid_config",
              "target_raid_config", "resource_class", "traits", "instance_uuid", "provision_state")
    ports = [port.read() for port in task.ports]
    shown = secrets.mask({name: node[name] for name in fields})
    if "image_url" in node["instance_info"]:
        shown["instance_info"]["image_url"] = node["instance_info"]["image_url"]  # to fetch the image from
    return {"node": shown,
            "ports": [{name: port.get(name) for name in ("uuid", "address", "pxe_enabled", "extra", "name")}
                      for port in ports]}


def _last(commands: Sequence[Mapping[str, JSON]]) -> Any:
    return commands[-1].get("id") if commands else None


def _offered(answer: JSON, procedure: Procedure) -> list[tuple[StepInfo, bool]]:
    """Return the steps of the agent's response, each with whether a reboot follows it. The response is untrusted data.

    :raises IronicRulesError: they are invalid
    """
    by_manager = answer.get(procedure.steps_key) if isinstance(answer, dict) else None
    if not isinstance(by_manager, dict) or not all(isinstance(steps, list) for steps in by_manager.values()):
        raise IronicRulesError(f"The agent's list of {procedure.name} steps is invalid.")
    steps = [step for steps in by_manager.values() for step in steps]
    if len(steps) > _MAX_STEPS:
        raise IronicRulesError(f"The agent offers more than {_MAX_STEPS} {procedure.name} steps.")
    return [(_info(step, procedure), step.get("reboot_requested") is True) for step in steps]


def _info(step: object, procedure: Procedure) -> StepInfo:
    subject = f"A {procedure.name} step of the agent"
    if not isinstance(step, dict):
        raise IronicRulesError(f"{subject} is not an object.")
    name, kind, priority = step.get("step"), step.get("interface"), step.get("priority")
    args = step.get("argsinfo") or {}
    is_number = isinstance(priority, int) and not isinstance(priority, bool) and 0 <= priority <= MAX_PRIORITY
    if not isinstance(name, str) or not 0 < len(name) <= 255 or kind not in STEP_INTERFACES or not is_number:
        raise IronicRulesError(f"{subject} has an invalid name, interface or priority.")
    if not isinstance(args, dict) or not all(isinstance(info, dict) for info in args.values()):
        raise IronicRulesError(f"{subject} has invalid arguments.")
    return StepInfo(kind, name, int(priority or 0), {
        arg: {"description": str(info.get("description", "")), "required": bool(info.get("required", False))}
        for arg, info in args.items()}, abortable=step.get("abortable") is True)
