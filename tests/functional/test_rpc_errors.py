"""Errors of conductors as they reach the API, serialized by oslo.messaging (its driver ``fake`` does not do that)."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterator

import oslo_messaging as messaging
import pytest
from futurist._thread import ThreadWorker
from oslo_messaging._drivers.common import serialize_remote_exception

from ironic_rules import context, exceptions, service
from ironic_rules.exceptions import IronicRulesError
from ironic_rules.httpd import faults
from ironic_rules.rpc import transport as rpc_transport
from ironic_rules.rpc.api import ConductorAPI
from tests.functional.brokers import temporary_vhost
from tests.walking import walking

#: Errors that conductors raise in calls, by their names of before: each of these was a class.
FORMER = {
    "InvalidState": exceptions.invalid_state(action="manage", node="n", state="active"),
    "NodeProtected": exceptions.node_protected(node="n", action="undeploy"),
    "OutcomeUnknown": exceptions.outcome_unknown(),
    "StillRunning": exceptions.still_running(node="n", operation="boot", seconds=20.0),
    "TooManyCalls": exceptions.too_many_calls(node="n"),
    "TooManyConfigDrives": exceptions.too_many_config_drives(),
}
OTHERS = {
    "class": exceptions.NodeLocked(node="n", host="h"), "text": exceptions.Conflict("{text} as it is"),
    "problems": exceptions.Invalid(problems=[exceptions.Problem("/a", "is wrong")])}


def of_before(name: str, error: IronicRulesError) -> IronicRulesError:
    """Return ``error`` as an instance of the class that conductors of the previous version have for it."""
    cls = type(name, (type(error),), {"__module__": exceptions.__name__})
    return exceptions.rebuild(cls, str(error), error.facts)


ERRORS = {**OTHERS, **FORMER, **{f"of before: {name}": of_before(name, error) for name, error in FORMER.items()}}


class Endpoint:
    """A conductor that refuses every call with the error that has the name of the node."""

    target = messaging.Target(version=rpc_transport.VERSION)

    @messaging.expected_exceptions(IronicRulesError)
    def validate_interfaces(self, ctxt: object, node_id: str) -> None:
        raise ERRORS[node_id]


@pytest.fixture(scope="module", params=["ironic-rules-memory://", "rabbit"])
def refusal(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[
        Callable[[str], IronicRulesError]]:
    """Return what a call of the API to that conductor raises."""
    with contextlib.ExitStack() as stack:
        patched = stack.enter_context(pytest.MonkeyPatch.context())
        # Threads of a server that is stopped end at their next poll, by default once a second.
        patched.setattr(ThreadWorker, "MAX_IDLE_FOR", 0.02)
        url = stack.enter_context(temporary_vhost()) if request.param == "rabbit" else request.param
        file = tmp_path_factory.mktemp("rpc") / "rpc.conf"
        file.write_text(f"[DEFAULT]\ntransport_url = {url}\nhost = errors\n")
        conf = service.prepare_config([], config_files=[str(file)])
        transport = rpc_transport.get_transport(conf)
        stack.callback(transport.cleanup)
        server = rpc_transport.get_server(transport, conf, Endpoint(), "errors")
        server.start()
        stack.callback(server.wait)
        stack.callback(server.stop)
        api = ConductorAPI(transport, conf)

        def call(node: str) -> IronicRulesError:
            with pytest.raises(IronicRulesError) as caught:
                api.validate_interfaces(context.admin(), node, group="errors")
            return caught.value

        yield call


@pytest.mark.parametrize("name", sorted(ERRORS))
def test_an_error_of_a_conductor_has_the_same_reply_in_the_api(
        refusal: Callable[[str], IronicRulesError], name: str) -> None:
    error = ERRORS[name]
    # The class of a conductor of before tells the id, which it does not send.
    known = FORMER.get(name.removeprefix("of before: "), error)
    reply, expected = faults.from_error(refusal(name)), faults.from_error(exceptions.rebuild(
        type(error), str(error), {}, known.message_id))
    assert (reply.status, reply.headers, reply.body) == (expected.status, expected.headers, expected.body)


@walking("error", FORMER.values())
def test_an_api_of_the_previous_version_knows_the_classes_that_are_sent(error: IronicRulesError) -> None:
    try:
        raise error
    except IronicRulesError:
        sent = json.loads(serialize_remote_exception(sys.exc_info()))
    assert (sent["module"], sent["args"]) == (exceptions.__name__, [str(error)])
    # Its classes take any facts.
    assert sent["kwargs"] == {"message_id": error.message_id}
    assert sent["class"] in ("Forbidden", "Invalid", "Unavailable")
