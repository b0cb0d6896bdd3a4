"""Common to the tests of single rows: a running service, a machine that is inspected, a single condition."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.functional.installations import is_one_process, running
from tests.functional.whole import Whole, fault
from tests.unit.rules import world

RULES = "/v1/inspection_rules"
LOG = {"op": "log", "args": {"msg": "hi"}}


def service_scope(fixture_name: str, config: pytest.Config) -> str:
    """Return the scope of a running service: separate processes take seconds to start."""
    return "module" if is_one_process() else "session"


@pytest.fixture(scope=service_scope)
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Whole]:
    """The whole service in the selected installation; see ``installations``.

    In one process, another one that a test starts with ``running`` must end within the test: the topic of the latest
    one is in effect.
    """
    with running(tmp_path_factory.mktemp("rows")) as service:
        yield service


@pytest.fixture
def whole(service: Whole) -> Iterator[Whole]:
    """The whole service without any rules; ``app`` is its HTTP client, which never raises."""
    yield service
    assert service.app.delete(RULES).status_int == 204


@pytest.fixture
def no_rules(whole: Whole) -> Callable[[], None]:
    """Delete all rules: for places of a walk."""
    def delete() -> None:
        assert whole.app.delete(RULES).status_int == 204

    return delete


@pytest.fixture
def logged(whole: Whole, caplog: pytest.LogCaptureFixture) -> Callable[[], str]:
    """The log of the service since the test began, from level INFO."""
    caplog.set_level(logging.INFO)
    before = whole.logs()
    return lambda: caplog.text + "".join(
        text.removeprefix(before.get(name, "")) for name, text in whole.logs().items())


def create(whole: Whole, *actions: Any, **fields: Any) -> dict[str, Any]:
    """Create a rule, by default one that logs; return its representation in the API."""
    reply = whole.app.post_json(RULES, {"actions": list(actions) or [LOG], **fields})
    assert reply.status_int == 201, reply.text
    rule: dict[str, Any] = reply.json
    return rule


def refusal(whole: Whole, *actions: Any, **fields: Any) -> str:
    """Try to create a rule that the API refuses with 400; return its reason."""
    reply = whole.app.post_json(RULES, {"actions": list(actions) or [LOG], **fields})
    assert reply.status_int == 400, reply.text
    return fault(reply)


def patch(whole: Whole, rule: dict[str, Any], *operations: dict[str, Any]) -> Any:
    """Send a JSON patch for a rule; return the reply."""
    return whole.app.patch_json(f"{RULES}/{rule['uuid']}", list(operations))


def waiting(whole: Whole, **fields: Any) -> tuple[str, dict[str, Any]]:
    """Return the UUID of a node in INSPECT WAIT, and the report of its ramdisk.

    :param fields: of the node, written without the API
    """
    uuid = whole.enroll("manageable")
    if fields:
        whole.put(uuid, **fields)
    assert whole.provision(uuid, "inspect")["provision_state"] == "inspect wait"
    return uuid, whole.machine()[1]


def finish(whole: Whole, uuid: str, body: dict[str, Any]) -> dict[str, Any]:
    """Send a ramdisk's report for a node in INSPECT WAIT, and return the node when it is in a stable state again."""
    reply = whole.callback(uuid, body)
    assert reply.status_int == 200, reply.text
    whole.at_rest(uuid)
    return whole.show(uuid)


def inspected(whole: Whole, inventory: dict[str, Any] | None = None, plugin_data: dict[str, Any] | None = None,
              **fields: Any) -> dict[str, Any]:
    """Inspect a new node from the request to the end, and return it.

    :param inventory: merged with that of a machine with one interface, ``eth0`` at 192.0.2.9
    :param plugin_data: what the ramdisk sends in addition to the inventory
    :param fields: of the node, written without the API
    """
    uuid, body = waiting(whole, **fields)
    body["inventory"].update(inventory or {})
    return finish(whole, uuid, {**body, **(plugin_data or {})})


def holds(op: str, *args: Any, loop: Any = None, multiple: str | None = None, named: dict[str, Any] | None = None,
          **facts: Any) -> bool | None:
    """Evaluate one condition over the small world of the rule tests, without a service.

    :param args: the arguments as a list, unless ``named`` has them
    :param facts: ``node``, ``inventory``, ``plugin_data`` to be merged with those of that world
    :returns: None if the data do not allow an evaluation: the rule does not match then
    """
    rule = world.rule(conditions=[{"op": op, "args": list(args) if named is None else named, "loop": loop,
                                   "multiple": multiple}])
    explained, = world.run(rule, given=world.facts(**facts), explain=True)
    outcome: bool | None = explained.conditions[0].outcome
    assert len(world.run(rule, given=world.facts(**facts))) == explained.matched == bool(outcome)
    return outcome


def effects(*actions: dict[str, Any], **facts: Any) -> dict[str, Any]:
    """Run actions over the small world of the rule tests; return what they changed, see ``world.effects``.

    :raises RuleFailed: an action fails
    """
    given = world.facts(**facts)
    world.run(world.rule(actions=list(actions)), given=given)
    return world.effects(given)


def stored(whole: Whole, uuid: str) -> Any:
    """Return the inventory and the plugin data of a node's last inspection."""
    return whole.app.get(f"/v1/nodes/{uuid}/inventory").json
