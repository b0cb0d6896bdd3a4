"""The ``api-call`` action: an HTTP GET to a host that the operator has allowed.

The engine does not access the network: the function that sends requests is passed to the rule set. The hosts that may
be called are one of the limits, so that a rule with a call that is not allowed is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

from ironic_rules.models.task import Task
from ironic_rules.rules.actions.registry import ACTIONS
from ironic_rules.rules.base import ActiveRule, InspectionRuleActionBase
from ironic_rules.rules.errors import ActionError, OperandError
from ironic_rules.rules.hosts import host_of
from ironic_rules.rules.kinds import Kind
from ironic_rules.rules.limits import Limits

MAX_TIMEOUT_S = 60
#: Maximum number of requests of a rule for one node, which remains locked meanwhile.
MAX_REQUESTS = 16

_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_HEADER_VALUE = re.compile(r"[\x20-\x7e]*")
#: Headers that determine the destination or the end of a request.
_RESERVED_HEADERS = frozenset({"connection", "content-length", "expect", "host", "te", "transfer-encoding", "upgrade"})


def _url(value: Any, limits: Limits) -> str:
    try:
        return limits.hosts.check(value)
    except ValueError as exc:
        raise OperandError(str(exc)) from None


def _url_prefix(text: str, limits: Limits) -> None:
    try:
        limits.hosts.check_prefix(text)
    except ValueError as exc:
        raise OperandError(str(exc)) from None


def _headers(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise OperandError("must be an object of strings")
    headers = {}
    for name, given in value.items():
        if not _HEADER.fullmatch(name) or name.lower() in _RESERVED_HEADERS:
            raise OperandError(f"names must be those of HTTP headers, but not {', '.join(sorted(_RESERVED_HEADERS))}")
        if isinstance(given, bool) or not isinstance(given, (str, int, float)):
            raise OperandError("must be an object of strings")
        headers[name] = str(given)
        if not _HEADER_VALUE.fullmatch(headers[name]):
            raise OperandError("the value of a header must be printable ASCII")
    return headers


def _seconds(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= MAX_TIMEOUT_S:
        raise OperandError(f"must be a number of seconds, more than 0 and at most {MAX_TIMEOUT_S}")
    return float(value)


URL = Kind("URL", {"type": "string"}, (str,), "a string", limited=_url, prefix=_url_prefix)
HEADERS = Kind("HTTP headers", {"type": ["object", "string"]}, (dict,), "an object of strings", _headers)
SECONDS = Kind("seconds", {"type": ["number", "string"]}, (int, float), "a number", _seconds)

Url = Annotated[str, URL]
Headers = Annotated[Mapping[str, str] | None, HEADERS]
Seconds = Annotated[float, SECONDS]


@ACTIONS.add("api-call")
class ApiCall(InspectionRuleActionBase):
    """Notify another service of the node by an HTTP GET. A response other than 2xx fails the rule.

    Only hosts in ``[inspection_rules]api_call_allowed_hosts`` can be called. Redirects are not followed, requests are
    not retried, and the content of the response is ignored. A rule sends at most 16 requests for a node. A dry run
    sends nothing, and assumes a response of 2xx.

    :param url: ``http`` or ``https``; templates may only be used after the host
    :param headers: HTTP headers by name
    :param timeout: seconds for the connection, and for each wait for data; at most 60

    .. rule:: {op: api-call, args: {url: "https://cmdb.example.org/seen/{inventory[hostname]}", timeout: 10}}
    """

    formatted_params = ["url", "headers", "timeout"]
    touches = frozenset()
    waits = True

    def __call__(self, task: Task, rule: ActiveRule, url: Url, headers: Headers = None, timeout: Seconds = 5.0) -> None:
        rule.requests += 1
        if rule.requests > MAX_REQUESTS:
            raise ActionError(f"more than {MAX_REQUESTS} requests")
        if rule.dry_run:
            rule.would(f"send GET to {host_of(url)}")
            return
        status = rule.get(url, headers or {}, timeout)
        if not 200 <= status <= 299:
            note = "; redirects are not followed" if 300 <= status <= 399 else ""
            raise ActionError(f"{host_of(url)} answered with status {status}{note}")
