"""The page of one machine, comparisons, enrolment with credentials, and the looks of all views."""

from __future__ import annotations

import contextlib
import copy
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from ironic_rules import samples
from tests.functional.processes import standalone, wait_for
from tests.functional.ui.conftest import Demo, playwright
from tests.functional.ui.test_page import TOO_WIDE

expect = playwright.expect
MACHINE = "demo-dell-r660"
VIEWS = ("#/fleet", f"#/node/{MACHINE}", "#/node/demo-ramdisk-error", f"#/compare/{MACHINE}/demo-hpe-dl380-gen11",
         f"#/compare/{MACHINE}", "#/rules", "#/templates", "#/journal", "#/operations", "#/workbench")
PASSWORD = "Autumn-2026-secret"


def rejected(client: httpx.Client, number: int, **memory: int) -> tuple[str, dict[str, Any]]:
    """Let a machine like MACHINE, but with addresses and a serial number of its own, report; return its journal entry.

    :returns: the UUID of the entry, and the report
    """
    report = copy.deepcopy(samples.inventory("dell-r660"))
    inventory = report["inventory"]
    inventory["system_vendor"]["serial_number"] = f"ALIKE{number}"
    inventory["bmc_address"], inventory["bmc_mac"] = f"192.0.2.{200 + number}", f"52:54:00:88:0{number}:ff"
    inventory["boot"].pop("pxe_interface")
    for index, nic in enumerate(inventory["interfaces"]):
        nic["mac_address"] = f"52:54:00:88:0{number}:0{index}"
    inventory["memory"] |= memory
    assert client.post("/v1/continue_inspection", json=report).status_code == 404
    wanted = {"mac": f"52:54:00:88:0{number}:00"}
    entries = wait_for("the entry", lambda: client.get(
        "/v1/inspection_journal", params=wanted).json()["inspection_journal"])
    return entries[-1]["uuid"], report


@contextlib.contextmanager
def alike(demo: Demo, **memory: int) -> Iterator[list[str]]:
    """Enroll three machines like MACHINE, of which the last has another ``memory``; yield their names."""
    names = []
    for number in range(1, 4):
        entry, report = rejected(demo.client, number, **(memory if number == 3 else {}))
        names.append(f"alike-{number}")
        demo.client.post(f"/v1/inspection_journal/{entry}/enroll", json={
            "driver": "fake-hardware", "name": names[-1]}).raise_for_status()
        demo.client.post("/v1/continue_inspection", json=report).raise_for_status()
    for name in names:
        wait_for("facts", lambda name=name: demo.client.get(f"/v1/nodes/{name}/facts").json()["facts"])
    yield names
    for name in names:
        demo.client.delete(f"/v1/nodes/{name}").raise_for_status()


@pytest.mark.slow
def test_a_machine_begins_with_what_it_is_and_with_what_can_be_done(demo, visit):
    first, second, *_ = demo.client.get(f"/v1/nodes/{MACHINE}/ports").json()["ports"]
    for number, port in enumerate((first, second), 1):
        link = {"switch_id": "00:1c:73:00:00:01", "switch_info": "leaf-7", "port_id": f"Ethernet{number}"}
        demo.client.patch(f"/v1/ports/{port['uuid']}", json=[
            {"op": "add", "path": "/local_link_connection", "value": link}]).raise_for_status()
    demo.client.patch(f"/v1/nodes/{MACHINE}", json=[
        {"op": "add", "path": "/owner", "value": "team-red"}]).raise_for_status()
    her = visit(demo.url)
    her.open(f"#/node/{MACHINE}")
    for name, text in {
            "Model": "PowerEdge R660", "Serial": "4HT81X3", "CPU": "2 × Intel Xeon Gold 6430", "Memory": "512 GiB",
            "Disks": "12.0 TB", "Network": "25 Gbit/s", "BMC": "192.0.2.161", "Class": "baremetal-large",
            "Owner": "team-red", "Instance": "none"}.items():
        expect(her.page.locator(".tiles > div").filter(has_text=name).filter(has_text=text)).to_have_count(1)
    nics = her.page.get_by_role("table", name="Network interfaces")
    expect(nics.get_by_role("row").filter(has_text=first["address"])).to_contain_text("leaf-7")
    expect(nics.get_by_role("row").filter(has_text=second["address"])).to_contain_text("Ethernet2")
    # The boot of the machine has no bar, so that the other stages have long ones.
    stages = her.page.get_by_role("list", name="Stages").first
    expect(stages.get_by_role("listitem").filter(has_text="wait").locator("i")).to_have_count(0)
    assert "100%" in stages.locator("i").evaluate_all("(bars) => bars.map((bar) => bar.style.inlineSize)")
    her.check_accessibility()

    # By mouse and by keyboard: maintenance with its reason, the power, and the states.
    main = her.page.locator("main")
    main.get_by_role("button", name="Maintenance").click()
    her.check_accessibility()
    her.page.get_by_role("dialog").get_by_label("Reason").press_sequentially("a fan is loud")
    her.page.keyboard.press("Enter")
    her.see("a fan is loud", "main .notice")
    main.get_by_role("button", name="End maintenance").press("Enter")
    expect(main.get_by_text("a fan is loud")).to_have_count(0)
    main.get_by_role("button", name="Power on").press("Enter")
    main.get_by_role("button", name="Power off").click()
    her.see("It has no instance.", "dialog")
    her.page.get_by_role("dialog").get_by_role("button", name="Power off").click()
    her.see("power off", ".head")
    main.get_by_role("button", name="Provide").press("Enter")
    her.see("available", ".head .state")
    refused = main.get_by_role("button", name="Provide")
    expect(refused).to_have_attribute("title", "Possible in manageable; this machine is available.")
    refused.press("Enter")
    expect(her.page.locator("#live")).to_have_text("Possible in manageable; this machine is available.")
    main.get_by_role("button", name="Manage", exact=True).click()
    her.see("manageable", ".head .state")
    assert her.errors == []


@pytest.mark.slow
def test_a_machine_whose_inspections_failed_shows_what_it_reported_and_nothing_is_saved(demo, visit):
    rule = demo.client.post("/v1/inspection_rules", json={"name": "gives-a-trait-first", "priority": 90, "actions": [
        {"op": "add-trait", "args": {"name": "CUSTOM_LOST"}}]}).raise_for_status().json()["uuid"]
    last = demo.client.post("/v1/inspection_rules", json={"name": "fails-last", "actions": [
        {"op": "fail", "args": {"msg": "too small"}}]}).raise_for_status().json()["uuid"]
    entry, report = rejected(demo.client, 9)
    demo.client.post(f"/v1/inspection_journal/{entry}/enroll", json={
        "driver": "fake-hardware", "name": "never-finished"}).raise_for_status()
    demo.client.post("/v1/continue_inspection", json=report).raise_for_status()
    her = visit(demo.url)
    her.open("#/node/never-finished")
    her.see("too small", "#why")
    her.see("No inspection has finished yet, so that nothing of it is saved.")
    expect(her.page.locator(".tiles > div").filter(has_text="Serial")).to_contain_text("ALIKE9")
    lost = her.page.locator(".not-saved").filter(has_text="CUSTOM_LOST")
    expect(lost).to_be_visible()
    assert lost.locator(".patch").evaluate("(list) => getComputedStyle(list).textDecorationLine") == "line-through"
    expect(her.page.get_by_role("columnheader", name="Not saved")).to_be_visible()
    her.see("No trait.")
    her.check_accessibility()
    for path in (f"inspection_rules/{rule}", f"inspection_rules/{last}", "nodes/never-finished"):
        demo.client.delete(f"/v1/{path}").raise_for_status()


@pytest.mark.slow
def test_two_machines_a_product_and_two_reports_are_compared(demo, visit):
    with alike(demo, physical_mb=262_144) as names:
        her = visit(demo.url)
        her.open(f"#/node/{names[2]}")
        her.page.locator("main").get_by_role("link", name="Compare", exact=True).click()
        # With the majority of its product.
        her.see("4 machines are a PowerEdge R660")
        odd = her.page.get_by_role("table", name="Differences from the majority")
        expect(odd.locator("tbody tr")).to_have_count(1)
        memory = odd.get_by_role("row").filter(has_text="memory_gib")
        expect(memory).to_contain_text(re.compile("256 GiB.*512 GiB.*3 of 4"))
        her.page.get_by_label("Show what is equal, too").check()
        expect(odd.get_by_role("row").filter(has_text="cpu_model")).to_contain_text("4 of 4")
        her.check_accessibility()

        # With another machine, which is found by its serial number; by keys.
        her.page.get_by_label("Compare with").select_option("another machine")
        other = her.page.get_by_label("Other machine", exact=True)
        other.press_sequentially("ALIKE1")
        expect(her.page.locator(f"datalist option[value={names[0]}]").first).to_be_attached()
        other.fill(names[0])
        other.press("Enter")
        differing = her.page.get_by_role("table", name="Differences")
        memory = differing.get_by_role("row").filter(has_text="memory_gib")
        expect(memory).to_contain_text(re.compile("256 GiB.*512 GiB"))
        her.see("ALIKE3", "section:has-text('Their own')")
        her.page.get_by_text("All of both inventories").press("Enter")
        her.see("/memory/physical_mb", "section[aria-label=Inventories]")
        her.check_accessibility()
        address = her.page.url.partition("/ui/")[2]
        assert address == f"#/compare/{names[2]}/{names[0]}"
        her.page.goto("about:blank")
        her.open(address)
        expect(differing).to_be_visible()

        # With an earlier report, from the machine's time line.
        changed = copy.deepcopy(samples.inventory("dell-r660"))
        lost = changed["inventory"]["disks"].pop()
        demo.inspect(MACHINE, changed)
        her.open(f"#/node/{MACHINE}")
        her.page.get_by_role("link", name="Compare with the report before").first.click()
        her.see(lost["serial"], "tr:has-text('went')")
        expect(her.page.get_by_role("combobox", name="Earlier report")).to_be_visible()
        her.check_accessibility()
        assert her.errors == []
    demo.inspect(MACHINE, samples.inventory("dell-r660"))


@pytest.mark.slow
def test_a_machine_of_the_journal_is_enrolled_with_the_credentials_of_its_bmc(tmp_path, visit):
    config = """[DEFAULT]
enabled_hardware_types = fake-hardware,ipmi
enabled_power_interfaces = fake,ipmitool
enabled_management_interfaces = fake,ipmitool
"""
    with standalone(tmp_path, config=config) as (_, url), httpx.Client(
            base_url=url, headers={"X-OpenStack-Ironic-API-Version": "1.96"}, trust_env=False) as client:
        entry, _ = rejected(client, 1)
        her = visit(url)
        her.open(f"#/journal/{entry}")
        her.page.get_by_label("Driver").select_option("ipmi")
        expect(her.page.get_by_label("ipmi address")).to_have_value("192.0.2.201")
        her.check_accessibility()
        keys = her.page.keyboard
        for name, text in {"Name": "rack-7-3", "ipmi username": "root", "ipmi password": PASSWORD,
                           "Resource class": "large", "Owner": "team-blue"}.items():
            her.page.get_by_label(f"{name} (optional)", exact=True).focus()
            keys.type(text)
        keys.press("Enter")
        expect(her.page.get_by_role("heading", level=1)).to_have_text("rack-7-3")
        her.see("inspect wait", ".head")
        assert PASSWORD not in her.page.content() + her.page.url
        node = client.get("/v1/nodes/rack-7-3").json()
        assert node["driver_info"] == {
            "ipmi_address": "192.0.2.201", "ipmi_username": "root", "ipmi_password": "******"}
        assert (node["driver"], node["resource_class"], node["owner"]) == ("ipmi", "large", "team-blue")
        assert her.errors == []


@pytest.mark.slow
def test_views_are_light_or_dark_narrow_zoomed_and_printed(demo, visit):
    ground = "() => getComputedStyle(document.documentElement).backgroundColor"
    her = visit(demo.url, color_scheme="light")
    her.open("#/fleet")
    light = her.page.evaluate(ground)
    switch = her.page.get_by_role("button", name="Colors")
    switch.click()
    switch.press("Enter")
    expect(switch).to_have_accessible_name("Colors: dark")
    dark = her.page.evaluate(ground)
    assert dark != light
    her.page.reload()
    her.settle()
    assert her.page.evaluate(ground) == dark
    assert her.page.evaluate("() => Object.entries(localStorage).join()") == "theme,dark"
    for address in VIEWS:
        her.open(address)
        her.check_accessibility()
    switch.click()
    assert her.page.evaluate(ground) == light
    assert her.page.evaluate("() => localStorage.length") == 0

    # A telephone, and a window at 200 %.
    for width, height in ((390, 840), (640, 400)):
        narrow = visit(demo.url, width=width, height=height)
        for address in VIEWS:
            narrow.open(address)
            assert narrow.page.evaluate(TOO_WIDE) == [], (width, address)
            assert narrow.page.locator("nav").evaluate("(nav) => nav.clientHeight") < 40
            if width == 390:
                narrow.check_accessibility()
        narrow.open(f"#/node/{MACHINE}")
        cell = narrow.page.get_by_role("table", name="Network interfaces").locator("td").nth(1)
        expect(cell).to_have_attribute("data-label", "Speed")
        assert (cell.evaluate("(cell) => getComputedStyle(cell).display") == "grid") == (width == 390)
        assert narrow.errors == []

    her.open(f"#/node/{MACHINE}")
    her.page.emulate_media(media="print")
    for hidden in ("header", ".buttons.actions", ".tree-frame .bar"):
        expect(her.page.locator(hidden).first).to_be_hidden()
    expect(her.page.locator(".tiles")).to_be_visible()
    assert her.errors == []
