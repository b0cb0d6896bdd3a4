"""Small classes with the interfaces of the real ones."""

from __future__ import annotations

from typing import Any

from ironic_rules.context import RequestContext


class FakeConductorAPI:
    """Replaces :class:`ironic_rules.rpc.api.ConductorAPI`: records calls, does nothing.

    ``calls`` is a list of ``(method, node_id, arguments)``. ``fail_with`` makes the next call of a method raise.
    """

    def __init__(self) -> None:
        self.calls: list[tuple[str, str | int, dict[str, Any]]] = []
        self._failures: dict[str, Exception] = {}
        self.validation: dict[str, Any] = {}
        #: operation -> what ``call_hardware`` returns
        self.results: dict[str, Any] = {"get_supported_indicators": {}}

    def fail_with(self, method: str, error: Exception) -> None:
        self._failures[method] = error

    def continue_inspection(self, context: RequestContext, node_id: str | int, inventory: dict[str, Any],
                            plugin_data: dict[str, Any] | None = None, refusal: str | None = None, *,
                            group: str = "") -> None:
        more = {} if refusal is None else {"refusal": refusal}
        self._call("continue_inspection", node_id, inventory=inventory, plugin_data=plugin_data, group=group, **more)

    def change_provision_state(self, context: RequestContext, node_id: str | int, target: str, *, group: str = "",
                               **args: Any) -> None:
        self._call("change_provision_state", node_id, target=target, group=group, **args)

    def change_power_state(self, context: RequestContext, node_id: str | int, target: str,
                           timeout: int | None = None, *, group: str = "") -> None:
        self._call("change_power_state", node_id, target=target, timeout=timeout, group=group)

    def validate_interfaces(self, context: RequestContext, node_id: str | int, *, group: str = "") -> dict[str, Any]:
        self._call("validate_interfaces", node_id, group=group)
        return self.validation

    def call_hardware(self, context: RequestContext, node_id: str | int, operation: str, *, group: str = "",
                      **args: Any) -> Any:
        self._call(f"call_hardware {operation}", node_id, group=group, args=args)
        return self.results.get(operation)

    def heartbeat(self, context: RequestContext, node_id: str | int, callback_url: str,
                  agent_version: str | None = None, *, group: str = "", **details: Any) -> None:
        self._call("heartbeat", node_id, callback_url=callback_url, agent_version=agent_version, group=group, **details)

    def ping_broker(self) -> None:
        if "ping_broker" in self._failures:
            raise self._failures["ping_broker"]

    def _call(self, method: str, node_id: str | int, **arguments: Any) -> None:
        self.calls.append((method, node_id, arguments))
        if method in self._failures:
            raise self._failures.pop(method)
