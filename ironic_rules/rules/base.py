"""The plug-in interface of actions, and their registry, to which plug-ins add theirs (``actions.load_plugins``)."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Protocol

from ironic_rules.models.documents import JSONObject
from ironic_rules.models.kept import ExtensionPoint
from ironic_rules.models.task import Watch
from ironic_rules.rules.errors import ActionError
from ironic_rules.rules.signatures import BadOperation, Operation, Registry, read_parameters
from ironic_rules.text import MAX_MESSAGE, printable

#: Objects that an action may change unless it declares otherwise; templates read them again afterwards.
EVERYTHING = frozenset({"node", "ports", "port_groups", "plugin_data"})
#: Reason why the work of a rule that is not sensitive is hidden.
SECRETIVE = "the rule reads a secret"


#: Sends a request (URL, headers, timeout in seconds) and returns the status of the response. Redirects are not
#: followed. Raises ActionError; of the URL, its text contains only the host.
HttpGet = Callable[[str, Mapping[str, str], float], int]


class Identity(Protocol):
    """The fields of a rule except its conditions and actions."""

    @property
    def uuid(self) -> str: ...
    @property
    def description(self) -> str | None: ...
    @property
    def priority(self) -> int: ...
    @property
    def phase(self) -> str: ...
    @property
    def scope(self) -> str | None: ...
    @property
    def sensitive(self) -> bool: ...


class ActiveRule:
    """The rule that is running, as actions see it.

    ``plugin_data`` is the plugin data of this inspection, to be changed in place: an early action has no other access
    to them. ``requests`` counts the rule's requests to other services for this node. In a dry run (``dry_run``) an
    action changes the drafts as usual, but nothing else: it reports what it :meth:`would` do.
    """

    __slots__ = ("_http_get", "_is_muted", "_is_secretive", "_rule", "_watch", "dry_run", "messages", "plugin_data",
                 "requests", "withheld")

    def __init__(self, rule: Identity, plugin_data: JSONObject, messages: list[tuple[str, str]],
                 dry_run: bool = False, http_get: HttpGet | None = None, watch: Watch | None = None) -> None:
        self._rule = rule
        self._is_secretive = False
        self._is_muted = False
        self._watch = watch or Watch()
        self.plugin_data = plugin_data
        self.messages = messages
        self._http_get = http_get
        self.requests = 0
        self.dry_run = dry_run
        self.withheld: tuple[str, ...] = ()

    def follow(self, rule: Identity, *, is_secretive: bool = False) -> None:
        """Become the next rule that runs on the node: to make an object for each match takes longer.

        :param is_secretive: whether it reads what must not be shown
        """
        self._rule = rule
        self._is_secretive = is_secretive
        self.requests = 0
        self.withheld = ()

    def next_item(self) -> None:
        """Note that an action begins with its next item: its deadline is that of one item."""
        self._watch.again()

    @property
    def uuid(self) -> str:
        """The rule's UUID."""
        return self._rule.uuid

    @property
    def description(self) -> str | None:
        """The rule's description."""
        return self._rule.description

    @property
    def priority(self) -> int:
        """The rule's priority."""
        return self._rule.priority

    @property
    def phase(self) -> str:
        """``early``, ``preprocess`` or ``main``."""
        return self._rule.phase

    @property
    def scope(self) -> str | None:
        """The scope that the rule applies to; None for every node."""
        return self._rule.scope

    @property
    def sensitive(self) -> bool:
        """True if nothing of the rule may be shown or logged."""
        return self._rule.sensitive

    def mute(self) -> None:
        """Leave further messages out, and say so."""
        if not self._is_muted:
            self._is_muted = True
            self.messages.append(("warning", f"Inspection rule {self.uuid}: further messages are left out, because "
                                             "the rules have too many for this node"))

    def log(self, level: str, text: str) -> None:
        """Add a message for the caller to log; that of a sensitive rule, or one that reads secrets, is withheld."""
        if self._is_muted:
            return
        if self.sensitive:
            shown = "message withheld, the rule is sensitive"
        else:
            shown = f"message withheld, {SECRETIVE}" if self._is_secretive else printable(text, MAX_MESSAGE)
        self.messages.append((level, f"Inspection rule {self.uuid}: {shown}"))

    def get(self, url: str, headers: Mapping[str, str], timeout_s: float) -> int:
        """Send a GET request and return the status of the response.

        :raises ActionError: there was no response, or rules may not send requests
        """
        if self._http_get is None:
            raise ActionError("api-call is disabled")
        return self._http_get(url, headers, timeout_s)

    def would(self, text: str) -> None:
        """Report what is not done in a dry run: "send GET to ...". Shown in the trace, so it must not have secrets."""
        self.withheld += (f"details are withheld, {SECRETIVE}" if self._is_secretive
                          else f"would {printable(text, MAX_MESSAGE)}",)

    def take_withheld(self) -> tuple[str, ...]:
        """Return what was not done since the last call of this method."""
        taken, self.withheld = self.withheld, ()
        return taken


class InspectionRuleActionBase(ExtensionPoint, metaclass=abc.ABCMeta):
    """Abstract base class for rule action plugins.

    The arguments that a rule may give are those of ``__call__`` after ``task`` and ``rule``. Raise
    ``rules.ActionError`` to fail the rule, and with it the inspection.
    """

    formatted_params: Sequence[str] = ()
    """Parameters in which templates are filled in; others are passed as in the rule."""

    supports_early: bool = False
    """True if the action works in the early phase, where there is no node."""

    touches: ClassVar[frozenset[str]] = EVERYTHING
    """Objects that the action changes, of node, ports, port_groups and plugin_data."""

    node_path: ClassVar[str | None] = None
    """The parameter with the path on the node outside of which the action does not change the node; None: any."""

    data_path: ClassVar[str | None] = None
    """The parameter with the path in the plugin data outside of which the action does not change them; None: any."""

    waits: ClassVar[bool] = False
    """True if it waits for another service. Actions of other packages are watched in any case."""

    def call_early(self, rule: ActiveRule, *args: Any, **kwargs: Any) -> None:
        """Run the action in the early phase, with the arguments of ``__call__``."""
        raise NotImplementedError

    @abc.abstractmethod
    def __call__(self, task: Any, rule: ActiveRule, *args: Any, **kwargs: Any) -> None:
        """Run the action on a successful match. ``task`` has the drafts; nothing needs to be saved."""

    def problems(self, literals: Mapping[str, object]) -> Iterable[tuple[str, str]]:
        """Return the problems of combinations of literal arguments: (argument, reason) pairs, without values."""
        return ()


def _read(name: str, cls: Any) -> Operation:
    if not (isinstance(cls, type) and issubclass(cls, InspectionRuleActionBase)):
        raise BadOperation(f"action {name!r} is not a subclass of InspectionRuleActionBase")
    if cls.__abstractmethods__:
        raise BadOperation(f"action {name!r} does not define __call__")
    if cls.supports_early and cls.call_early is InspectionRuleActionBase.call_early:
        raise BadOperation(f"action {name!r} supports the early phase but does not define call_early")
    parameters = read_parameters(cls.__call__, skip=3)
    unknown = sorted(set(cls.formatted_params) - {parameter.name for parameter in parameters})
    if unknown and not any(parameter.variadic == "keyword" for parameter in parameters):
        raise BadOperation(f"action {name!r}: __call__ does not accept the formatted_params {', '.join(unknown)}")
    return Operation(name, cls(), parameters, cls.__doc__ or "", frozenset(cls.formatted_params), cls.supports_early)


ACTIONS = Registry("action", _read)
