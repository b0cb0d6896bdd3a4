"""The RPC endpoint: each public method is one call that :class:`ironic_rules.rpc.api.ConductorAPI` can make."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import oslo_messaging as messaging
from oslo_log import log as logging

from ironic_rules import tracing
from ironic_rules.conductor import acceptance, hardware_calls, heartbeat, provisioning
from ironic_rules.conductor.conductor import Conductor
from ironic_rules.context import RequestContext
from ironic_rules.db.errors import DATABASE_AWAY
from ironic_rules.exceptions import (
    ConductorCannotServe,
    IronicRulesError,
    RequestExpired,
    RequestRepeated,
    Unavailable,
    outcome_unknown,
)
from ironic_rules.models.documents import JSONObject
from ironic_rules.rpc.transport import VERSION

LOG = logging.getLogger(__name__)
F = TypeVar("F", bound=Callable[..., Any])


def _answer(method: F) -> F:
    """Return the service's errors to the caller, and an unavailable database as an error that may be retried.

    A repetition of a request gets the reply of the first one.
    """

    @messaging.expected_exceptions(IronicRulesError)
    @functools.wraps(method)
    def call(*arguments: Any, **named: Any) -> Any:
        # The first argument is the endpoint. Log lines have the request id, and so has the work that is begun.
        endpoint, context = arguments[:2]
        context.update_store()
        # An API of the previous version sets no deadline, and does not know the newer errors.
        is_known = context.expires_at is not None
        if is_known and endpoint.has_lost_database:
            raise ConductorCannotServe
        try:
            with tracing.span(method.__name__, context.trace, "SERVER"):
                if tracing.is_on():
                    # The context of the work which is begun.
                    context.trace = tracing.carrier()
                return method(*arguments, **named)
        except RequestRepeated:
            LOG.info("%s was accepted before; its repetition changes nothing", method.__name__)
            return None
        except RequestExpired as exc:
            LOG.warning("%s: %s", method.__name__, exc)
            raise
        except DATABASE_AWAY as exc:
            LOG.error("The database cannot serve: %s", exc)
            raise (outcome_unknown() if is_known else Unavailable()) from exc
        except BaseException as exc:  # of an interface: oslo.messaging would end its thread, and never answer
            if isinstance(exc, Exception):
                raise
            LOG.exception("Unexpected failure of a call")
            raise IronicRulesError(f"An unexpected error occurred: {type(exc).__name__}.") from exc

    return cast(F, call)


class ConductorEndpoint:
    """The RPC methods of a conductor."""

    target = messaging.Target(version=VERSION)

    def __init__(self, conductor: Conductor) -> None:
        self._conductor = conductor

    @property
    def has_lost_database(self) -> bool:
        return self._conductor.contact.is_lost

    @_answer
    def continue_inspection(self, context: RequestContext, node_id: str | int, inventory: JSONObject,
                            plugin_data: JSONObject | None = None, refusal: str | None = None) -> bool | None:
        """Continue in-band inspection; with ``refusal`` it fails, for that reason.

        :returns: whether the ramdisk has the token of the context, see ``acceptance.accept_report``
        :raises NodeLocked: the node is locked by another conductor
        :raises NotFound: the node is in an invalid state
        """
        return acceptance.accept_report(self._conductor, context, node_id, inventory, plugin_data or {}, refusal)

    @_answer
    def change_provision_state(self, context: RequestContext, node_id: str | int, target: str,
                               args: JSONObject | None = None) -> None:
        """Start what a verb of ``states/provision`` requests."""
        provisioning.change_provision_state(self._conductor, context, node_id, target, args or {})

    @_answer
    def change_power_state(self, context: RequestContext, node_id: str | int, target: str,
                           timeout: int | None = None) -> None:
        """Start changing the power state; ``timeout`` in seconds."""
        provisioning.change_power_state(self._conductor, context, node_id, target, timeout)

    @_answer
    def validate_interfaces(self, context: RequestContext, node_id: str | int) -> dict[str, JSONObject]:
        """Return the result of the validation of each interface of the node."""
        return provisioning.validate_interfaces(self._conductor, context, node_id)

    @_answer
    def call_hardware(self, context: RequestContext, node_id: str | int, operation: str,
                      args: JSONObject | None = None) -> Any:
        """Carry out an operation of ``hardware_calls`` on the node; since version 1.2.

        :returns: its result; None for what has only begun
        """
        return hardware_calls.call(self._conductor, context, node_id, operation, args or {})

    @_answer
    def heartbeat(self, context: RequestContext, node_id: str | int, callback_url: str,
                  agent_version: str | None = None, details: JSONObject | None = None) -> None:
        """Record a heartbeat of a ramdisk."""
        heartbeat.heartbeat(self._conductor, context, node_id, callback_url, agent_version, details or {})
