"""The actions of the service: one module for each kind of data that they act on."""

from ironic_rules.rules.actions import api_call, capabilities, messages, node, plugin_data, ports, traits
from ironic_rules.rules.actions.registry import ACTIONS

__all__ = ["ACTIONS", "api_call", "capabilities", "messages", "node", "plugin_data", "ports", "traits"]
