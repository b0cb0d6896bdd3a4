"""The errors that the service raises, and the HTTP status that each one maps to.

::

    IronicRulesError (500)
    ├── Invalid (400)
    │   ├── InvalidRule, InvalidParameterValue, FieldNotWritable, SecretMasked, InvalidInventory
    │   └── UnsupportedDriverExtension, DriverNotFound, InterfaceNotFound
    ├── Unauthorized, LoginRefused (401), Forbidden (403)
    ├── NotFound (404)
    │   ├── NodeNotFound, RunbookNotFound, BIOSSettingNotFound, MarkerNotFound
    │   └── LookupFailed ── MachineUnknown
    ├── MethodNotAllowed (405), NotAcceptable (406), RequestTooSlow (408)
    ├── Conflict (409)
    │   ├── NodeLocked, LockLost, Changed
    │   └── DuplicateNodeName, MACAlreadyExists, DuplicatePortName
    ├── PreconditionFailed (412), RequestTooLarge (413), MediaTypeUnsupported (415), ForeignHost (421)
    ├── TooManyAttempts (429)
    ├── Unavailable (503)
    │   └── ConductorCannotServe, NoFreeWorker, RPCTimeout, RequestExpired
    ├── RuleFailed, HookFailed                              (end an inspection; never reach HTTP)
    ├── RequestRepeated                                     (it was accepted before; never reaches HTTP)
    ├── RuleSpent ── LegacyRuleGone                         (repeats an inspection; never reaches HTTP)
    ├── AgentChanged (500)                                  (becomes last_error, or cleaning begins again)
    ├── AgentSilent (500)                                   (the step waits, or it becomes last_error)
    ├── BMCError (502) ── HardwareFailed                    (mostly becomes last_error)
    └── ConfigurationError ── CannotListen                  (the process does not start)

A class is what code distinguishes: it catches the class, or the class has an HTTP status of its own. All other errors
have a text only, in the table of ``Wording`` at the end. Keyword arguments are the facts, which are formatted into
the text: ``raise NodeLocked(node=uuid, host=host)``, ``raise port_not_found(port=uuid)``.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem of an input: ``where`` is a JSON pointer, ``text`` describes the problem."""

    where: str
    text: str

    def __str__(self) -> str:
        return f"{self.where}: {self.text}" if self.where else self.text


#: End of a text that has its id.
HAS_ID = re.compile(r" \(IR-[0-9]{4}\)\Z")
#: Ids of classes whose errors have texts of their own, of which a page says nothing: those of an HTTP status, but that
#: of BMCs, and of invalid values.
_GENERAL = re.compile(r"IR-(?:0(?!502)[0-9]{3}|1002)")


class IronicRulesError(Exception):
    """Base of all errors.

    ``code`` is the HTTP status, ``facts`` are the values in the message. ``message_id`` identifies the message in
    replies and in the documentation. It never changes, and no other message ever gets it.
    """

    message_id = "IR-0500"
    code = 500
    message = "An unknown error occurred."

    def __init__(self, text: str | None = None, **facts: Any) -> None:
        self.facts = facts
        super().__init__(text if text is not None else self.message.format(**facts))

    @property
    def kwargs(self) -> dict[str, str]:
        """The arguments that oslo.messaging sends with the text: the id, unless it is that of the class."""
        return {} if self.message_id == type(self).message_id else {"message_id": self.message_id}

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuild, (type(self), str(self), self.facts, self.message_id)


def identified(error: Exception, text: str | None = None) -> str:
    """Return the text of an error with its id behind it, as ``last_error``, histories and operations have it.

    A text that ends with the id of the error that it quotes gets no other one: that page says more.

    :param text: None: that of the error
    """
    text = str(error) if text is None else text
    message_id = error.message_id if isinstance(error, IronicRulesError) else IronicRulesError.message_id
    return text if _GENERAL.match(message_id) or HAS_ID.search(text) else f"{text} ({message_id})"


def rebuild(cls: type[IronicRulesError], text: str, facts: dict[str, Any],
            message_id: str | None = None) -> IronicRulesError:
    """Return an error of ``cls`` with an already formatted text, after it has crossed a process boundary.

    :param message_id: None: that of the class
    """
    error = cls.__new__(cls)
    if isinstance(error, Invalid):
        error.problems = ()
    IronicRulesError.__init__(error, text, **facts)
    if message_id is not None:
        error.message_id = message_id
    return error


class Invalid(IronicRulesError):
    """Malformed input. ``problems`` lists every place."""

    message_id = "IR-0400"
    code = 400
    message = "Invalid input."

    def __init__(self, text: str | None = None, *, problems: Sequence[Problem] = (), **facts: Any) -> None:
        self.problems = tuple(problems)
        if text is None and self.problems:
            text = "; ".join(str(problem) for problem in self.problems)
        super().__init__(text, **facts)


class InvalidRule(Invalid):
    message_id = "IR-1001"
    message = "Invalid inspection rule."


class InvalidParameterValue(Invalid):
    message_id = "IR-1002"
    message = "Invalid value."


class FieldNotWritable(Invalid):
    message_id = "IR-1003"
    message = "{path}: this field may not be written."


class SecretMasked(Invalid):
    message_id = "IR-1004"
    message = "{path}: ****** cannot be stored in the place of a secret; it stands for one that is not shown."


class InvalidInventory(Invalid):
    message_id = "IR-1005"
    message = "The inventory of node {node} is not usable: {where}."


class UnsupportedDriverExtension(Invalid):
    message_id = "IR-1006"
    message = "Driver {driver} does not support {extension}."


class DriverNotFound(Invalid):
    message_id = "IR-1007"
    message = "No conductor supports the hardware type {driver}."


class InterfaceNotFound(Invalid):
    message_id = "IR-1008"
    message = "{driver} does not offer the {kind} interface '{name}'. Valid: {valid}."


class Unauthorized(IronicRulesError):
    message_id = "IR-0401"
    code = 401
    message = "The request needs authentication."


class LoginRefused(IronicRulesError):
    message_id = "IR-1009"
    code = 401
    message = "The identity service does not accept this user, password and scope."


class Forbidden(IronicRulesError):
    message_id = "IR-0403"
    code = 403
    message = "Access was denied to the following resource: {policy}"


class NotFound(IronicRulesError):
    message_id = "IR-0404"
    code = 404
    message = "Not Found"


class LookupFailed(NotFound):
    """The only error of the ramdisk endpoints if a request does not match exactly one node. Discloses no reason."""

    message_id = "IR-1010"
    message = "The requested node could not be found."
    #: for the log: neither a fact nor in the text, so that no reply can have it
    reason = ""
    #: for journal and metrics, one of ``models.rejected_reports.REASONS``: nothing that depends on a request
    kind = "other"

    @classmethod
    def because(cls, reason: str, kind: str | None = None) -> LookupFailed:
        """Return the error with a reason that is only logged, and its kind, for journal and metrics."""
        error = cls()
        error.reason = reason
        if kind is not None:
            error.kind = kind
        return error


class MachineUnknown(LookupFailed):
    """Nothing that a ramdisk sent identifies a node, not even one in another state. Replies are as for any failure."""

    kind = "unknown"


class NodeNotFound(NotFound):
    message_id = "IR-1012"
    message = "Node {node} could not be found."


class RunbookNotFound(NotFound):
    message_id = "IR-1013"
    message = "Runbook {runbook} could not be found."


class BIOSSettingNotFound(NotFound):
    message_id = "IR-1014"
    message = "Node {node} doesn't have a BIOS setting '{name}'"


class MarkerNotFound(NotFound):
    message_id = "IR-1015"
    message = "Marker {marker} could not be found in this collection."


class MethodNotAllowed(IronicRulesError):
    message_id = "IR-0405"
    code = 405
    message = "Method Not Allowed"


class NotAcceptable(IronicRulesError):
    message_id = "IR-0406"
    code = 406
    message = "Request not acceptable."


class Conflict(IronicRulesError):
    message_id = "IR-0409"
    code = 409
    message = "Conflict."


class NodeLocked(Conflict):
    message_id = "IR-1016"
    message = "Node {node} is locked by host {host}, please retry after the current operation is completed."


class LockLost(Conflict):
    message_id = "IR-1017"
    message = "The lock on node {node} is no longer held by {host}."


class Changed(Conflict):
    """Another request changed the object first."""

    message_id = "IR-1018"

class DuplicateNodeName(Conflict):
    message_id = "IR-1019"
    message = "A node with name {name} already exists."


class MACAlreadyExists(Conflict):
    message_id = "IR-1020"
    message = "A port with MAC address {mac} already exists."


class DuplicatePortName(Conflict):
    message_id = "IR-1021"
    message = "A port with name {name} already exists."


class PreconditionFailed(IronicRulesError):
    """The caller requested a change of a state that is not, or is no longer, the current one."""

    message_id = "IR-0412"
    code = 412
    message = "{header} does not hold for the current state, which is unchanged; read it again before you change it."


class RequestTooSlow(IronicRulesError):
    message_id = "IR-0408"
    code = 408
    message = "The service has waited too long for {what}."


class RequestTooLarge(IronicRulesError):
    message_id = "IR-0413"
    code = 413
    message = "The request body is larger than {limit} bytes."


class MediaTypeUnsupported(IronicRulesError):
    message_id = "IR-0415"
    code = 415
    message = "The body has {given}: send JSON with Content-Type: application/json."


class ForeignHost(IronicRulesError):
    """The name in the request's header ``Host`` is not one of this service."""

    message_id = "IR-0421"
    code = 421
    message = ("The header Host of the request contains {host}, which is not a name of this service. If clients use "
               "this name, add it to [api]allowed_hosts.")


class TooManyAttempts(IronicRulesError):
    message_id = "IR-0429"
    code = 429
    message = "Too many wrong passwords came from this address; try again in a second."


class Unavailable(IronicRulesError):
    message_id = "IR-0503"
    code = 503
    #: Seconds after which a client may repeat its request: the header ``Retry-After``.
    retry_after_s = 10
    message = "The service is temporarily unable to serve this request; it is safe to repeat it."


class ConductorCannotServe(Unavailable):
    """The conductor has lost its database, and has refused a call before it did anything."""

    message_id = "IR-1022"
    message = "The conductor cannot reach its database. Nothing was changed; it is safe to repeat the request."


class NoFreeWorker(Unavailable):
    message_id = "IR-1023"
    message = "The conductor has no free worker for node {node} right now; please retry."


class RPCTimeout(Unavailable):
    message_id = "IR-1024"
    message = ("No conductor answered in time. The states of the node show whether the request was accepted; if it was "
               "not, it has expired and will not be carried out. Requests with the header Idempotency-Key can be "
               "repeated without being carried out twice.")


class RequestExpired(Unavailable):
    """A request reached the node's lock when its caller no longer waited. Nothing is done."""

    message_id = "IR-1025"
    message = "The request has expired {late_s:.1f} seconds ago; nothing is done."


class RequestRepeated(IronicRulesError):
    """The request was accepted before. Nothing is done."""

    message_id = "IR-1026"
    message = "The request was accepted before."


class RuleFailed(IronicRulesError):
    """A rule failed the inspection.

    ``where`` is the JSON pointer of the condition or action in the rule. ``called`` is the name of the rule, behind a
    space and in parentheses, as :func:`ironic_rules.text.in_parentheses` returns it. ``template`` is the message of a
    rule before values were filled in, if the rule has one. The error of a legacy rule can have ``maintenance``, the
    reason for which the node is put in maintenance.
    """

    message_id = "IR-1027"
    message = "Inspection rule {rule}{called} failed at {where}: {reason}"


class RuleSpent(IronicRulesError):
    """A rule has been applied to as many other nodes as it may since the inspection began."""

    message_id = "IR-1028"
    message = "Inspection rule {rule} has been applied to max_nodes other nodes ({max_nodes})."


class LegacyRuleGone(RuleSpent):
    """A legacy rule that an inspection has applied was deleted before the inspection was saved."""

    message_id = "IR-1029"
    message = "Legacy rule {rule} was deleted during the inspection."


class HookFailed(IronicRulesError):
    message_id = "IR-1030"
    message = "Inspection hook {hook} failed: {reason}"


class AgentChanged(IronicRulesError):
    message_id = "IR-1031"
    message = "The agent's hardware managers are not those whose steps were planned: {reason}"


class AgentSilent(IronicRulesError):
    """An agent has not answered a request; whether it has received it is unknown."""

    message_id = "IR-1032"
    message = "The agent does not respond ({reason})."


class BMCError(IronicRulesError):
    """A BMC cannot be reached, refuses a request, or does not carry it out. The text never contains credentials."""

    message_id = "IR-0502"
    code = 502
    message = "The BMC of node {node}: {reason}"


class HardwareFailed(BMCError):
    """A BMC reports that what it was requested to do has failed: waiting any longer is useless."""

    message_id = "IR-1033"

class ConfigurationError(IronicRulesError):
    """The configuration is invalid; the process does not start."""

    message_id = "IR-1034"
    message = "Invalid configuration."


class CannotListen(ConfigurationError):
    """The port is in use, or the address is not that of an interface yet."""

    message_id = "IR-1035"

E = TypeVar("E", bound=IronicRulesError, covariant=True)


@dataclass(frozen=True, slots=True)
class Wording(Generic[E]):
    """The text of an error that no code distinguishes from others of its class. Called with the facts, it makes one."""

    message_id: str
    error: type[E]
    text: str

    def __call__(self, **facts: object) -> E:
        error = self.error(self.text.format(**facts), **facts)
        error.message_id = self.message_id
        return error


dry_run_too_long = Wording("IR-2001", Invalid,
    "The dry run took longer than {seconds:g} seconds ([inspection_rules]dry_run_timeout).")
forbidden_to_roles = Wording("IR-2002", Forbidden, (
    "Access was denied to the following resource: {policy}. Roles of the user {user}: {roles}."))
invalid_state = Wording("IR-2003", Invalid,
    'The requested action "{action}" can not be performed on node "{node}" while it is in state "{state}".')
portgroup_not_empty = Wording("IR-2004", Invalid, "Portgroup {portgroup} still has ports and cannot be deleted.")
chassis_not_empty = Wording("IR-2005", Invalid, "Chassis {chassis} still has nodes and cannot be deleted.")

foreign_site = Wording("IR-2006", Forbidden, (
    "A web page of another site ({place}) must not use this service. If it is the own page of this service behind a "
    "proxy, set [api]public_endpoint to the URL that browsers use."))
node_protected = Wording("IR-2007", Forbidden, "Node {node} is protected and does not allow {action}.")

port_not_found = Wording("IR-2008", NotFound, "Port {port} could not be found.")
portgroup_not_found = Wording("IR-2009", NotFound, "Portgroup {portgroup} could not be found.")
chassis_not_found = Wording("IR-2010", NotFound, "Chassis {chassis} could not be found.")
allocation_not_found = Wording("IR-2011", NotFound, "Allocation {allocation} could not be found.")
volume_connector_not_found = Wording("IR-2012", NotFound, "Volume connector {connector} could not be found.")
volume_target_not_found = Wording("IR-2013", NotFound, "Volume target {target} could not be found.")
trait_not_found = Wording("IR-2014", NotFound, "Node {node} doesn't have a trait '{trait}'")
inspection_rule_not_found = Wording("IR-2015", NotFound, "Inspection rule {rule} could not be found.")
rule_revision_not_found = Wording("IR-2016", NotFound, "Revision {revision} of the inspection rules no longer exists.")
legacy_rule_not_found = Wording("IR-2017", NotFound, "Legacy rule {rule} could not be found.")
operation_not_found = Wording("IR-2018", NotFound, "Operation {operation} could not be found.")
deploy_template_not_found = Wording("IR-2019", NotFound, "Deploy template {template} could not be found.")
fact_not_found = Wording("IR-2020", NotFound, "Fact {fact} could not be found.")
flavor_not_found = Wording("IR-2021", NotFound, "Flavor {flavor} could not be found.")
extra_spec_not_found = Wording("IR-2022", NotFound, "Flavor {flavor} has no extra spec with key {key}.")
conductor_not_found = Wording("IR-2023", NotFound, "Conductor {conductor} could not be found.")
driver_name_not_found = Wording("IR-2024", NotFound,
    "Could not find the following driver(s) or hardware type(s): {driver}.")
inventory_not_found = Wording("IR-2025", NotFound, "Inspection inventory for node {node} could not be found.")
history_not_found = Wording("IR-2026", NotFound, "History entry {event} of node {node} could not be found.")
inspection_not_found = Wording("IR-2027", NotFound, "Inspection {inspection} of node {node} could not be found.")
journal_entry_not_found = Wording("IR-2028", NotFound, "Entry {entry} of the inspection journal could not be found.")
shared_mac_not_found = Wording("IR-2029", NotFound, "No other known machine has the MAC address {address}.")

node_changed = Wording("IR-2030", Conflict, "Another request changed node {node}; please retry.")
node_associated = Wording("IR-2031", Conflict, "Node {node} is associated with instance {instance}.")
node_not_removable = Wording("IR-2032", Conflict,
    'Node {node} cannot be deleted while it is in state "{state}"; put it in maintenance to force this.')
node_has_children = Wording("IR-2033", Conflict, (
    "Node {node} cannot be deleted while it is the parent_node of others, such as {child}; put it in maintenance to "
    "force this."))
node_already_exists = Wording("IR-2034", Conflict, "A node with UUID {uuid} already exists.")
instance_associated = Wording("IR-2035", Conflict,
    "Instance {instance} is already associated with a node, it cannot be associated with this other node {node}.")
machine_enrolled = Wording("IR-2036", Conflict, "The machine cannot be enrolled: its addresses are those of {nodes}.")
port_already_exists = Wording("IR-2037", Conflict, "A port with UUID {uuid} already exists.")
portgroup_already_exists = Wording("IR-2038", Conflict, "A portgroup with UUID {uuid} already exists.")
duplicate_portgroup_name = Wording("IR-2039", Conflict, "A portgroup with name {name} already exists.")
portgroup_mac_already_exists = Wording("IR-2040", Conflict, "A portgroup with MAC address {mac} already exists.")
chassis_already_exists = Wording("IR-2041", Conflict, "A chassis with UUID {uuid} already exists.")
allocation_already_exists = Wording("IR-2042", Conflict, "An allocation with UUID {uuid} already exists.")
duplicate_allocation_name = Wording("IR-2043", Conflict, "An allocation with name {name} already exists.")
webhook_not_found = Wording("IR-2076", NotFound, "Webhook {webhook} could not be found.")
dead_letter_not_found = Wording("IR-2077", NotFound, "Webhook {webhook} has no dead letter of event {event}.")
webhook_already_exists = Wording("IR-2078", Conflict, "A webhook with UUID {uuid} already exists.")
duplicate_webhook_name = Wording("IR-2079", Conflict, "A webhook with name {name} already exists.")
too_many_webhooks = Wording("IR-2080", Conflict, "There are {most} webhooks already: delete one first.")
webhooks_are_off = Wording(
    "IR-2081", Conflict, "Webhooks are switched off: [events]webhooks has to be set for all processes.")
runbook_already_exists = Wording("IR-2044", Conflict, "A runbook with UUID {uuid} already exists.")
duplicate_runbook_name = Wording("IR-2045", Conflict, "A runbook with name {name} already exists.")
volume_connector_already_exists = Wording("IR-2046", Conflict, "A volume connector with UUID {uuid} already exists.")
duplicate_volume_connector = Wording("IR-2047", Conflict,
    "A volume connector with type {type} and connector ID {connector_id} already exists.")
volume_target_already_exists = Wording("IR-2048", Conflict, "A volume target with UUID {uuid} already exists.")
duplicate_boot_index = Wording("IR-2049", Conflict,
    "A volume target with boot index '{boot_index}' for the same node already exists.")
inspection_rule_already_exists = Wording("IR-2050", Conflict, "An inspection rule with UUID {uuid} already exists.")
duplicate_inspection_rule_name = Wording("IR-2051", Conflict,
    "Inspection rule {uuid} already has the name {name}{group}.")
legacy_rule_already_exists = Wording("IR-2052", Conflict, "A legacy rule with UUID {uuid} already exists.")
deploy_template_already_exists = Wording("IR-2053", Conflict, "A deploy template with UUID {uuid} already exists.")
duplicate_deploy_template_name = Wording("IR-2054", Conflict, "A deploy template with name {name} already exists.")
duplicate_fact_name = Wording("IR-2055", Conflict, "A fact with name {name} already exists.")
fact_is_built_in = Wording("IR-2056", Conflict, "No request can change or delete the built-in fact {fact}.")
fact_in_use = Wording("IR-2057", Conflict, "Before you delete fact {fact}, change its users: {rules}.")
too_many_facts = Wording("IR-2058", Conflict, "There are {most} facts already.")
flavor_already_exists = Wording("IR-2059", Conflict, "A flavor with ID {flavor} already exists.")
duplicate_flavor_name = Wording("IR-2060", Conflict, "A flavor with name {name} already exists.")
conductor_already_registered = Wording("IR-2061", Conflict,
    "Another process serves as conductor {conductor}; every conductor needs a [DEFAULT]host of its own.")
vif_conflict = Wording("IR-2062", Conflict, "Unable to attach VIF {vif} to node {node}: {reason}.")

rule_changed = Wording("IR-2063", Changed,
    "Another request changed inspection rule {rule}; please retry.")
fact_changed = Wording("IR-2064", Changed, "Another request changed fact {fact}; please retry.")
legacy_rule_changed = Wording("IR-2065", Changed,
    "Another request changed legacy rule {rule}; please retry.")
deploy_template_changed = Wording("IR-2066", Changed,
    "Another request changed deploy template {template}; please retry.")

encoding_unsupported = Wording("IR-2067", MediaTypeUnsupported,
    "The service supports no Content-Encoding of bodies: send JSON in UTF-8.")

outcome_unknown = Wording("IR-2068", Unavailable, (
    "The service is temporarily unable to serve this request, and cannot tell whether it has been carried out: what "
    "it was to change shows that."))
no_valid_host = Wording("IR-2069", Unavailable, "No conductor is running that could serve this request.")
identity_service_unverified = Wording(
    "IR-2075", Unavailable, "The identity service did not check the token; please retry.")
too_many_calls = Wording("IR-2070", Unavailable, (
    "The conductor waits for too many BMCs, or too often for that of node {node}, to serve this request; please "
    "retry."))
too_many_config_drives = Wording("IR-2071", Unavailable,
    "The conductor is busy with the config drives of other requests. Nothing was changed; please retry.")
too_many_dry_runs = Wording("IR-2072", Unavailable, "{most} dry runs are in progress already; please retry.")
still_running = Wording("IR-2073", Unavailable, (
    "{operation} of node {node} has not ended within {seconds:g} seconds. It continues, and the node is locked until "
    "it ends; if it fails, last_error says why."))

legacy_rule_failed = Wording("IR-2074", RuleFailed, "Legacy rule {rule}{called} failed at {where}: {reason}")

# Texts of last_error and of histories; no reply has them.
inspection_failed = Wording("IR-2082", IronicRulesError, "Inspection failed: {reason}")
inspection_aborted = Wording("IR-2083", IronicRulesError, "Inspection was aborted by request.")
procedure_aborted = Wording("IR-2084", IronicRulesError, "The {procedure} was aborted by request{where}.")
ramdisk_silent = Wording("IR-2085", IronicRulesError,
    "Timeout reached while waiting for {awaited} ({seconds} seconds, [conductor]{option}).")
state_failed = Wording("IR-2086", IronicRulesError, 'Failed in state "{state}"{step}: {reason}')
step_failed = Wording("IR-2087", IronicRulesError, "{step} failed: {reason}")
power_change_failed = Wording("IR-2088", IronicRulesError,
    "Failed to change the power state to '{target}': {reason}")
hardware_call_failed = Wording("IR-2089", IronicRulesError, "{call} failed: {reason}")
work_interrupted = Wording("IR-2090", IronicRulesError,
    'The conductor ended during "{purpose}"; please repeat the request.')
boot_left = Wording("IR-2091", IronicRulesError, "Media or boot scripts of the ramdisk remain: {reason}")
not_continued = Wording("IR-2092", IronicRulesError, "{state} was not continued. {reason}")
allocation_failed = Wording("IR-2093", IronicRulesError, "Failed to process allocation {allocation}: {reason}.")


#: errno -> why a port cannot be used, and what to do.
_PORTS = {
    errno.EADDRINUSE: "it is in use: end the process that uses it, or set another port",
    errno.EACCES: "this user may not use it: set one of at least 1024",
}


def cannot_listen(failure: str, host_option: str, port_option: str, error: Exception) -> ConfigurationError:
    """Return the error for an address on which a process cannot listen.

    :param failure: begins with what does not work, and has the address
    :param host_option: the option that has the address, as [group]name;  port_option: that of the port
    """
    # cheroot's own error has those of all addresses in its text only.
    number = next(map(int, re.findall(r"\[Errno (-?\d+)\]", str(error))), 0)
    if number < 0:  # of getaddrinfo(3)
        return ConfigurationError(f"{host_option}: {failure}: there is no such host: correct it, or set an address.")
    if number == errno.EADDRNOTAVAIL:
        return CannotListen(f"{host_option}: {failure}: no interface of this machine has the address: set one that "
                            "an interface has.")
    reason = _PORTS.get(number, f"{error}: set another port or address")
    kind = CannotListen if number == errno.EADDRINUSE else ConfigurationError
    return kind(f"{port_option}: {failure}: {reason}.")


def http_errors() -> dict[str, type[IronicRulesError]]:
    """Return every error class of this module by name: those that RPC can transport; a test checks each of them."""
    return {name: item for name, item in globals().items()
            if isinstance(item, type) and issubclass(item, IronicRulesError)}
