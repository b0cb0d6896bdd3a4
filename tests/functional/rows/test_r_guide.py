"""R-90: the user guide and its examples."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ironic_rules import samples
from tests.functional.rows import drivers
from tests.functional.rows.conftest import RULES
from tests.functional.whole import Whole
from tests.unit.rules.world import name_of
from tests.unit.test_examples import CASES, EXAMPLES, FILES, GUIDE, rules_of

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Whole]:
    """The whole service with the drivers that the guide's examples name."""
    with drivers.running(tmp_path_factory.mktemp("service")) as service:
        yield service


def test_r_90_the_guide_shows_every_example_and_the_reference_every_request():
    guide = GUIDE.read_text(encoding="utf-8")
    assert [path.name for path in FILES if f".. literalinclude:: {EXAMPLES.name}/{path.name}\n" not in guide] == []
    assert ".. api-reference::" in (ROOT / "doc" / "source" / "reference" / "api.rst").read_text(encoding="utf-8")
    assert [rule["description"] for rule in rules_of("discovered")] == [
        "Initialize freshly discovered nodes", "Initialize Dell nodes using IPv6"]


def _target(case: dict[str, Any]) -> str:
    return str(case.get("node", {}).get("target_provision_state", "manageable"))


def by_an_example(whole: Whole, stem: str, case: dict[str, Any]) -> str:
    """Create the rules of an example, and let a machine of a case send its data; return the UUID of its node."""
    for rule in rules_of(stem):
        assert whole.app.post_json(RULES, rule).status_int == 201
    body = samples.inventory(case["sample"])
    body["inventory"].update(case.get("inventory", {}))
    for name in case.get("drop", ()):
        del body["inventory"][name]
    uuid = whole.enroll("manageable")
    whole.put(uuid, **case.get("node", {}))
    for address, fields in case.get("ports", {}).items():
        port = {"node_uuid": uuid, "address": address, **fields}
        assert whole.app.post_json("/v1/ports", port).status_int == 201
    whole.provision(uuid, "inspect")
    # That of a discovered node, in place of the one of the request.
    whole.put(uuid, target_provision_state=_target(case))
    whole.callback(uuid, {**body, **case.get("plugin_data", {})})
    whole.at_rest(uuid)
    return uuid


@pytest.mark.parametrize("vector", [vector for vector in CASES if vector[1]["expect"].get("matched")], ids=name_of)
def test_r_90_each_example_does_in_the_service_what_the_guide_says(whole, vector):
    stem, case = vector

    uuid = by_an_example(whole, stem, case)

    node = whole.show(uuid)
    assert (node["provision_state"], node["last_error"]) == (_target(case), None)
    (_, event), = whole.events(uuid)
    # Early rules run before there is a node with a history.
    rules_with_history = [rule["description"] for rule in rules_of(stem) if rule.get("phase") != "early"]
    matched = {description for description in rules_with_history if f"({description})" in event}
    # Hooks have added more data than the case has, so that more rules may match.
    assert matched >= set(case["expect"]["matched"]).intersection(rules_with_history)
    assert set(case["expect"].get("traits", ())) <= set(node["traits"])
    assert whole.app.delete(f"/v1/nodes/{uuid}").status_int == 204  # the next case may be about the same machine


@pytest.mark.parametrize("vector", [vector for vector in CASES if "fails" in vector[1]["expect"]], ids=name_of)
def test_r_90_each_example_that_refuses_machines_refuses_one_with_its_reason(whole, caplog, vector):
    stem, case = vector

    uuid = by_an_example(whole, stem, case)

    node = whole.show(uuid)
    assert node["provision_state"] in ("inspect failed", "inspect wait")  # an early rule refuses it
    assert case["expect"]["fails"] in (node["last_error"] or caplog.text)
    assert whole.provision(uuid, "abort" if node["provision_state"] == "inspect wait" else "manage")["uuid"] == uuid
    assert whole.app.delete(f"/v1/nodes/{uuid}").status_int == 204
