"""Tasks: the drafts of one node's inspection, which hooks and actions work on, and the watch over their workers.

Code of a plug-in may never return, so that another thread has to notice it. The worker only notes what it begins, which
costs little; the watchdog (``conductor.worker_pool``) has the clock.
"""

from __future__ import annotations

import copy
import functools
import threading
import uuid as uuid_module
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from ironic_rules.context import RequestContext, admin
from ironic_rules.metrics.numbers import Stages
from ironic_rules.models import addresses
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.draft import NodeDraft, PortDraft, Sign
from ironic_rules.models.inventories import UNSHARED, InspectionData, Report, Sharing
from ironic_rules.models.nodes import BIOSSetting, FirmwareComponent
from ironic_rules.models.ports import PORT
from ironic_rules.models.secrets import Concealment

#: The kinds of code with a deadline, and the options with their seconds.
HOOK, ACTION, STEP = "hook", "action", "step"
#: Work between them, such as replies of machines and of the database.
WORK = "work"
OPTIONS: Mapping[str, str] = {
    WORK: "[conductor]work_timeout",
    HOOK: "[inspector]hook_timeout", ACTION: "[inspection_rules]action_timeout", STEP: "[conductor]step_timeout"}

#: A kind, a function that returns the error of something that did not end in time, and its arguments before the reason.
Doing: TypeAlias = tuple[Any, ...]


class Abandoned(BaseException):
    """The work of this thread was given to another one: whatever it still does has no effect. It is never caught."""


def is_signal(error: BaseException) -> bool:
    """Return whether an exception may come from a signal, which is not to be taken for an error of the code it hit."""
    is_error = isinstance(error, (Exception, SystemExit, GeneratorExit))
    return not is_error and threading.current_thread() is threading.main_thread()


class Watch:
    """The code that one worker is running. Only its own thread calls :meth:`begin` and :meth:`end`."""

    __slots__ = ("_lock", "doing", "is_abandoned", "on_overdue")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.doing: Doing | None = None
        self.is_abandoned = False
        #: called in another thread with the error, after this one was abandoned; None: it is not watched
        self.on_overdue: Callable[[Exception], None] | None = None

    def begin(self, kind: str, failure: Callable[..., Exception], *subject: Any) -> None:
        """Note the work that begins now, instead of the work noted before.

        :param failure: returns the error if it does not end in time; called with ``subject`` and the reason
        :raises Abandoned: what was noted before ended too late
        """
        if self.is_abandoned:
            raise Abandoned
        self.doing = (kind, failure, *subject)

    def again(self) -> None:
        """Note that the same begins once more: with its next item.

        :raises Abandoned: the last one ended too late
        """
        if self.is_abandoned:
            raise Abandoned
        if self.doing is not None:
            self.doing = (*self.doing,)

    def end(self) -> None:
        """Note that it has ended: from now on its results count.

        :raises Abandoned: too late
        """
        with self._lock:
            if self.is_abandoned:
                raise Abandoned
            self.doing = None

    def abandon(self, doing: Doing | None) -> bool:
        """Give up the worker if it is still doing that; return whether it is."""
        with self._lock:
            if self.doing is doing:
                self.is_abandoned = True
            return self.is_abandoned


def overdue(doing: Doing, limit_s: float) -> Exception:
    """Return the error of something that has not ended within ``limit_s`` seconds."""
    kind, failure, *subject = doing
    error: Exception = failure(*subject, f"it has not ended within {limit_s:g} seconds ({OPTIONS[kind]})")
    return error


#: Fields, without the address, of a port that inspection adds.
_NEW_PORT = PORT.where(lambda entry: entry.column and entry.create and not entry.required)


@dataclass(slots=True)
class PortChanges:
    """Changes of the ports table: rows to create, columns to update by port id, port ids to delete."""

    created: list[JSONObject] = field(default_factory=list)
    updated: dict[int, JSONObject] = field(default_factory=dict)
    deleted: list[int] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.created or self.updated or self.deleted)


class RuleRevisions(NamedTuple):
    """The revisions of the rules that a node's inspection runs, as read with the node.

    :ivar rules: the revision of the set of inspection rules
    :ivar legacy: that of the set of legacy rules
    :ivar owns_legacy_values: whether legacy rules own values of the node
    :ivar facts: that of the set of facts
    :ivar facts_digest: the hash of the facts that are stored of the node; None: there are none
    """

    rules: int
    legacy: int
    owns_legacy_values: bool
    facts: int = 0
    facts_digest: str | None = None


#: Returns an inventory on request, because few hooks need it.
PreviousInventory = Callable[[], Mapping[str, Any] | None]


class Task:
    """The drafts of one node's inspection, for hooks and actions. ``save`` of the drafts does nothing."""

    shared = False

    def __init__(self, node: NodeDraft, ports: Iterable[PortDraft] = (), port_groups: Iterable[Mapping[str, Any]] = (),
                 context: RequestContext | None = None, revisions: RuleRevisions | None = None) -> None:
        self.node = node
        self.ports = list(ports)
        self.port_groups: list[JSONObject] = [dict(group) for group in port_groups]
        self.context = context or admin()
        #: revisions of the sets of rules, if they were read with the node
        self.revisions = revisions
        #: notes of the worker about the code of a plug-in that it runs
        self.watch = Watch()
        #: notes of the worker about the stage of its work
        self.stages = Stages("start")
        #: report of the ramdisk, if it is known without reading it
        self.report: Report | None = None
        #: MAC addresses of the inventory that belong to other nodes
        self.foreign_addresses: Collection[str] = ()
        #: MAC addresses that identify no machine, because those of several nodes have reported them
        self.sharing: Sharing = UNSHARED
        self._previous_inventory: PreviousInventory = lambda: None
        #: data of this inspection that an inspect interface has accepted before, see :meth:`received_before`
        self.accepted: Callable[[], InspectionData | None] = lambda: None
        #: returns those of the given MAC addresses that are ports of other nodes; known while an inspection starts
        self.addresses_of_others: Callable[[Collection[str]], Collection[str]] = lambda addresses: ()
        #: the parts of this inspection that must not be shown
        self.conceal = Concealment()
        #: messages of ``log`` actions: (level, text)
        self.messages: list[tuple[str, str]] = []
        #: notices about the outcome of a step that has not failed, for the node's history
        self.notices: list[str] = []
        #: settings and components that the BMC reported during this work, to be stored; None: they were not read
        self.bios_settings: Sequence[BIOSSetting] | None = None
        self.firmware_components: Sequence[FirmwareComponent] | None = None
        self._before_ramdisk: Callable[[Task], None] | None = None
        self._agent_token: Callable[[], str | None] = lambda: None
        self._deleted: list[int] = []
        self._saved: tuple[list[PortDraft], list[int]] = (list(self.ports), [])

    def begin_work(self, before_ramdisk: Callable[[Task], None],
                   agent_token: Callable[[], str | None] = lambda: None) -> None:
        """Set the functions by which the work on a node acts before its end.

        :param before_ramdisk: invalidates the agent token of the node at once, and waits for what its ramdisk needs;
            called with the task, which it must not keep
        :param agent_token: returns the token of an agent that waits for work, if this process has received it
        """
        self._before_ramdisk, self._agent_token = before_ramdisk, agent_token

    def resume_agent(self) -> None:
        """Let this work call the agent that waits for work (fast track); else it waits for the next heartbeat."""
        if self.context.agent_token is None:
            self.context.agent_token = self._agent_token()

    def expect_ramdisk(self) -> None:
        """Invalidate the agent token, immediately before a ramdisk is started that will get another one.

        This is stored at once: the ramdisk may look its node up before the work that starts it has ended, and the draft
        does not have its token.
        """
        if self._before_ramdisk is None:
            self.node.agent_token_hash = None
        else:
            self._before_ramdisk(self)

    def begin_inspection(self, foreign_addresses: Collection[str], previous_inventory: PreviousInventory,
                         sharing: Sharing = UNSHARED) -> None:
        """Set the facts about this inspection that hooks can read in addition to its data.

        :param foreign_addresses: MAC addresses of the inventory that belong to other nodes
        :param previous_inventory: returns the inventory of the node's last successful inspection before this one
        :param sharing: MAC addresses of the inventory that identify no machine
        """
        self.foreign_addresses = foreign_addresses
        self.sharing = sharing
        # Hooks and both phases of rules may ask.
        self._previous_inventory = functools.cache(previous_inventory)

    def previous_inventory(self) -> Mapping[str, Any] | None:
        """Return the inventory of the node's last successful inspection before this one; None if there was none.

        It is read by the first call, and must not be changed.
        """
        return self._previous_inventory()

    def received_before(self) -> InspectionData | None:
        """Return the data for which ``continue_inspection`` returned INSPECTWAIT last time; None if it did not."""
        return self.accepted()

    def add_port(self, address: str, **values: Any) -> PortDraft:
        """Add a port with the given MAC address, and with a new UUID unless one is given."""
        defaults = {name: PORT[name].initial() for name in _NEW_PORT}
        port = PortDraft({**defaults, "uuid": str(uuid_module.uuid4()), **values, "address": None})
        author, action = self.node.author_of()
        port.checkpoint(author)(action)
        port.address = addresses.normalize_mac(address)
        self.ports.append(port)
        return port

    def remove_port(self, port: PortDraft) -> None:
        """Remove a port of this task."""
        self.ports = [other for other in self.ports if other is not port]
        port_id = port._values.get("id")
        if port_id is not None:
            self._deleted.append(port_id)

    def find_port(self, mac_or_uuid: str) -> PortDraft | None:
        """Return the port with that MAC address or UUID, in any notation; None if the node has no such port.

        The notations of an address are those of :func:`ironic_rules.models.addresses.mac_of_port`.
        """
        identifier = addresses.mac_of_port(mac_or_uuid) or mac_or_uuid.lower()
        for port in self.ports:
            values = port._values
            if identifier in (str(values.get("address")).lower(), str(values.get("uuid")).lower()):
                return port
        return None

    def port_changes(self) -> PortChanges:
        """Return the differences from the ports that the task began with."""
        changes = PortChanges(deleted=list(self._deleted))
        for port in self.ports:
            port_id = port._values.get("id")
            if port_id is None:
                changes.created.append(dict(port._values))
            elif changed := port.changes():
                changes.updated[port_id] = changed
        return changes

    def copy(self) -> Task:
        """Return a task with the same changes so far, independent of this one."""
        # The report is not changed. Journals share the rules, which have what cannot be copied.
        shared = (self.context, self.watch, self.report, self.conceal)
        return copy.deepcopy(self, {id(part): part for part in shared})

    def checkpoint(self, author: object = None) -> Sign:
        """Make :meth:`rollback` return to the current state.

        :param author: who changes the drafts from now on
        :returns: :meth:`sign`
        """
        for draft in (self.node, *self.ports):
            draft.checkpoint(author)
        self._saved = (list(self.ports), list(self._deleted))
        return self.sign

    def sign(self, action: object) -> None:
        """Note what the author does from now on; see the drafts' ``sign``."""
        for draft in (self.node, *self.ports):
            draft.sign(action)

    def check_secrets(self) -> None:
        """Check what was changed in place; see the drafts' ``check_secrets``."""
        for draft in (self.node, *self.ports):
            draft.check_secrets()

    def rollback(self) -> None:
        """Undo everything since the last :meth:`checkpoint`, except log messages."""
        self.node.rollback()
        ports, deleted = self._saved
        self.ports, self._deleted = list(ports), list(deleted)
        for port in self.ports:
            port.rollback()
