"""``custom-agent`` deploy: a ramdisk with ironic-python-agent, whose own deploy steps deploy the instance.

Like Ironic's interface of that name, it writes no image; that requires an agent with a suitable hardware manager.
Agents are called only after their heartbeats, whose token is not stored: a call without a token waits for the next
heartbeat.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oslo_log import log

from ironic_rules.exceptions import IronicRulesError
from ironic_rules.hardware.agent import ramdisk
from ironic_rules.hardware.agent.client import RUNNING, SUCCEEDED, AgentClient, failure
from ironic_rules.hardware.base import DeployInterface
from ironic_rules.models import secrets, states
from ironic_rules.models.steps import MAX_PRIORITY, STEP_INTERFACES
from ironic_rules.models.task import Task
from ironic_rules.steps.declaration import StepInfo, deploy_step

LOG = log.getLogger(__name__)

#: Keys of ``driver_internal_info``: the steps that the agent offers; its versions; the last of its commands that has
#: been processed; whether the command of the current step was started.
STEPS = "agent_deploy_steps"
VERSIONS = "agent_hardware_managers"
LAST = "agent_last_command"
STARTED = "agent_command_started"
_EXECUTE = "deploy.execute_deploy_step"
_MAX_STEPS = 500


class CustomAgentDeploy(DeployInterface):
    """Boots the ramdisk, runs its deploy steps, and boots the instance from disk."""

    has_in_band_steps = True

    def validate(self, task: Task) -> None:
        """Check that the ramdisk can be booted.

        :raises InvalidParameterValue: the boot interface cannot, and ``[inspector]require_managed_boot`` is true
        """
        self._parameters(task)

    @deploy_step(priority=100, core=True, rerunnable=True)
    def deploy(self, task: Task) -> str:
        """Boot the ramdisk, and request its deploy steps when it runs."""
        parameters = self._parameters(task)
        power = self.interface_of(task.node, "power")
        forget(task)
        # A ramdisk that is already running must not prevent the new one from getting a token.
        task.node.agent_token_hash = None
        if parameters is None:
            self.interface_of(task.node, "management").set_boot_device(task, "pxe")
        else:
            self.interface_of(task.node, "boot").prepare_ramdisk(task, parameters)
        power.set_power_state(task, states.REBOOT)
        return states.DEPLOYWAIT

    @deploy_step(priority=40, core=True, rerunnable=True)
    def tear_down_agent(self, task: Task) -> None:
        """Stop the ramdisk."""
        self.interface_of(task.node, "power").set_power_state(task, states.POWER_OFF)
        self.interface_of(task.node, "boot").clean_up_ramdisk(task)
        forget(task)

    @deploy_step(priority=30, core=True, rerunnable=True)
    def switch_to_tenant_network(self, task: Task) -> None:
        """Connect the instance's networks: no network interface requires it."""

    @deploy_step(priority=20, core=True, rerunnable=True)
    def boot_instance(self, task: Task) -> None:
        """Boot the instance from disk, persistently."""
        self.interface_of(task.node, "management").set_boot_device(task, "disk", persistent=True)
        self.interface_of(task.node, "power").set_power_state(task, states.POWER_ON)

    def tear_down(self, task: Task) -> None:
        self.tear_down_agent(task)

    def clean_up(self, task: Task) -> None:
        self.interface_of(task.node, "boot").clean_up_ramdisk(task)

    def continue_step(self, task: Task, step: str, args: Mapping[str, Any]) -> str | None:
        """Request the agent's steps, which completes ``deploy``."""
        client = _client(task)
        if client is None:
            return states.DEPLOYWAIT
        answer = client.run("deploy.get_deploy_steps", _machine(task))
        internal = task.node.driver_internal_info
        internal[STEPS] = [{"interface": info.interface, "offers": info.to_wire()} for info in _offered(answer)]
        internal[VERSIONS] = answer.get("hardware_manager_version")
        commands = client.commands()
        internal[LAST] = commands[-1].get("id") if commands else None
        return None

    def in_band_steps(self, task: Task) -> list[StepInfo]:
        """Return the steps that the node's agent offers; none before it has reported them."""
        return [StepInfo.from_wire(step["interface"], step["offers"])
                for step in task.node.driver_internal_info.get(STEPS) or ()]

    def run_in_band(self, task: Task, step: Mapping[str, Any]) -> str | None:
        """Let the agent run one of its steps: start it, or check its progress. Safe to repeat.

        :param step: as in ``node.deploy_step``
        :returns: None when it is done, else ``states.DEPLOYWAIT``
        :raises IronicRulesError: it failed, or the agent no longer knows it
        """
        client = _client(task)
        if client is None:
            return states.DEPLOYWAIT
        internal = task.node.driver_internal_info
        commands = client.commands()
        last = commands[-1] if commands else None
        # The command is identified by its position, so that it is found even if a conductor failed after starting it
        # and before storing that.
        if last is None or last.get("id") == internal.get(LAST):
            if internal.get(STARTED):
                raise IronicRulesError("The agent no longer knows the command; the ramdisk must have been restarted.")
            client.start(_EXECUTE, {"step": dict(step), "deploy_version": internal.get(VERSIONS), **_machine(task)})
            internal[STARTED] = True
            return states.DEPLOYWAIT
        if last.get("command_status") == RUNNING:
            internal[STARTED] = True
            return states.DEPLOYWAIT
        if last.get("command_status") != SUCCEEDED:
            raise IronicRulesError(f"The agent reports: {failure(last)}")
        internal[LAST] = last.get("id")
        internal.pop(STARTED, None)
        return None

    def _parameters(self, task: Task) -> dict[str, str] | None:
        parameters = ramdisk.managed_parameters(self, task)
        if parameters is not None:
            # With it, the agent would begin with an inspection.
            parameters.pop("ipa-inspection-callback-url", None)
        return parameters


def forget(task: Task) -> None:
    """Remove the stored data of the node's agent."""
    for key in (STEPS, VERSIONS, LAST, STARTED, "agent_url", "agent_verify_ca"):
        task.node.driver_internal_info.pop(key, None)


def _client(task: Task) -> AgentClient | None:
    internal = task.node.driver_internal_info
    token, url = task.context.agent_token, internal.get("agent_url")
    return AgentClient(url, token, internal.get("agent_verify_ca")) if token and url else None


def _machine(task: Task) -> dict[str, Any]:
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


def _offered(answer: Any) -> list[StepInfo]:
    """Return the steps of the agent's response, which is untrusted data.

    :raises IronicRulesError: they are invalid
    """
    by_manager = answer.get("deploy_steps") if isinstance(answer, dict) else None
    if not isinstance(by_manager, dict) or not all(isinstance(steps, list) for steps in by_manager.values()):
        raise IronicRulesError("The agent's list of deploy steps is invalid.")
    steps = [step for steps in by_manager.values() for step in steps]
    if len(steps) > _MAX_STEPS:
        raise IronicRulesError(f"The agent offers more than {_MAX_STEPS} deploy steps.")
    return [_info(step) for step in steps]


def _info(step: Any) -> StepInfo:
    if not isinstance(step, dict):
        raise IronicRulesError("A deploy step of the agent is not an object.")
    name, kind, priority = step.get("step"), step.get("interface"), step.get("priority")
    args = step.get("argsinfo") or {}
    is_number = isinstance(priority, int) and not isinstance(priority, bool) and 0 <= priority <= MAX_PRIORITY
    if not isinstance(name, str) or not 0 < len(name) <= 255 or kind not in STEP_INTERFACES or not is_number:
        raise IronicRulesError("A deploy step of the agent has an invalid name, interface or priority.")
    if not isinstance(args, dict) or not all(isinstance(info, dict) for info in args.values()):
        raise IronicRulesError("A deploy step of the agent has invalid arguments.")
    if step.get("reboot_requested") and priority:
        LOG.warning("The agent's deploy step %r requests a reboot after it, which is not supported", name)
    return StepInfo(kind, name, int(priority or 0), {
        arg: {"description": str(info.get("description", "")), "required": bool(info.get("required", False))}
        for arg, info in args.items()})
