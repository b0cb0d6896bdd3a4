"""A machine that reports guesses of its BMC's password learns nothing, and no user does, of what rules make of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ironic_rules.conductor import operations
from tests.functional import legacy
from tests.functional import whole as wholes
from tests.functional.installations import only_in_one_process
from tests.functional.processes import wait_for
from tests.functional.whole import OneProcess

pytestmark = only_in_one_process("the conductor's parts are used")

RULES = "/v1/inspection_rules"
PASSWORD = "Xyzzy-16180339"
RIGHT, WRONG = PASSWORD, "Xyzzy-16180330"
GUESSES = [f"Xyzzy-{number:08}" for number in range(5000)]


@pytest.fixture(scope="module", params=["always", "never"])
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OneProcess]:
    text = f"[inspection_rules]\nmask_secrets = {request.param}\n"
    with wholes.running(tmp_path_factory.mktemp("guesses"), text) as found:
        yield found
        assert found.app.delete(RULES).status_int == found.app.delete(legacy.RULES).status_int == 204


def rule(whole: OneProcess, *actions: object, **fields: object) -> str:
    reply = whole.app.post_json(RULES, {"actions": list(actions), **fields})
    assert reply.status_int == 201, reply.text
    return str(reply.json["uuid"])


def end_of(whole: OneProcess, operation: str) -> None:
    def ended() -> bool:
        operations.work(whole.conductor)
        return bool(whole.app.get(operation).json["status"] == "finished")

    wait_for("the end of the operation", ended)


def replies(whole: OneProcess, guess: str) -> dict[str, str]:
    """Return what the API shows of a machine that has reported a guess among many, by the name of the request."""
    app = whole.app
    node = whole.enroll("manageable", driver_info={"ipmi_password": PASSWORD}, resource_class=guess)
    mac, body = whole.machine()
    body |= {"guesses": [*GUESSES[:2500], guess, *GUESSES[2500:]], "guess": guess}
    body["inventory"] |= {"hostname": guess, "bmc": {"user": guess, "password": "of the machine"}}
    # Early rules refuse the first report, which the journal has then.
    refusing = rule(whole, {"op": "fail", "args": ["no {inventory[hostname]} {plugin_data[guess]}"]}, phase="early")
    app.post_json("/v1/continue_inspection", body)
    journal = f"/v1/inspection_journal?mac={mac}"
    entry, = wait_for("the journal", lambda: app.get(journal).json["inspection_journal"])
    assert app.delete(f"{RULES}/{refusing}").status_int == 204
    whole.inspect(node, body)
    inspection, = app.get(f"/v1/nodes/{node}/inspections").json["inspections"]
    found = {path: app.get(path).text for path in (
        f"/v1/nodes/{node}", f"/v1/nodes/{node}/inventory", f"/v1/nodes/{node}/inspections?detail=true",
        f"/v1/nodes/{node}/inspections/{inspection['uuid']}", f"/v1/nodes/{node}/history?detail=true",
        f"/v1/nodes/{node}/traits", f"/v1/nodes/{node}/trait_origins", f"/v1/nodes/{node}/legacy_values",
        f"/v1/ports?node={node}&detail=true", f"/v1/inspection_journal/{entry['uuid']}", journal)}
    again = {"node": node, "report": {**body, "again": True}}
    found["dry run"] = app.post_json(f"{RULES}/dry_run", again).text
    found["comparison"] = app.post_json(f"{RULES}/dry_run", {**again, "compare": True, "as_if": [
        {"actions": [{"op": "set-attribute", "args": ["/extra/else", "{plugin_data[guesses]}"]}]}]}).text
    failing = {"actions": [{"op": "fail", "args": ["no {item}"], "loop": "{plugin_data[guesses]}"}]}
    found["failing dry run"] = app.post_json(f"{RULES}/dry_run", {"node": node, "rules": [failing]}).text
    copying = {"actions": [{"op": "set-attribute", "args": ["/extra/copy", "{plugin_data[guess]}"]}]}
    for name, other in (("of many", copying), ("of many that fails", {"actions": [
            {"op": "fail", "args": ["no {plugin_data[guess]}"]}]})):
        begun = app.post_json(f"{RULES}/dry_run", {"nodes": {"resource_class": guess}, "as_if": [other]})
        assert begun.status_int == 202, begun.text
        operation = f"/v1/operations/{begun.json['uuid']}"
        end_of(whole, operation)
        found |= {f"{name} {path}": app.get(f"{operation}{path}").text for path in ("", "/nodes", "/groups")}
    # The inspection fails, and tells the guess.
    fails = rule(whole, {"op": "fail", "args": ["no {plugin_data[guess]}"]}, priority=0)
    begun = app.post_json(f"/v1/nodes/{node}/inventory/reapply", {})
    assert begun.status_int == 202, begun.text
    operation = f"/v1/operations/{begun.json['uuid']}"
    end_of(whole, operation)
    found |= {"applied again": app.get(operation).text, "applied to": app.get(f"{operation}/nodes").text}
    whole.inspect(node, {**body, "third": True})
    assert app.delete(f"{RULES}/{fails}").status_int == 204
    found["failed node"] = app.get(f"/v1/nodes/{node}").text
    found["failed inspection"] = app.get(f"/v1/nodes/{node}/inspections?detail=true").text
    assert guess in found["failed node"] and guess in found[f"/v1/nodes/{node}"]
    return {name.replace(node, "NODE").replace(mac, "MAC").replace(entry["uuid"], "ENTRY").replace(
        inspection["uuid"], "INSPECTION"): text for name, text in found.items()}


def test_replies_about_the_right_guess_have_the_form_of_those_about_a_wrong_one(whole: OneProcess) -> None:
    def set_extra(key: str, value: Any, **more: Any) -> dict[str, Any]:
        return {"op": "set-attribute", "args": [f"/extra/{key}", value], **more}

    rule(whole, set_extra("guesses", "{plugin_data[guesses]}"), set_extra("one", "it is {plugin_data[guess]}"),
         set_extra("within", {"deep": ["{plugin_data[guess]}"]}),
         {"op": "set-plugin-data", "args": ["copy", "{plugin_data[guesses]}"]},
         {"op": "set-port-attribute", "args": ["{inventory[interfaces][0][mac_address]}", "/extra/p",
                                               "{plugin_data[guess]}"]},
         {"op": "log", "args": ["maybe {plugin_data[guess]}"]}, priority=5,
         conditions=[{"op": "!eq", "args": ["{item}", "x"], "loop": "{plugin_data[guesses]}"}])
    rule(whole, set_extra("{plugin_data[guess]}", "{inventory[bmc][user]}"), priority=4)
    rule(whole, set_extra("sealed", "{plugin_data[guess]}"), sensitive=True, priority=3)
    legacy.rule(whole, legacy.sets("/extra/legacy", "{data[guess]}"),
                conditions=[{"field": "guesses[*]", "op": "ne", "value": "x"}])

    right, wrong = replies(whole, RIGHT), replies(whole, WRONG)

    assert right.keys() == wrong.keys()
    for name, text in right.items():
        assert text.count("******") == wrong[name].count("******"), name
        assert text.count(RIGHT) == wrong[name].count(WRONG), name
        assert WRONG not in text and RIGHT not in wrong[name], name
