"""Hardware whose interfaces fail where ``driver_info`` says so.

``{"deploy": "refuse"}`` raises an error of the service, ``{"deploy": "crash"}`` an unexpected one. Conductors of tests
load this as a plug-in: it imports no test library.
"""

from __future__ import annotations

from typing import Any

from ironic_rules.exceptions import Invalid
from ironic_rules.hardware.agent.inspect import AgentInspect
from ironic_rules.hardware.fake import FakeDeploy, FakeHardware, FakePower, FakeRescue


def fail_if_told(task: Any, what: str) -> None:
    """Fail according to the node's ``driver_info``."""
    how = task.node.driver_info.get(what)
    if how == "refuse":
        raise Invalid(f"the machine refuses to {what}")
    if how == "crash":
        raise ZeroDivisionError(f"{what} fails unexpectedly like this")


class FaultyPower(FakePower):
    def validate(self, task):
        fail_if_told(task, "validate")

    def get_power_state(self, task):
        fail_if_told(task, "get_power_state")
        return super().get_power_state(task)

    def set_power_state(self, task, target, timeout_s=None):
        fail_if_told(task, "set_power_state")
        super().set_power_state(task, target, timeout_s)


class FaultyDeploy(FakeDeploy):
    def deploy(self, task):
        fail_if_told(task, "deploy")
        super().deploy(task)

    def tear_down(self, task):
        fail_if_told(task, "tear_down")
        super().tear_down(task)


class FaultyRescue(FakeRescue):
    def rescue(self, task):
        fail_if_told(task, "rescue")

    def unrescue(self, task):
        fail_if_told(task, "unrescue")


class FaultyInspect(AgentInspect):
    def inspect_hardware(self, task):
        fail_if_told(task, "inspect")
        return super().inspect_hardware(task)

    def continue_inspection(self, task, inventory, plugin_data=None):
        fail_if_told(task, "continue_inspection")
        return super().continue_inspection(task, inventory, plugin_data)

    def abort(self, task):
        fail_if_told(task, "abort")
        super().abort(task)


FAULTY = {"power": FaultyPower, "deploy": FaultyDeploy, "rescue": FaultyRescue, "inspect": FaultyInspect}


class FaultyHardware(FakeHardware):
    supported_power_interfaces = ("faulty",)
    supported_deploy_interfaces = ("faulty",)
    supported_rescue_interfaces = ("faulty",)
    supported_inspect_interfaces = ("faulty",)
