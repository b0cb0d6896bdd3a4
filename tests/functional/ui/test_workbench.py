"""The views of rules in a browser: a rule is written, tried on machines, stored, and its statistics obey."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from ironic_rules import samples
from ironic_rules.rules import strict_yaml
from tests.functional.processes import free_port, standalone, wait_for
from tests.functional.ui.conftest import PATIENCE_MS, Visitor, playwright

pytestmark = pytest.mark.slow

expect = playwright.expect
expect.set_options(timeout=PATIENCE_MS)
RULES = "/v1/inspection_rules"
MACHINES = ("dell-r660", "hpe-dl380-gen11", "vm-qemu-bios")
HOSTILE = "<img src=x onerror=\"console.error('executed')\">\u202egnp.exe"
MISTAKEN = """\
name: many-cpus
conditions:
  - {op: gt, args: {values: ["{inventory[cpu][count]}", 8]}}
actions:
  - {op: set-atribute, args: {path: /extra/cpus, value: "{inventory[cpu][count]}"}}
"""
CLIENT: dict[str, Any] = {"headers": {"X-OpenStack-Ironic-API-Version": "1.96"}, "timeout": 60, "trust_env": False}


class Service:
    """A service with nodes that have been inspected, one for each of ``MACHINES``."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.client = httpx.Client(base_url=url, **CLIENT)
        self.nodes = {name: self._enroll(name) for name in MACHINES}
        for name in MACHINES:
            self.inspect(name)

    def _enroll(self, name: str) -> str:
        report = samples.inventory(name)
        node = self.client.post("/v1/nodes", json={
            "name": name, "driver": "fake-hardware", "inspect_interface": "agent"}).json()
        for interface in report["inventory"]["interfaces"]:
            self.client.post("/v1/ports", json={"node_uuid": node["uuid"], "address": interface["mac_address"]})
        self._ask(name, "manage", "manageable")
        return str(node["uuid"])

    def _ask(self, name: str, target: str, state: str) -> None:
        self.client.put(f"/v1/nodes/{name}/states/provision", json={"target": target}).raise_for_status()
        self._wait(name, state)

    def _wait(self, name: str, state: str) -> None:
        wait_for(f"{name} in {state}", lambda: self.client.get(f"/v1/nodes/{name}").json()["provision_state"] == state)

    def inspect(self, name: str, **more: Any) -> None:
        """Inspect a node; ``more`` is added to what its machine sends."""
        self._ask(name, "inspect", "inspect wait")
        report = {**samples.inventory(name), "error": None, **more}
        self.client.post("/v1/continue_inspection", json=report).raise_for_status()
        self._wait(name, "manageable")

    def create(self, name: str, **more: Any) -> str:
        """Store a rule; return its UUID."""
        action = {"op": "set-attribute", "args": {"path": f"/extra/{name}", "value": 1}}
        reply = self.client.post(RULES, json={"name": name, "actions": [action]} | more)
        assert reply.status_code == 201, reply.text
        return str(reply.json()["uuid"])

    def statistics(self, rule: str) -> dict[str, Any]:
        """Return what has become of a rule."""
        return dict(self.client.get(f"{RULES}/{rule}/statistics").json())


@pytest.fixture(scope="module")
def service(tmp_path_factory) -> Iterator[Service]:
    config = "[inspection_rules]\nstatistics_interval = 1\n"
    with standalone(tmp_path_factory.mktemp("workbench"), config=config) as (_, url):
        served = Service(url)
        yield served
        served.client.close()


@pytest.fixture
def open_bench(service, visit) -> Callable[..., Visitor]:
    """Return a function that opens the workbench for a rule and the three nodes."""
    def opened(rule: str = "", **options: Any) -> Visitor:
        her = visit(service.url, width=1500, height=950, **options)
        her.open(f"#/workbench{f'/{rule}' if rule else ''}?nodes={','.join(service.nodes.values())}")
        return her

    return opened


def write(her: Visitor, text: str) -> None:
    """Replace the text in the editor."""
    her.page.get_by_role("textbox", name="Rule, as YAML or JSON").focus()
    her.page.keyboard.press("Control+A")
    her.page.keyboard.insert_text(text)


def text_of(her: Visitor) -> str:
    """Return the text in the editor."""
    return "\n".join(her.page.locator(".cm-line").all_inner_texts())


def check_from_the_top(her: Visitor) -> None:
    """Check the accessibility where nothing is half below the header, which axe-core takes for small targets."""
    her.page.evaluate("scrollTo(0, 0)")
    her.check_accessibility()


def add_condition(her: Visitor) -> None:
    """Click the value that is chosen in the tree, and take the condition that is offered."""
    her.page.get_by_role("treeitem", selected=True).locator("[data-pick]").click()
    her.page.get_by_role("dialog", name="Make a condition").get_by_role("button", name="Add condition").press("Enter")


def cell(her: Visitor, machine: str, verdict: str) -> Any:
    """Return the cell of the matrix that says this of the rule that is written."""
    return her.page.locator(".matrix tr.draft").get_by_role("button", name=re.compile(f"{verdict} on {machine}"))


def test_a_rule_is_written_mended_understood_stored_and_counted(service, open_bench):
    her = open_bench()
    write(her, MISTAKEN)
    # The API's problem, under its line, and in words.
    problem = her.page.get_by_role("list", name="Problems").get_by_role("listitem")
    expect(problem).to_contain_text("actions[0].op error: ")
    expect(problem).to_contain_text("there is no such action")
    expect(her.page.locator(".cm-lintRange-error")).to_have_text("set-atribute")
    problem.get_by_role("button", name="Line 5").click()
    her.page.keyboard.type("set-at")
    expect(her.page.get_by_role("option", name="set-attribute")).to_be_visible()
    her.check_accessibility()
    her.page.keyboard.press("Tab")
    her.see("The rule is valid.", ".problems")

    # The address has the machines, and nothing of what was typed.
    assert sorted(re.findall("[0-9a-f-]{36}", her.page.url)) == sorted(service.nodes.values())
    her.page.get_by_role("button", name="Without hpe-dl380-gen11").click()
    expect(her.page).not_to_have_url(re.compile(service.nodes["hpe-dl380-gen11"]))
    assert "many-cpus" not in her.page.url
    her.open(f"#/workbench?nodes={','.join(service.nodes.values())}")

    # Three machines: it fails on one of them, and says why.
    expect(cell(her, "dell-r660", "matches")).to_be_visible()
    expect(cell(her, "hpe-dl380-gen11", "matches")).to_be_visible()
    cell(her, "vm-qemu-bios", "does not match").click()
    her.see("The rule does not match on vm-qemu-bios.", ".verdict")
    # Red is for failures, and nothing has failed: a filled and an empty circle tell one from the other.
    expect(cell(her, "vm-qemu-bios", "does not match")).to_have_text("○")
    expect(cell(her, "dell-r660", "matches")).to_have_text("●")
    expect(her.page.locator(".verdicts .bad")).to_have_count(0)
    her.see("Matches 2 of 3", ".coverage")
    her.see("not greater", ".steps")
    her.see(re.compile(r"\{inventory\[cpu\]\[count\]\} → \d+ integer"), ".steps")
    check_from_the_top(her)
    her.picture("workbench")

    # A click on a value makes a condition of it, and the verdict follows.
    cell(her, "dell-r660", "matches").click()
    her.page.get_by_label("Search in the inventory of dell-r660").fill("manufacturer")
    add_condition(her)
    expect(cell(her, "hpe-dl380-gen11", "does not match")).to_be_visible()
    assert '  - {op: eq, args: {values: ["{inventory[system_vendor][manufacturer]}", Dell Inc.]}}' in text_of(her)
    her.see("/extra/cpus 128", ".verdicts")

    her.page.get_by_role("button", name="Save as new rule").click()
    her.see("many-cpus", ".head")
    rule = re.search("/workbench/([0-9a-f-]{36})", her.page.url).group(1)
    stored = service.client.get(f"{RULES}/{rule}").json()
    assert [condition["op"] for condition in stored["conditions"]] == ["gt", "eq"]

    service.inspect("dell-r660")
    service.inspect("vm-qemu-bios")
    wait_for("statistics", lambda: service.statistics(rule)["considered"] == 2)
    her.page.get_by_role("link", name="Rules", exact=True).click()
    listed = her.page.get_by_role("group", name="Rules in the order in which they run")
    row = listed.get_by_role("row").filter(has_text="many-cpus")
    expect(row.get_by_role("cell").nth(5)).to_have_text("1")
    expect(row.get_by_role("cell").nth(6)).to_have_text("2")
    expect(row).to_contain_text("/extra/cpus")
    her.check_accessibility()
    her.picture("rules", 420)
    assert her.errors == []


def test_a_conflict_of_two_tabs_shows_both_texts_and_loses_nothing(service, open_bench):
    rule = service.create("contested", description="as it was")
    one, other = open_bench(rule), open_bench(rule)
    text = text_of(one)
    write(one, text.replace("as it was", "of one tab"))
    write(other, text.replace("as it was", "of the other tab"))
    one.page.get_by_role("button", name="Save", exact=True).click()
    one.see("Saved.")
    other.page.keyboard.press("Control+S")
    dialog = other.page.get_by_role("dialog", name="Someone has changed this rule")
    expect(dialog.get_by_label("Yours")).to_contain_text("of the other tab")
    expect(dialog.get_by_label("Stored now")).to_contain_text("of one tab")
    other.check_accessibility()
    dialog.get_by_role("button", name="Back to my text").click()
    assert "of the other tab" in text_of(other)
    assert service.client.get(f"{RULES}/{rule}").json()["description"] == "of one tab"

    # Other views, and back: what was typed is still there.
    other.page.get_by_role("link", name="Rules", exact=True).click()
    other.see("contested", "table")
    other.page.go_back()
    expect(other.page.locator(".cm-content")).to_contain_text("of the other tab")
    other.page.get_by_role("button", name="Save", exact=True).click()
    other.page.get_by_role("button", name="Save mine over it").click()
    other.see("Saved.")
    assert service.client.get(f"{RULES}/{rule}").json()["description"] == "of the other tab"
    assert one.errors == other.errors == []


def test_a_rollback_says_what_it_would_do_and_does_it_only_when_that_is_confirmed(service, visit):
    service.create("lasting")
    before = service.client.get(f"{RULES}/revisions?limit=1").json()["revisions"][0]["revision"]
    gone = service.create("passing", conditions=[{"op": "is-true", "args": {"value": "{inventory[cpu][nope]}"}}])
    her = visit(service.url, width=1200)
    her.open("#/rules")
    back = her.page.get_by_role("button", name=f"Roll back to revision {before}", exact=True)
    back.click()
    dialog = her.page.get_by_role("dialog", name=f"Roll back to revision {before}?")
    expect(dialog).to_contain_text("passing")
    dialog.get_by_role("button", name="Cancel").click()
    assert service.client.get(f"{RULES}/{gone}").status_code == 200
    back.click()
    dialog.get_by_role("button", name="Roll back").click()
    expect(her.page.get_by_role("row").filter(has_text="rolled back")).to_be_visible()
    assert service.client.get(f"{RULES}/{gone}").status_code == 404

    # A rule is switched off, by keyboard.
    toggle = her.page.get_by_role("button", name="Disable lasting")
    toggle.focus()
    her.page.keyboard.press("Enter")
    her.page.get_by_role("button", name="Disable", exact=True).press("Enter")
    expect(her.page.get_by_role("button", name="Enable lasting")).to_be_visible()

    # The rule is deleted, unless someone has changed it since the question.
    for is_changed in (True, False):
        her.page.get_by_role("button", name="Delete lasting").click()
        her.see("A rollback to the present revision brings it back.", "dialog")
        her.check_accessibility()
        if is_changed:
            rules = service.client.get(RULES).json()["inspection_rules"]
            rule, = (one["uuid"] for one in rules if one["name"] == "lasting")
            service.client.patch(f"{RULES}/{rule}", json=[{"op": "add", "path": "/priority", "value": 3}])
        her.page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        if is_changed:
            her.see("412", "[role=alert]")
    expect(her.page.get_by_role("button", name="Delete lasting")).to_have_count(0)
    assert service.client.get(f"{RULES}/{rule}").status_code == 404
    assert her.errors == []


def test_a_rule_is_made_of_values_and_forms_and_tried_on_all_nodes_of_a_question(service, open_bench):
    her = open_bench()
    # The start is empty, and says how to begin.
    assert text_of(her).strip() == ""
    her.see("No rule to try yet", ".coverage")
    expect(her.page.get_by_role("button", name="Save as new rule")).to_be_disabled()
    her.check_accessibility()
    search, dialog = her.page.get_by_label("Search in the inventory of"), her.page.get_by_role("dialog")

    # A number, by keyboard: a mistake stands at its field.
    search.fill("physical_mb")
    search.press("ArrowDown")
    her.page.keyboard.press("Enter")
    dialog.get_by_label("Condition", exact=True).select_option("ge")
    dialog.get_by_label("Value (number)").fill("8 GiB")
    dialog.get_by_label("Value (number)").press("Enter")
    expect(dialog.get_by_label("Value (number)")).to_be_focused()
    her.see("must be a number", "dialog")
    her.check_accessibility()
    dialog.get_by_label("Value (number)").fill("16384")
    dialog.get_by_label("Value (number)").press("Enter")
    her.see("The rule has no action yet", ".problems")
    her.see("Matches 2 of 3", ".coverage")

    # One of several texts, with what is true for the machines that match.
    search.fill("manufacturer")
    her.page.get_by_role("treeitem", selected=True).locator("[data-pick]").click()
    dialog.get_by_label("Condition", exact=True).select_option("one-of")
    dialog.get_by_label("Values, separated by commas").fill("HPE, QEMU")
    dialog.get_by_role("button", name="Add condition").click()
    her.see("Matches 1 of 3", ".coverage")
    # An item of a list of texts.
    search.fill("flags")
    her.page.get_by_role("button", name="Make a condition").click()
    expect(dialog.get_by_label("Condition", exact=True)).to_have_value("has")
    dialog.get_by_label("Value (item)").fill("avx512f")
    dialog.get_by_role("button", name="Add condition").click()

    # An action has the fields that the API names, and traits are completed.
    service.client.put("/v1/nodes/dell-r660/traits/CUSTOM_KNOWN").raise_for_status()
    her.page.get_by_role("button", name="Add action").click()
    dialog.get_by_label("Action", exact=True).select_option("set-attribute")
    expect(dialog.get_by_label("value", exact=True)).to_be_visible()
    dialog.get_by_label("Action", exact=True).select_option("add-trait")
    name = dialog.get_by_label("name", exact=True)
    name.fill("custom_k")
    expect(dialog.locator("datalist option")).to_have_attribute("value", "CUSTOM_KNOWN")
    her.check_accessibility()
    name.fill("CUSTOM_MADE")
    name.press("Enter")
    her.see("The rule is valid.", ".problems")
    rule = strict_yaml.load(text_of(her))
    assert [condition["op"] for condition in rule["conditions"]] == ["ge", "one-of", "eq"]
    assert rule["conditions"][0]["args"] == {"values": ["{inventory[memory][physical_mb]}", 16384]}
    assert rule["conditions"][1]["args"]["values"] == ["HPE", "QEMU"]
    assert rule["conditions"][2] == {"op": "eq", "args": {"values": ["{item}", "avx512f"]},
                                     "loop": "{inventory[cpu][flags]}", "multiple": "any"}
    assert rule["actions"] == [{"op": "add-trait", "args": {"name": "CUSTOM_MADE"}}]

    # Traits are completed in the text, too; a question selects the nodes, and names its mistake.
    write(her, "actions:\n  - {op: add-trait, args: {name: CUSTOM_K")
    her.page.keyboard.type("N")
    her.page.get_by_role("option", name="CUSTOM_KNOWN").click()
    her.page.keyboard.type("}}")
    her.see("Matches 3 of 3", ".coverage")
    question = her.page.get_by_role("searchbox", name="Nodes to try the rule on")
    question.fill("name starts")
    question.press("Enter")
    her.see("column", ".coverage [role=alert]")
    question.fill("name = dell-r660")
    question.press("Enter")
    her.see("Matches 1 of 1", ".coverage")
    assert "where=name" in her.page.url
    her.page.get_by_text("1 matches").press("Enter")
    her.page.locator(".coverage").get_by_role("button", name="dell-r660").press("Enter")
    her.see("The rule matches on dell-r660.", ".verdict")
    her.check_accessibility()
    assert her.errors == []


def test_what_machines_and_rules_say_is_text(service, visit):
    service.create("hostile", description=HOSTILE, conditions=[
        {"op": "eq", "args": {"values": ["{plugin_data[site]}", HOSTILE.replace("{", "{{").replace("}", "}}")]}}])
    service.inspect("vm-qemu-bios", site=HOSTILE, **{f"<b>{HOSTILE}": {"x" * 10_000: "\u202e"}})
    her = visit(service.url, width=360, color_scheme="dark")
    her.open("#/rules")
    her.see("<img src=x onerror", "table")
    her.check_accessibility()
    her.open(f"#/workbench?nodes={service.nodes['vm-qemu-bios']}")
    search = her.page.get_by_label("Search in the inventory of vm-qemu-bios")
    search.fill("site")
    her.see("⟨U+202E⟩", ".tree")
    search.press("ArrowDown")
    her.page.keyboard.press("Enter")
    her.see("<img src=x", "dialog")
    her.check_accessibility()
    her.page.keyboard.press("Enter")
    her.see("<img src=x", ".steps li")
    her.see("The rule matches on vm-qemu-bios.", ".verdict")
    her.check_accessibility()
    assert her.page.locator("img").count() == 0
    assert her.errors == []


def test_a_warning_is_mended_by_its_button_and_the_rule_becomes_a_file_that_apply_takes(service, visit):
    her = visit(service.url, width=1500)
    her.open("#/workbench")
    write(her, MISTAKEN.replace("[count]", "[cuont]", 1).replace("atribute", "attribute"))
    her.see("did you mean inventory[cpu][count]?", ".problems")
    her.page.get_by_role("button", name="Write inventory[cpu][count]").first.click()
    her.see("The rule is valid.", ".problems")
    rule = strict_yaml.load(text_of(her))
    assert rule["conditions"][0]["args"]["values"] == ["{inventory[cpu][count]}", 8]

    # As YAML and as JSON, the same rule, which a service takes.
    for suffix in ("yaml", "json"):
        with her.page.expect_download() as found:
            her.page.get_by_role("button", name="Save as file").click()
        assert found.value.suggested_filename == f"many-cpus.{suffix}"
        content = found.value.path().read_text()
        assert strict_yaml.load(content) == [rule]
        her.page.get_by_role("button", name="YAML ⇄ JSON").click()
    her.see("openstack baremetal inspection rule apply many-cpus.json")
    reply = service.client.put(RULES, json={"rules": [rule], "dry_run": True})
    assert reply.status_code == 200, reply.text
    assert her.errors == []


def test_a_run_over_machines_says_how_far_it_is_and_can_be_stopped(service, open_bench):
    her = open_bench()
    write(her, MISTAKEN.replace("atribute", "attribute"))
    expect(cell(her, "hpe-dl380-gen11", "matches")).to_be_visible()
    # Without an answer it is tried again by itself, and what was typed meanwhile stays.
    her.page.route("**/dry_run", lambda route: route.abort())
    write(her, MISTAKEN.replace("atribute", "attribute"))
    her.see("It is also tried again by itself.", ".verdicts [role=alert]")
    her.page.unroute("**/dry_run")
    expect(her.page.locator(".verdicts [role=alert]")).to_have_count(0)
    expect(cell(her, "dell-r660", "matches")).to_be_visible()
    halt = her.page.locator(".progress button")
    expect(halt).to_have_count(0)
    held: list[Any] = []

    def first_only(route: Any) -> None:
        if held or first:
            held.append(route)
        else:
            first.append(route)
            route.continue_()

    for stop in ("button", "Escape"):
        first: list[Any] = []
        held.clear()
        her.page.route("**/dry_run", first_only)
        write(her, MISTAKEN.replace("atribute", "attribute").replace("many-cpus", f"by-{stop}"))
        her.see("1 of 3 machines are tried.", ".progress")
        expect(cell(her, "dell-r660", "matches")).to_be_visible()
        expect(her.page.locator(".matrix [aria-busy]").first).to_be_visible()
        if stop == "button":
            check_from_the_top(her)
            halt.press("Enter")
        else:
            her.page.keyboard.press("Escape")
        expect(her.page.locator("#live")).to_have_text("Stopped. 1 of 3 machines are tried.")
        expect(halt).to_have_text("Try the rest")
        expect(her.page.locator(".matrix [aria-busy]")).to_have_count(0)
        expect(cell(her, "vm-qemu-bios", "does not match")).to_have_count(0)
        check_from_the_top(her)
        her.page.unroute("**/dry_run")
        halt.press("Enter")
        expect(cell(her, "vm-qemu-bios", "does not match")).to_be_visible()
        expect(cell(her, "hpe-dl380-gen11", "matches")).to_be_visible()
        expect(halt).to_have_count(0)
    assert her.errors == []


def test_what_others_write_is_said_by_the_api_and_shown(service, visit):
    action = {"op": "set-attribute", "args": {"path": "/extra/fought-over", "value": 1}}
    for name in ("fighter-1", "fighter-2"):
        service.create(name, actions=[action])
    her = visit(service.url, width=1400)
    her.open("#/rules?show=shared")
    for name, other in (("fighter-1", "fighter-2"), ("fighter-2", "fighter-1")):
        expect(her.page.get_by_role("row", name=re.compile(f"{name}.*also written by {other}"))).to_be_visible()
    expect(her.page.get_by_role("row").filter(has_text=re.compile("created rule fighter-2"))).to_be_visible()
    assert her.errors == []


def test_what_is_typed_outlives_the_service_and_all_views_come_back(tmp_path, visit):
    port = free_port()
    text = MISTAKEN.replace("atribute", "attribute")
    with standalone(tmp_path, port=port) as (process, url):
        her = visit(url, width=1500)
        her.page.clock.install()
        her.open("#/workbench")
        write(her, text)
        her.see("The rule is valid.", ".problems")
        process.terminate()
        write(her, text.replace("many-cpus", "typed-in-between"))
        her.see("The service does not answer.", ".verdicts [role=alert]")
        her.page.keyboard.press("Control+S")
        expect(her.page.locator(".workbench .notice.bad")).to_have_count(2)
        # Also the other views, of which one has never been loaded.
        for name in ("Rules", "Templates"):
            her.page.get_by_role("link", name=name, exact=True).click()
            expect(her.page.get_by_role("button", name="Try again").first).to_be_visible()
    with standalone(tmp_path, port=port, name="again"):
        # It comes back by itself; the view that was left before it does not ask any more.
        sent = len(her.sent)
        her.page.clock.fast_forward(60_000)
        her.see("No template.")
        expect(her.page.get_by_role("alert")).to_have_count(0)
        assert not [address for address in her.sent[sent:] if RULES in address]
        her.page.get_by_role("link", name="Rules", exact=True).click()
        her.see("There are no rules yet.")
        her.page.get_by_role("link", name="Workbench", exact=True).click()
        her.see("The rule is valid.", ".problems")
        assert "name: typed-in-between" in text_of(her)
        her.page.get_by_role("button", name="Save as new rule").click()
        her.see("typed-in-between", ".head")
        rule, = httpx.get(f"{url}{RULES}", **CLIENT).json()["inspection_rules"]
        assert rule["name"] == "typed-in-between"


def test_numbers_that_javascript_would_change_stay_as_they_are_written(service, visit):
    """Integers above 2^53, floats without a fraction and small ones: from the API to the page, and back."""
    service.inspect("vm-qemu-bios", big=9007199254740993, half=[0.5, 3.0])
    values = ["{plugin_data[big]}", 9007199254740993]
    written = {"/extra/id": 1234567890123456789, "/extra/ratio": 2.0, "/extra/most": -1e22, "/extra/least": 1e-7}
    actions = [{"op": "set-attribute", "args": {"path": path, "value": value}} for path, value in written.items()]
    rule = service.create("numbers", description="before", actions=actions,
                          conditions=[{"op": "eq", "args": {"values": values}}])

    def stored(uuid: str) -> str:
        return service.client.get(f"{RULES}/{uuid}?fields=conditions,actions").text.split('"links"')[0]

    before = stored(rule)
    her = visit(service.url, width=1500)
    her.open(f"#/workbench/{rule}?nodes={service.nodes['vm-qemu-bios']}")
    her.see("The rule matches on vm-qemu-bios.", ".verdict")
    her.see("{plugin_data[big]} → 9007199254740993 integer", ".steps")
    her.see("/extra/id 1234567890123456789", ".verdicts")
    her.see("/extra/ratio 2.0", ".verdicts")
    # Unchanged, it is not sent; of what is changed, only that changes.
    for text in ("after", "as JSON"):
        her.page.keyboard.press("Control+S")
        if text == "as JSON":
            her.page.get_by_role("button", name="YAML ⇄ JSON").click()
        write(her, re.sub("before|after", text, text_of(her)))
        her.page.keyboard.press("Control+S")
        wait_for("the rule", lambda text=text: service.client.get(f"{RULES}/{rule}").json()["description"] == text)
        her.see("Saved.")
        assert stored(rule) == before
    assert not [sent for sent in her.sent if f"{RULES}/{rule}" in sent and '"before"' in sent]

    # What is typed, as `apply` reads it, with a condition by a click in the tree.
    search = her.page.get_by_label("Search in the inventory of vm-qemu-bios")
    for sought in ("9007199254740993", "3.0"):
        search.fill(sought)
        expect(her.page.get_by_role("treeitem", selected=True).locator("[data-pick]")).to_have_text(sought)
        expect(her.page.get_by_label("The chosen value")).to_have_text(sought)
    her.open(f"#/workbench?nodes={service.nodes['vm-qemu-bios']}")
    text = """name: typed-numbers
actions:
  - op: set-attribute
    args: {path: /extra/typed, value: [9007199254740993, 2.0, -0.0, 1_0.50, 1.0e3, 0x20000000000001, 1e3]}
"""
    write(her, text)
    search.fill("9007199254740993")
    add_condition(her)
    her.see("The rule matches on vm-qemu-bios.", ".verdict")
    her.page.get_by_role("button", name="Save as new rule").click()
    her.see("typed-numbers", ".head")
    typed = service.client.get(f"{RULES}?fields=name,conditions,actions").text.partition('"typed-numbers"')[2]
    assert "[9007199254740993,2.0,-0.0,10.5,1000.0,9007199254740993,\"1e3\"]" in typed
    assert '"{plugin_data[big]}",9007199254740993]' in typed
    assert her.errors == []


@pytest.mark.long
def test_machines_are_chosen_by_keyboard_and_bad_ones_say_why_they_are(service, visit):
    node = service.client.post("/v1/nodes", json={"name": "silent", "driver": "fake-hardware"}).json()["uuid"]
    her = visit(service.url, width=1500)
    her.open(f"#/workbench?nodes={node}")
    her.see("This node has not been inspected yet")
    write(her, MISTAKEN.replace("atribute", "attribute").replace("8]", "1]"))
    many = {"nodes": [{"uuid": f"{number:08}", "name": f"n-{number}"} for number in range(201)]}
    her.page.route("**/v1/nodes?fields=uuid,name,*", lambda route: route.fulfill(json=many))
    her.page.locator("h1").click()
    her.page.keyboard.press("m")
    dialog = her.page.get_by_role("dialog", name="Machines to try the rule on")
    expect(dialog).to_contain_text("Shows the first 200 of 201: search for the others.")
    dialog.get_by_role("searchbox").fill("n-200")
    expect(dialog.get_by_role("checkbox", name="n-200")).to_be_visible()
    dialog.get_by_role("searchbox").fill("dell")
    sample = dialog.get_by_role("checkbox", name="dell-r660", exact=True)
    expect(sample).to_be_visible()
    sample.press("Space")
    dialog.get_by_text("Paste a report").press("Enter")
    pasted = dialog.get_by_label("A report or an inventory as JSON")
    pasted.fill("{")
    dialog.get_by_role("button", name="Add", exact=True).press("Enter")
    expect(dialog.get_by_role("alert")).to_contain_text("This is not JSON")
    assert pasted.input_value() == "{"
    pasted.fill(json.dumps({"cpu": {"count": 3, "architecture": "x86_64"}, "interfaces": [
        {"name": "eth0", "mac_address": "52:54:00:00:00:09", "ipv4_address": "192.0.2.9"}]}))
    dialog.get_by_role("button", name="Add", exact=True).press("Enter")
    her.check_accessibility()
    dialog.get_by_role("button", name="Try on these").press("Enter")
    expect(cell(her, "dell-r660", "matches")).to_be_visible()
    expect(cell(her, "pasted 1", "matches")).to_be_visible()
    her.see("Without a result: silent", "main > .verdicts")
    cell(her, "pasted 1", "matches").press("Enter")
    her.see("{inventory[cpu][count]} → 3 integer", ".steps")
    her.page.get_by_label("Compare with the stored rules").press("Space")
    her.see(re.compile("Compared with the stored rules.*cpus"), ".verdicts section")
    assert her.errors == []
