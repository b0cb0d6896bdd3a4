"""The page in a browser: from the first minutes of a newcomer to machines that send scripts."""

from __future__ import annotations

import base64
import datetime
import json
import re
import time
from typing import Any

import bcrypt
import pytest

from ironic_rules import samples
from tests.functional.processes import free_port, standalone
from tests.functional.rows import identity
from tests.functional.ui.conftest import LARGEST, PATIENCE_MS, playwright

expect = playwright.expect
#: Texts that a machine may send, or a program that pretends to be one; nothing of it may be executed.
HOSTILE = [
    "<img src=x onerror=\"console.error('executed')\">", "</script><script>console.error('executed')</script>",
    "javascript:console.error('executed')", "\"><svg onload=console.error('executed')>", "{{constructor}}",
    "\u202egnp.exe\u2066", "\u0000\u0007\u001b[31m", "\U0001f9d1\u200d\U0001f680", "x" * 10_000,
]
CAME = "[aria-label='Changes']"
TOO_WIDE = """() => document.documentElement.scrollWidth <= innerWidth ? []
    : [...document.querySelectorAll("main *, header *")]
    .filter((each) => each.getBoundingClientRect().right > innerWidth && !each.parentElement.closest(".scroll"))
    .map((each) => each.outerHTML.slice(0, 200))"""
SECRET = "Winter-2026-secret"
#: Notes what moves by itself.
SHIFTS = """window.moved = [];
new PerformanceObserver((list) => moved.push(...list.getEntries().map(({value, sources}) => ({value,
    what: sources.map(({node}) => node?.outerHTML?.slice(0, 100))}))))
    .observe({type: "layout-shift", buffered: true});"""


def report_of(name: str) -> dict:
    """Return what the machine of a node of the demo sends."""
    return samples.inventory(name)


@pytest.mark.slow
def test_a_guide_leads_from_view_to_view_can_be_skipped_and_does_not_come_back(demo, visit):
    her = visit(demo.link.partition("/ui/")[0])
    her.page.goto(demo.link)
    guide = her.page.get_by_role("complementary", name="A first rule")
    expect(guide).to_contain_text("1 of 5: See why")
    her.see("no disk is suitable as root device", "#why")
    her.check_accessibility()

    # By keys alone: the next step is where it is done, and a step back, too.
    guide.get_by_role("button", name="Next step").focus()
    her.page.keyboard.press("Enter")
    expect(guide).to_contain_text("2 of 5: Click a value")
    expect(her.page.get_by_role("textbox", name="Rule, as YAML or JSON")).to_be_visible()
    her.see("demo-ramdisk-error")
    her.settle()
    her.check_accessibility()
    guide.get_by_role("button", name="Step back").click()
    expect(her.page.get_by_role("heading", name="demo-ramdisk-error", level=1)).to_be_visible()
    for title in ("Click a value", "Choose what happens", "Save", "Inspect"):
        guide.get_by_role("button", name="Next step").click()
        expect(guide).to_contain_text(title)
    expect(her.page.get_by_role("heading", name="demo-ramdisk-error", level=1)).to_be_visible()
    guide.get_by_role("button", name="Step back").click()
    guide.get_by_role("button", name="Skip the guide").click()
    expect(guide).to_be_hidden()

    # It does not come back, not by its link either; beside the reason is the workbench.
    her.page.goto("about:blank")
    her.page.goto(demo.link)
    her.see("no disk is suitable as root device", "#why")
    expect(guide).to_be_hidden()
    her.page.get_by_role("button", name="Write a rule").click()
    expect(her.page.get_by_role("textbox", name="Rule, as YAML or JSON")).to_be_visible()
    expect(guide).to_be_hidden()
    assert her.errors == []


@pytest.mark.slow
def test_a_rule_is_written_at_the_machine_that_failed_which_then_turns_green(demo, visit):
    her = visit(demo.link.partition("/ui/")[0], width=1500, height=950)
    her.page.goto(demo.link)
    guide = her.page.get_by_role("complementary", name="A first rule")
    her.see("inspect failed", ".head")
    guide.get_by_role("button", name="Next step").click()
    her.page.get_by_role("textbox", name="Rule, as YAML or JSON").wait_for()
    her.settle()

    # A value, clicked, is the condition; the rest is typed.
    her.page.get_by_role("textbox", name="Rule, as YAML or JSON").focus()
    her.page.keyboard.press("Control+A")
    her.page.keyboard.insert_text(
        "name: my-first-rule\nconditions: []\nactions:\n  - {op: add-trait, args: {name: CUSTOM_FIRST}}\n")
    her.page.get_by_label("Search in the inventory of").fill("architecture")
    her.page.get_by_role("treeitem", selected=True).locator("[data-pick]").click()
    her.page.get_by_role("button", name="Add condition").press("Enter")
    her.see("\"x86_64\"", ".steps")
    her.see("CUSTOM_FIRST", ".verdicts")
    her.check_accessibility()
    her.page.get_by_role("button", name="Save as new rule").click()
    her.see("my-first-rule", ".head")
    her.see("Saved. The next inspections run it.", "main .notice.good")
    expect(her.page.get_by_role("button", name="Saved", exact=True)).to_be_disabled()

    # The guide knows that the rule is saved, and ends with it.
    expect(guide).to_contain_text("4 of 5: Saved")
    guide.get_by_role("button", name="Next step").click()
    her.page.get_by_role("button", name="Inspect again").focus()
    her.page.keyboard.press("Enter")
    her.see("It is rebooted into the ramdisk", "dialog")
    her.check_accessibility()
    her.page.keyboard.press("Escape")
    expect(her.page.get_by_role("button", name="Inspect again")).to_be_focused()
    her.page.keyboard.press("Enter")
    her.page.get_by_role("dialog").get_by_role("button", name="Inspect", exact=True).click()
    her.see("manageable", ".head .good")
    expect(her.page.locator("#live")).to_have_text("demo-ramdisk-error is manageable")
    expect(her.page.locator("#why")).to_have_count(0)
    newest = her.page.locator(".timeline > li").first
    expect(newest).to_contain_text("finished")
    expect(newest.get_by_role("link", name="my-first-rule")).to_be_visible()
    given = her.page.get_by_role("list", name="Traits").get_by_role("listitem").filter(has_text="CUSTOM_FIRST")
    expect(given.get_by_role("link", name="my-first-rule")).to_be_visible()
    guide.get_by_role("button", name="Done").click()
    her.check_accessibility()
    # The statistics contain the counts of this second.
    her.page.get_by_role("link", name="Rules", exact=True).click()
    counted = her.page.get_by_role("row").filter(has_text="my-first-rule").first.locator("td.num")
    expect(counted).to_have_text([re.compile(r"\d+"), "0", "1", "1", "0"])
    her.open("#/fleet")
    her.see("No node has failed.", "section:has-text('Failures by cause')")
    assert her.errors == []

    rule, = (rule for rule in demo.client.get("/v1/inspection_rules").json()["inspection_rules"]
             if rule["name"] == "my-first-rule")
    demo.client.delete(f"/v1/inspection_rules/{rule['uuid']}").raise_for_status()
    demo.inspect("demo-ramdisk-error", report_of("ramdisk-error"))  # as the other tests expect it


@pytest.mark.slow
def test_a_service_that_is_busy_is_waited_for_and_a_wrong_clock_shows_right_ages(demo, visit):
    refused = {"inventory": {"interfaces": [{"name": "eth0", "mac_address": "52:54:00:77:77:09"}]}}
    assert demo.client.post("/v1/continue_inspection", json=refused).status_code == 404
    her = visit(demo.url)
    # An hour fast.
    her.page.clock.install(time=datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=1))
    asked: list[str] = []

    def busy(route: Any) -> None:
        asked.append(route.request.url)
        route.fulfill(status=503, headers={"Retry-After": "7", "Content-Type": "application/json"},
                      body=json.dumps({"error_message": json.dumps({"faultstring": "No conductor is alive."})}))

    her.page.route("**/v1/nodes?*", busy)
    her.open("#/fleet")
    her.see("503 No conductor is alive.", ".list [role=alert]")
    her.see("The service asks to wait 7 s.", ".list [role=alert]")
    expect(her.page.locator("section:has-text('Rejected reports') li").first).to_contain_text(
        re.compile(r", \d+ (s|min) ago"))
    her.check_accessibility()
    her.page.unroute("**/v1/nodes?*")
    her.page.clock.fast_forward(7_500)
    expect(her.page.locator(".list tbody tr").first).to_be_visible()
    expect(her.page.locator(".list [role=alert]")).to_have_count(0)

    # A view that is not requested again and again comes back, too, and not before it was asked to.
    her.page.route("**/v1/flavors/detail?*", busy)
    her.page.get_by_role("link", name="Templates", exact=True).click()
    flavors = her.page.get_by_role("region", name="Flavors")
    expect(flavors.get_by_role("alert")).to_contain_text("It is also tried again by itself.")
    asked.clear()
    her.page.clock.fast_forward(5_000)
    her.page.get_by_role("button", name="Try again").click()
    expect(flavors.get_by_role("alert")).to_be_visible()
    assert len(asked) == 1
    her.page.unroute("**/v1/flavors/detail?*")
    her.page.clock.fast_forward(7_500)
    expect(flavors.get_by_role("alert")).to_have_count(0)
    assert her.errors == []


def test_a_newcomer_is_led_to_the_machine_that_failed_and_to_its_reason(own_demo, visit):
    # The link that the demo prints opens on the reason.
    her = visit(own_demo.link.partition("/ui/")[0])
    her.page.goto(own_demo.link)
    her.see("no disk is suitable as root device", "#why")
    her.see("Hook ramdisk-error")
    # The id of the message says what to do.
    with her.context.expect_page() as opened:
        her.page.locator("#why").get_by_role("link", name="IR-1030").click()
    expect(opened.value.locator(":target")).to_contain_text("Inspection hook {hook} failed")
    opened.value.close()
    her.open("#/node/nobody")
    expect(her.page.get_by_role("alert").get_by_role("link", name="IR-1012")).to_be_visible()

    # The same by way of the fleet, among all machines.
    her.page.get_by_role("link", name="Fleet").click()
    her.see("6 nodes")
    her.see("no disk is suitable", "section:has-text('Failures by cause')")
    her.check_accessibility()
    her.picture("fleet")
    her.page.locator(".counts").get_by_role("link", name=re.compile("1 inspect failed")).click()
    expect(her.page.locator(".list tbody tr")).to_have_count(1)
    her.page.locator(".list").get_by_role("link", name="demo-ramdisk-error").click()
    her.see("Why it failed", "#why")
    her.settle()
    her.check_accessibility()
    her.picture("node", 700)

    # The inventory as a tree: what the machine has instead of disks.
    her.page.get_by_role("button", name="Search the inventory").click()
    expect(her.page.get_by_label("Search in the inventory")).to_be_focused()
    her.page.keyboard.type("disks")
    expect(her.page.get_by_role("treeitem", selected=True)).to_contain_text("disks: []")
    her.picture("inventory")
    assert her.errors == []


@pytest.mark.slow
def test_a_machine_that_has_changed_shows_what_came_and_went_and_which_rules_matched(demo, visit):
    changed = report_of("dell-r660")
    changed["inventory"]["memory"]["physical_mb"] //= 2
    lost = changed["inventory"]["disks"].pop()
    demo.inspect("demo-dell-r660", changed)

    her = visit(demo.url, color_scheme="dark")
    her.open("#/node/demo-dell-r660")
    newest = her.page.locator(".timeline > li").first
    expect(newest).to_contain_text("/properties/memory_mb")
    expect(newest).to_contain_text("commit")
    given = her.page.get_by_role("list", name="Traits").get_by_role("listitem").filter(has_text="CUSTOM_VENDOR_DELL")
    expect(given).to_contain_text("Dell server")
    her.page.get_by_label("Compare with").select_option(index=2)
    her.see("Changes between two reports")
    her.see(lost["serial"], CAME + " tr:has-text('went')")
    her.see("physical_mb", CAME + " tr:has-text('Memory')")
    her.check_accessibility()
    her.page.locator(CAME).scroll_into_view_if_needed()
    her.picture("versions")
    assert her.errors == []


@pytest.mark.slow
def test_rules_and_nodes_have_names_and_lists_are_lists_wherever_they_are_told(demo, visit):
    rule = demo.client.post("/v1/inspection_rules", json={"description": "no small machines", "actions": [
        {"op": "fail", "args": {"msg": "too small:\n* one disk\n* one NIC"}}]}).raise_for_status().json()["uuid"]
    demo.inspect("demo-dell-r660", report_of("dell-r660"))
    her = visit(demo.url)
    bare = "() => document.querySelector('main').innerText.match(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g)"
    # The same name, by its link, in all places where the API has the UUID; and no mark of a line's end.
    her.open("#/fleet")
    expect(her.page.locator(".list").get_by_role("link", name="no small machines").first).to_be_visible()
    for place in ("section:has-text('Failures by cause')", ".list"):
        her.see("too small: one disk; one NIC", place)
    assert her.page.evaluate(bare) is None
    her.page.get_by_role("button", name="Dry run …").click()
    her.page.get_by_role("dialog").get_by_role("button", name="Dry run").click()
    her.see("finished")
    her.page.locator("details[data-group] summary").first.press("Enter")
    expect(her.page.locator(".names").get_by_role("link", name=re.compile("^demo-")).first).to_be_visible()
    her.open("#/rules")
    her.see("created rule no small machines", "section:has-text('Revisions')")
    assert her.page.evaluate(bare) is None
    her.open("#/node/demo-dell-r660")
    for place in ("#why", ".timeline > li"):
        expect(her.page.locator(place).first.get_by_role("link", name="no small machines").first).to_be_visible()
        expect(her.page.locator(place).first.locator(".reasons li").first).to_have_text("one disk")
    assert "\\n" not in her.page.locator("#why").inner_text()
    # Rules that ran before the one that failed.
    failed = her.page.locator(".timeline > li").first
    expect(failed).to_contain_text("nothing of what these rules did was saved")
    expect(failed.get_by_role("columnheader", name="Not saved")).to_be_visible()
    her.page.locator("#why").get_by_role("link", name="no small machines").focus()
    her.page.keyboard.press("Enter")
    expect(her.page.get_by_role("table", name="Rules in the order").locator("tbody tr")).to_have_count(1)
    assert her.errors == []
    demo.client.delete(f"/v1/inspection_rules/{rule}").raise_for_status()
    demo.inspect("demo-dell-r660", report_of("dell-r660"))


@pytest.mark.slow
def test_reasons_of_failures_follow_though_their_numbers_stay(demo, visit):
    her = visit(demo.url)
    her.page.clock.install()
    her.open("#/fleet")
    reasons = "section:has-text('Failures by cause')"
    her.see("no disk is suitable", reasons)
    demo.inspect("demo-ramdisk-error", {**report_of("ramdisk-error"), "error": "the fans are missing"})
    her.page.clock.fast_forward(20_000)
    her.see("the fans are missing", reasons)
    demo.inspect("demo-ramdisk-error", report_of("ramdisk-error"))
    her.page.clock.fast_forward(20_000)
    her.see("no disk is suitable", reasons)


@pytest.mark.slow
def test_each_reason_leads_to_its_nodes_and_nothing_moves_while_views_load(demo, visit):
    her = visit(demo.url)
    her.page.add_init_script(SHIFTS)
    # The first time also loads the modules.
    for _ in range(2):
        for address in ("#/fleet", "#/node/demo-dell-r660", "#/rules", "#/templates", "#/workbench"):
            her.page.goto("about:blank")
            her.open(address)
            moved = her.page.evaluate("() => moved.filter(({value}) => value > 0.01)")
            assert moved == [], f"{address}: {moved}"
    her.open("#/fleet")
    her.page.locator("section:has-text('Failures by cause')").get_by_role("link", name="ramdisk-error").click()
    her.see("no disk is suitable", ".common")
    expect(her.page.locator(".list tbody tr")).to_have_count(1)
    her.check_accessibility()
    her.page.get_by_role("button", name="Dry run …").click()
    her.page.get_by_role("dialog").get_by_role("button", name="Dry run").click()
    her.see("1 of 1")
    her.see("finished")
    address = her.page.url.partition("/ui/")[2]
    her.page.goto("about:blank")
    her.open(address)
    assert her.page.evaluate("() => moved.filter(({value}) => value > 0.01)") == []
    assert her.errors == []


@pytest.mark.slow
def test_what_machines_send_is_text_and_secrets_are_nowhere(demo, visit):
    name = "demo-vm-qemu-bios"
    demo.client.patch(f"/v1/nodes/{name}", json=[
        {"op": "add", "path": "/description", "value": HOSTILE[0]},
        {"op": "add", "path": "/extra/note", "value": HOSTILE[1]},
        {"op": "add", "path": "/driver_info/ipmi_password", "value": SECRET}]).raise_for_status()
    sent = report_of("vm-qemu-bios")
    sent["inventory"]["system_vendor"] |= {"product_name": HOSTILE[0], "serial_number": HOSTILE[5]}
    sent["inventory"]["hostile"] = {text[:200]: text for text in HOSTILE if "\0" not in text}
    # As large as the service accepts it, with 150,000 lines.
    sent["inventory"]["many"] = [[number, HOSTILE[0]] for number in range(50_000)]
    sent["inventory"]["bmc"] = {"ipmi_password": SECRET}
    sent["error"] = "".join(text for text in HOSTILE if "\0" not in text)
    sent["inventory"]["long"] = ["y" * 10_000] * ((LARGEST - len(json.dumps(sent)) - 10_000) // 10_005)
    # Rules are tried on what was processed last, which is not what has failed.
    demo.inspect(name, sent | {"error": None})
    demo.inspect(name, sent)

    her = visit(demo.url)
    her.open(f"#/node/{name}")
    her.see("\\u202egnp.exe", "#why")
    her.page.get_by_role("button", name="Open all").click()
    search = her.page.get_by_label("Search in the inventory")
    search.fill("onerror")
    expect(her.page.get_by_role("treeitem", selected=True)).to_contain_text("<img src=x")
    search.fill("gnp.exe")
    expect(her.page.get_by_role("treeitem", selected=True)).to_contain_text("⟨U+202E⟩gnp.exe")
    search.fill("49999")
    expect(her.page.get_by_role("treeitem", selected=True)).to_contain_text("49999")
    # All lines are rows of a tree of which few are elements.
    assert her.page.get_by_role("treeitem").count() < 100

    # The same machine in the workbench, and the same text pasted.
    her.open(f"#/workbench?nodes={demo.client.get(f'/v1/nodes/{name}').json()['uuid']}")
    her.page.get_by_label(f"Search in the inventory of {name}").fill("49999")
    expect(her.page.get_by_role("treeitem", selected=True)).to_contain_text("49999")
    her.page.get_by_role("textbox", name="Rule, as YAML or JSON").focus()
    her.page.keyboard.insert_text("actions: [{op: log, args: {msg: x}}]")
    expect(her.page.locator(".verdict")).to_contain_text(f" on {name}.")
    her.context.grant_permissions(["clipboard-read", "clipboard-write"])
    her.page.evaluate("(text) => navigator.clipboard.writeText(text)", json.dumps(sent["inventory"] | {"bmc": None}))
    her.page.get_by_role("button", name="Choose machines").click()
    her.page.get_by_text("Paste a report").click()
    her.page.get_by_label("A report or an inventory as JSON").press("Control+V")
    her.see("pasted 1 is added.", "dialog")
    her.page.get_by_role("button", name="Try on these").click()
    her.page.get_by_role("button", name="pasted 1", exact=True).click()
    her.page.get_by_label("Search in the inventory of pasted 1").fill("49999")
    expect(her.page.get_by_role("treeitem", selected=True)).to_contain_text("49999")
    expect(her.page.locator(".verdict")).to_contain_text(" on pasted 1.")
    for address in ("#/fleet", "#/journal", "#/templates", "#/operations",
                    "#/node/%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E", "#/journal/javascript:alert(1)"):
        her.open(address)
        assert SECRET not in her.page.content()
    assert her.page.locator("main img, main script, main svg:not(.icon), main iframe").count() == 0
    assert her.errors == []
    # What the page has read from the API, read again: Chromium forgets answers.
    read = {text.split()[0] for text in her.sent if "/v1/" in text}
    assert not any(SECRET in text for text in [*her.sent, *(demo.client.get(url).text for url in read)])
    assert {address.split("/")[2] for address in her.sent} == {demo.url.split("/")[2]}
    assert her.page.evaluate("() => localStorage.length + sessionStorage.length + document.cookie.length") == 0


@pytest.mark.slow
def test_a_keyboard_is_enough(demo, visit):
    # Two machines were turned away; one of them is enrolled.
    for number in (1, 2):
        refused = {"inventory": {"interfaces": [{"name": "eth0", "mac_address": f"52:54:00:77:77:0{number}"}]}}
        assert demo.client.post("/v1/continue_inspection", json=refused).status_code == 404
    her = visit(demo.url, width=360, height=740)
    keys = her.page.keyboard
    her.open("#/fleet")
    keys.press("Tab")
    expect(her.page.get_by_role("link", name="Skip to the content")).to_be_focused()
    keys.press("Enter")
    expect(her.page.locator("main")).to_be_focused()
    keys.press("?")
    expect(her.page.get_by_role("dialog")).to_contain_text("Go to Journal")
    her.check_accessibility()
    keys.press("Escape")
    expect(her.page.get_by_role("dialog")).to_have_count(0)

    keys.type("gj")
    her.see("52:54:00:77:77:01")
    her.settle()
    her.check_accessibility()
    her.page.get_by_role("link", name="52:54:00:77:77:01").focus()
    keys.press("Enter")
    her.see("discovery off")
    expect(her.page.get_by_role("button", name="Enroll")).to_be_visible()
    her.check_accessibility()
    her.page.get_by_label("Name").focus()
    keys.type("by-keyboard")
    keys.press("Enter")
    her.see("inspect wait")
    expect(her.page.get_by_role("heading", level=1)).to_have_text("by-keyboard")

    # The tree: down into the first value, and what it is.
    her.open("#/node/demo-hpe-dl380-gen11")
    keys.press("i")
    expect(her.page.get_by_label("Search in the inventory")).to_be_focused()
    keys.type("product_name")
    expect(her.page.get_by_role("treeitem", selected=True)).to_contain_text("ProLiant")
    keys.press("ArrowDown")
    keys.press("Home")
    keys.press("ArrowLeft")
    expect(her.page.get_by_role("treeitem", expanded=False).first).to_contain_text("inventory")

    # A dry run of all nodes, from the fleet to its results.
    keys.press("u")
    her.settle()
    her.page.get_by_role("button", name="Dry run …").focus()
    keys.press("Enter")
    keys.press("Shift+Tab")
    keys.press("Enter")
    her.see("would change")
    her.see("finished")
    her.check_accessibility()
    # Nothing is wider than a small telephone, but tables within their frames.
    assert her.page.evaluate(TOO_WIDE) == []
    assert her.errors == []


@pytest.mark.slow
def test_keys_alone_lead_from_the_fleet_to_the_machine_that_failed_and_to_a_stored_rule(own_demo, visit):
    her = visit(own_demo.url, width=1500, height=950)
    keys = her.page.keyboard
    focused = "() => (document.activeElement.getAttribute('aria-label') || document.activeElement.textContent).trim()"

    def enter(name: str) -> None:
        """Go with Tab to the element that begins with this text, and press Enter."""
        her.settle()
        passed: list[str] = []
        until = time.monotonic() + PATIENCE_MS / 1000
        while time.monotonic() < until:
            keys.press("Tab")
            passed.append(her.page.evaluate(focused)[:60])
            if passed[-1].startswith(name):
                keys.press("Enter")
                return
        raise AssertionError(f"Tab does not reach {name}, only {list(dict.fromkeys(passed))}")

    her.open("#/journal")
    keys.type("gf")
    her.see("6 nodes")
    enter("1 inspect failed")
    expect(her.page.locator(".list tbody tr")).to_have_count(1)
    expect(her.page.locator(".list").get_by_role("link", name="demo-ramdisk-error")).to_be_visible()
    enter("demo-ramdisk-error")
    her.see("no disk is suitable as root device", "#why")
    enter("Write a first rule")
    enter("Next step")
    expect(her.page.get_by_role("textbox", name="Rule, as YAML or JSON")).to_be_visible()
    her.settle()

    # A value of the inventory becomes a condition; the name is typed.
    keys.press("i")
    keys.type("architecture")
    expect(her.page.get_by_role("treeitem", selected=True)).to_contain_text("x86_64")
    keys.press("ArrowDown")
    keys.press("Enter")
    her.see("inventory.cpu.architecture is x86_64", "dialog")
    keys.press("Enter")
    her.see("architecture", ".cm-content")
    keys.insert_text("actions:\n  - {op: log, args: {msg: x86}}\nname: by-keys\n")
    her.see("The rule is valid.", ".problems")
    her.see(re.compile("The rule matches on demo-"), ".verdict")
    keys.press("Control+S")
    her.see("by-keys", ".head")
    rule, = (rule for rule in own_demo.client.get("/v1/inspection_rules?detail=true").json()["inspection_rules"]
             if rule["name"] == "by-keys")
    assert [condition["op"] for condition in rule["conditions"]] == ["eq"]
    own_demo.client.delete(f"/v1/inspection_rules/{rule['uuid']}").raise_for_status()
    assert her.errors == []


@pytest.mark.slow
def test_templates_and_flavors_show_the_steps_that_a_node_would_run(demo, visit):
    steps = [{"interface": "bios", "step": "apply_configuration", "priority": 150,
              "args": {"settings": [{"name": "LogicalProc", "value": "Enabled"}]}}]
    template = {"name": "CUSTOM_ALL_FLASH", "steps": steps}
    flavor = {"name": "bm", "ram": 1, "vcpus": 1, "disk": 1}
    demo.client.post("/v1/deploy_templates", json=template).raise_for_status()
    ident = demo.client.post("/v1/flavors", json={"flavor": flavor}).raise_for_status().json()["flavor"]["id"]
    demo.client.post(f"/v1/flavors/{ident}/os-extra_specs", json={"extra_specs": {
        "resources:CUSTOM_BAREMETAL_LARGE": "1", "resources:VCPU": "0", "resources:MEMORY_MB": "0",
        "resources:DISK_GB": "0", "trait:CUSTOM_ALL_FLASH": "required"}}).raise_for_status()

    her = visit(demo.url)
    her.open("#/templates")
    her.see("bios.apply_configuration")
    her.check_accessibility()
    her.page.get_by_role("link", name="CUSTOM_ALL_FLASH").click()
    her.see("demo-dell-r660")
    her.settle()
    her.check_accessibility()
    her.open("#/templates")
    her.page.get_by_role("link", name="bm", exact=True).click()
    her.see("Deployment steps")
    her.settle()
    her.see("CUSTOM_ALL_FLASH")
    her.see(re.compile(r"\d+ would fit, but (is|are) manageable: demo-"), "section:has-text('would fit')")
    her.check_accessibility()
    her.picture("flavor", 620)
    assert her.errors == []


@pytest.mark.slow
@pytest.mark.long
def test_a_password_stays_in_memory_even_while_the_service_is_restarted(tmp_path, visit):
    users = tmp_path / "users"
    users.write_text(f"anna:{bcrypt.hashpw(b'right', bcrypt.gensalt(4)).decode()}\n")
    config = f"[DEFAULT]\nauth_strategy = http_basic\nhttp_basic_auth_user_file = {users}\n"
    port = free_port()
    with standalone(tmp_path, config=config, port=port) as (process, url):
        her = visit(url)
        her.page.goto(f"{url}/ui/")
        for password in ("wrong", "right"):
            dialog = her.page.get_by_role("dialog")
            dialog.get_by_label("User").fill("anna")
            dialog.get_by_label("Password").fill(password)
            if password == "right":
                her.see("did not accept", "dialog")
                her.check_accessibility()
            her.page.keyboard.press("Enter")
        her.see("There are no nodes yet")
        assert "right" not in her.page.content()
        assert not [text for text in her.sent if "right" in text]
        assert her.page.evaluate("() => localStorage.length + sessionStorage.length + document.cookie.length") == 0
        header = base64.b64encode(b"anna:right").decode()
        assert header in str(her.received[-1].request.all_headers())
        process.terminate()
        her.see("The service does not answer", ".list [role=alert]")
    with standalone(tmp_path, config=config, port=port, name="again"):
        # It is there again, without a question and without a reload.
        her.see("There are no nodes yet")
        her.page.get_by_role("button", name="Sign out").click()
        expect(her.page.get_by_role("dialog")).to_be_visible()
        assert her.errors == []


@pytest.mark.slow
def test_a_password_of_keystone_is_forwarded_and_a_wrong_one_asked_again(tmp_path, visit):
    with identity.configuration() as keystone, standalone(
            tmp_path, config=f"{keystone}[api]\nui_password_login = true\n") as (_, url):
        her = visit(url)
        her.page.goto(f"{url}/ui/")
        her.page.get_by_label("User").fill("reader")
        her.page.get_by_label("Password").fill("guess")
        her.page.keyboard.press("Enter")
        her.see("does not accept this user", "dialog [role=alert]")
        her.check_accessibility()
        expect(her.page.get_by_label("User")).to_have_value("reader")
        her.page.get_by_label("Password").fill(identity.password_of("reader"))
        her.page.keyboard.press("Enter")
        her.see("There are no nodes yet")
        secret = identity.password_of("reader").encode()
        assert not [file for file in tmp_path.rglob("*") if file.is_file() and secret in file.read_bytes()]


@pytest.mark.slow
def test_a_reader_of_keystone_sees_and_is_told_what_she_may_not_do(tmp_path, visit):
    with identity.configuration() as keystone, standalone(tmp_path, config=keystone) as (_, url):
        her = visit(url)
        her.page.goto(f"{url}/ui/")
        her.page.get_by_role("button", name="Not now").click()
        her.see("401", ".list [role=alert]")
        her.page.get_by_role("button", name="Sign in").click()
        her.page.get_by_label("Token").fill("reader")
        her.page.keyboard.press("Enter")
        her.see("There are no nodes yet")
        her.see("baremetal:inspection_journal:get", "section:has-text('Rejected reports')")
        her.page.get_by_role("button", name="Dry run …").click()
        her.page.get_by_role("dialog").get_by_role("button", name="Dry run").click()
        her.see("baremetal:node:inventory:reapply", "dialog [role=alert]")
        her.check_accessibility()
        her.page.get_by_role("button", name="Close").click()
        her.page.get_by_role("link", name="Rules", exact=True).click()
        her.see("Conditions and actions are shown to administrators only.")
        her.see("There are no rules yet")
        # What she may not save stays where she has typed it.
        her.page.get_by_role("link", name="Workbench", exact=True).click()
        her.page.get_by_role("textbox", name="Rule, as YAML or JSON").focus()
        her.page.keyboard.press("Control+A")
        her.page.keyboard.insert_text("name: of-a-reader\nactions:\n  - {op: log, args: {msg: hello}}\n")
        her.page.keyboard.press("Control+S")
        her.see("baremetal:inspection_rule:create", "main [role=alert]")
        expect(her.page.locator(".cm-content")).to_contain_text("of-a-reader")
        assert her.errors == []
