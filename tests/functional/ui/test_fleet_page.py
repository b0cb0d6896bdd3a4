"""The fleet in a browser: one search, questions, the fleet at a glance, failures by cause, and changes by others."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any

import pytest

from ironic_rules import samples
from tests.functional.ui.conftest import playwright

expect = playwright.expect
BARE_UUIDS = "() => document.querySelector('main').innerText.match(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g)"
ROWS = ".list tbody tr"


@contextlib.contextmanager
def enrolled(demo: Any, *names: str) -> Iterator[None]:
    """Let the demo have more nodes, of which nothing is known."""
    made = [demo.client.post("/v1/nodes", json={"driver": "fake-hardware", "name": name}).raise_for_status().json()
            for name in names]
    yield
    for node in made:
        demo.client.delete(f"/v1/nodes/{node['uuid']}").raise_for_status()


@pytest.mark.slow
def test_one_search_finds_machines_rules_and_traits_on_every_page(demo, visit):
    port = demo.client.get("/v1/ports?node=demo-dell-r660&fields=address").json()["ports"][0]["address"]
    her = visit(demo.url)
    keys = her.page.keyboard
    her.open("#/rules")
    keys.press("/")
    search = her.page.get_by_role("combobox", name="Search")
    expect(search).to_be_focused()
    # By another notation than the API's, and Enter before the answer is there.
    keys.type(port.replace(":", "-").upper())
    keys.press("Enter")
    expect(her.page.get_by_role("heading", level=1)).to_have_text("demo-dell-r660")
    her.settle()

    # While one types in a field, too; arrows go to another result.
    her.open("#/workbench")
    her.page.get_by_role("textbox", name="Rule, as YAML or JSON").focus()
    keys.press("Control+k")
    expect(search).to_be_focused()
    keys.type("demo-")
    expect(her.page.get_by_role("dialog").get_by_role("option").first).to_have_attribute("aria-selected", "true")
    her.check_accessibility()
    second = her.page.get_by_role("dialog").get_by_role("option").nth(1).locator("span").first.inner_text()
    keys.press("ArrowDown")
    keys.press("Enter")
    expect(her.page.get_by_role("heading", level=1)).to_have_text(second)

    # By mouse: a trait leads to its nodes, and what is nowhere is said.
    her.page.get_by_role("button", name="Search", exact=True).click()
    search.fill("no-such-thing")
    expect(her.page.get_by_role("dialog")).to_contain_text("Nothing found.")
    search.fill("vendor_dell")
    her.page.get_by_role("dialog").get_by_role("option").filter(has_text="CUSTOM_VENDOR_DELL").click()
    expect(her.page.get_by_role("link", name="Remove filter traits has CUSTOM_VENDOR_DELL")).to_be_visible()
    expect(her.page.locator(ROWS).filter(has_text="demo-dell-r660")).to_have_count(1)
    assert her.errors == []


@pytest.mark.slow
def test_a_question_is_completed_corrected_kept_by_the_address_and_taken_back(demo, visit):
    her = visit(demo.url)
    keys = her.page.keyboard
    her.open("#/fleet")
    field = her.page.get_by_role("combobox", name="Filter")
    field.focus()
    keys.type("vend")
    keys.press("ArrowDown")
    keys.press("Enter")
    expect(field).to_have_value("vendor ")
    keys.type("=")
    keys.type(" del")
    her.page.get_by_role("option", name="Dell Inc.").click()
    expect(field).to_have_value('vendor = "Dell Inc." ')
    her.check_accessibility()
    keys.press("Enter")
    expect(her.page.locator(ROWS)).to_have_count(2)

    # Names that the service does not know: the place, and the nearest name.
    field.fill("memry_gib > 300")
    keys.press("Enter")
    her.see("column 1: there is no fact or field of nodes with this name", ".notice")
    expect(field).to_have_value("memry_gib > 300")
    her.page.get_by_role("button", name="Use memory_gib").click()
    keys.press("Enter")
    expect(her.page.locator(ROWS)).to_have_count(1)
    her.see("1 of 6 nodes")
    expect(her.page.get_by_role("group", name="Vendor", exact=True).get_by_role("link")).to_have_count(1)

    address = her.page.url.partition("/ui/")[2]
    her.page.goto("about:blank")
    her.open(address)
    expect(her.page.locator(ROWS)).to_have_count(1)
    her.page.get_by_role("link", name="Remove filter memory_gib > 300").click()
    expect(her.page.locator(ROWS)).to_have_count(2)
    # Either of two: in parentheses beside the other part.
    field.fill("memory_gib > 300 or memory_gib < 16")
    keys.press("Enter")
    expect(her.page.get_by_role("link", name="Remove filter (memory_gib > 300 or memory_gib < 16)")).to_be_visible()
    expect(her.page.locator(ROWS)).to_have_count(1)
    her.page.get_by_role("link", name="Clear").click()
    expect(her.page.locator(ROWS)).to_have_count(6)
    # A word alone is a part of a name.
    field.fill("hpe")
    keys.press("Enter")
    expect(her.page.locator(ROWS)).to_have_count(1)
    assert her.errors == []


@pytest.mark.slow
def test_the_fleet_at_a_glance_is_narrowed_by_clicks_and_has_the_columns_that_one_wants(demo, visit):
    with enrolled(demo, "rack-10", "rack-9", "rack-2"):
        her = visit(demo.url, width=1440, height=1000)
        her.open("#/fleet")
        her.see("9 nodes")
        day = "Inspections of the last 24 hours"
        expect(her.page.get_by_role("img", name=day)).to_be_visible()
        expect(her.page.get_by_role("table", name=day).locator("tbody tr")).to_have_count(24)
        her.check_accessibility()

        her.page.get_by_role("button", name="Name").click()
        racks = her.page.locator(f"{ROWS} td.name").filter(has_text="rack-")
        expect(racks).to_have_text(["rack-2", "rack-9", "rack-10"])
        age = her.page.locator(f"{ROWS} time").first
        expect(age).to_have_text(re.compile(r"^\d+ (s|min|h) ago$"))
        expect(age).to_have_attribute("title", re.compile(r"\d\d:\d\d"))

        her.page.get_by_role("button", name="Columns …").click()
        for name in ("memory_gib", "vendor"):
            her.page.get_by_role("dialog").get_by_label(name, exact=False).first.check()
        her.page.get_by_role("dialog").get_by_role("button", name="Show").click()
        expect(her.page.locator(ROWS).filter(has_text="demo-dell-r660")).to_contain_text("Dell Inc.")
        her.page.get_by_role("button", name="memory_gib").press("Enter")
        expect(her.page.get_by_role("columnheader", name="memory_gib")).to_have_attribute("aria-sort", "ascending")
        expect(her.page.locator(ROWS).first).to_contain_text("demo-vm-qemu-bios")

        # The bar of states, a facet, and a column of the histogram; the second click takes it back.
        her.page.get_by_role("group", name="Nodes by state").get_by_role("link", name="3 enroll").click()
        expect(her.page.locator(ROWS)).to_have_count(3)
        her.page.get_by_role("link", name="Clear").click()
        vendor = her.page.get_by_role("group", name="Vendor", exact=True).get_by_role("link", name="Dell Inc.")
        vendor.click()
        expect(her.page.locator(ROWS)).to_have_count(2)
        expect(vendor).to_have_attribute("aria-current", "true")
        vendor.press("Enter")
        expect(her.page.locator(ROWS)).to_have_count(9)
        memory = her.page.get_by_role("group", name="Memory", exact=True)
        memory.get_by_role("link", name=re.compile("^8: 1 nodes")).click()
        expect(her.page.locator(ROWS)).to_have_count(1)
        expect(her.page.get_by_role("link", name="Remove filter memory_gib = 8")).to_be_visible()
        assert her.errors == []


@pytest.mark.slow
def test_failures_have_a_cause_by_name_which_lists_its_machines(demo, visit):
    rule = demo.client.post("/v1/inspection_rules", json={"name": "enough-memory", "conditions": [
        {"op": "lt", "args": ["{inventory[memory][physical_mb]}", 9000000]}], "actions": [
        {"op": "fail", "args": {"msg": "only {inventory[memory][physical_mb]} MB in {node[name]}"}}]},
        ).raise_for_status().json()["uuid"]
    machines = ("dell-r660", "hpe-dl380-gen11")
    for name in machines:
        demo.inspect(f"demo-{name}", samples.inventory(name))
    her = visit(demo.url, width=1440, height=1000)
    her.open("#/fleet")
    causes = her.page.get_by_role("region", name="Failures by cause")
    # One cause, although each message has other values.
    one = causes.get_by_role("link", name="enough-memory")
    expect(one).to_contain_text("only {inventory[memory][physical_mb]} MB in {node[name]}")
    expect(one.locator(".num")).to_have_text("2")
    expect(causes.get_by_role("link", name="hook ramdisk-error")).to_be_visible()
    assert her.page.evaluate(BARE_UUIDS) is None
    her.check_accessibility()
    one.press("Enter")
    expect(her.page.locator(ROWS)).to_have_count(2)
    her.see("enough-memory only {inventory", ".common")
    expect(her.page.locator(f"{ROWS} td.long").first).to_have_text(re.compile(
        r"Inspection rule enough-memory failed at /actions/0: only \d+ MB in demo-"))
    # The facets count these machines, and an operation on them says what they are.
    expect(her.page.get_by_role("group", name="State", exact=True).locator(".num")).to_have_text("2")
    her.page.get_by_role("button", name="Dry run …").click()
    her.page.get_by_role("dialog").get_by_role("button", name="Dry run").click()
    her.see("finished")
    her.see("one cause of failure")
    assert her.page.evaluate(BARE_UUIDS) is None
    her.page.get_by_role("link", name="All operations").click()
    her.settle()
    assert her.page.evaluate(BARE_UUIDS) is None
    assert her.errors == []

    demo.client.delete(f"/v1/inspection_rules/{rule}").raise_for_status()
    for name in machines:
        demo.inspect(f"demo-{name}", samples.inventory(name))


@pytest.mark.slow
def test_what_others_change_appears_while_one_looks_and_nothing_jumps(demo, visit):
    her = visit(demo.url, width=1440, height=700)
    her.page.clock.install()
    her.open("#/fleet")
    asked: list[str] = []
    her.page.on("response", lambda response: asked.append(str(response.status)))
    focused = her.page.locator(".list").get_by_role("link", name="demo-dell-r660")
    focused.focus()
    her.page.evaluate("() => scrollTo(0, document.documentElement.scrollHeight)")
    top = focused.evaluate("(link) => link.getBoundingClientRect().top")
    # While nothing changes, the service only says so.
    her.page.clock.fast_forward(6_000)
    her.page.wait_for_function("() => true")
    with enrolled(demo, "made-by-another"):
        her.page.clock.fast_forward(15_000)
        expect(her.page.locator(ROWS).filter(has_text="made-by-another")).to_be_visible()
        her.see("7 nodes")
        expect(focused).to_be_focused()
        assert abs(focused.evaluate("(link) => link.getBoundingClientRect().top") - top) < 2
    her.page.clock.fast_forward(15_000)
    expect(her.page.locator(ROWS).filter(has_text="made-by-another")).to_have_count(0)
    assert asked.count("304") > 0
    assert her.errors == []
