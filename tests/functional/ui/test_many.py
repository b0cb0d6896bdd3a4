"""Acting on many nodes in a browser, and templates and flavors that are made there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.functional.processes import standalone, wait_for
from tests.functional.ui.conftest import PATIENCE_MS, playwright
from tests.functional.ui.test_workbench import CLIENT

pytestmark = pytest.mark.slow
expect = playwright.expect
expect.set_options(timeout=PATIENCE_MS)


class Service:
    """A service with manageable nodes ``rack-0`` to ``rack-2`` and ``kept``, which has an instance, and ``new``."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.client = httpx.Client(base_url=url, **CLIENT)
        for name in ("rack-0", "rack-1", "rack-2", "kept", "new"):
            self.client.post("/v1/nodes", json={"name": name, "driver": "fake-hardware"}).raise_for_status()
            if name != "new":
                self.client.put(f"/v1/nodes/{name}/states/provision", json={"target": "manage"}).raise_for_status()
                wait_for(name, lambda name=name: self.node(name)["provision_state"] == "manageable")
        self.client.patch("/v1/nodes/kept", json=[{
            "op": "add", "path": "/instance_uuid", "value": "00000000-0000-4000-8000-0000000000aa"}]).raise_for_status()

    def node(self, name: str) -> dict[str, Any]:
        return dict(self.client.get(f"/v1/nodes/{name}").json())


@pytest.fixture(scope="module")
def service(tmp_path_factory) -> Iterator[Service]:
    with standalone(tmp_path_factory.mktemp("many")) as (_, url):
        served = Service(url)
        yield served
        served.client.close()


def test_chosen_nodes_get_an_action_after_a_preview_and_its_progress_is_an_operation(service, visit):
    her = visit(service.url, width=1400, height=900)
    her.open("#/fleet")
    bar, dialog = her.page.get_by_role("group", name="Act on the chosen nodes"), her.page.get_by_role("dialog")
    expect(bar).to_be_hidden()

    # By mouse, all nodes of the page: six, of which one cannot, and one is deleted meanwhile.
    service.client.post("/v1/nodes", json={"name": "passing", "driver": "fake-hardware"}).raise_for_status()
    expect(her.page.get_by_label("Choose passing")).to_be_visible()
    her.page.get_by_label("Choose all on this page").click()
    her.see("6 nodes chosen", ".acting")
    service.client.delete("/v1/nodes/passing").raise_for_status()
    bar.get_by_role("button", name="Inspect …").click()
    expect(dialog.get_by_role("heading", name="Inspect 4 of 5 nodes?")).to_be_visible()
    expect(dialog).to_contain_text('can not be performed on a node while it is in state "enroll"')
    expect(dialog).to_contain_text("new")
    her.check_accessibility()
    dialog.get_by_role("button", name="Cancel").click()

    # A choice stays while the list is drawn again; by keyboard, with a reason.
    her.page.get_by_label("Choose kept").press("Space")
    her.page.get_by_label("Choose new").press("Space")
    her.see("3 nodes chosen", ".acting")
    expect(her.page.get_by_label("Choose all on this page")).to_have_js_property("indeterminate", True)
    service.client.patch("/v1/nodes/kept", json=[{"op": "add", "path": "/resource_class", "value": "drawn-again"}])
    her.see("drawn-again")
    expect(her.page.get_by_label("Choose rack-1")).to_be_checked()
    expect(her.page.get_by_label("Choose kept")).not_to_be_checked()
    her.check_accessibility()
    bar.get_by_role("button", name="Maintenance …", exact=True).press("Enter")
    dialog.get_by_label("Reason").fill("a new switch")
    dialog.get_by_role("button", name="Set maintenance on 3").press("Enter")
    her.see("finished", ".head")
    her.see("3 of 3")
    assert service.node("rack-2")["maintenance_reason"] == "a new switch"
    assert service.node("kept")["maintenance"] is False

    # All nodes of a query; those that cannot are named with their reason, and deletion is confirmed by a number.
    her.open("#/fleet")
    her.page.get_by_label("Choose all on this page").press("Space")
    bar.get_by_role("button", name="Choose all of this query").press("Enter")
    her.see("All nodes of this query", ".acting")
    bar.get_by_role("button", name="Delete …").press("Enter")
    expect(dialog.get_by_role("heading", name="Delete 4 of 5 nodes?")).to_be_visible()
    expect(dialog).to_contain_text("A node is associated with an instance.")
    dialog.get_by_role("button", name="Delete 4").press("Enter")
    expect(dialog.get_by_label("Type 4 to confirm")).to_be_focused()
    her.see("This is not 4.", "dialog")
    her.check_accessibility()
    dialog.get_by_label("Type 4 to confirm").fill("4")
    dialog.get_by_label("Type 4 to confirm").press("Enter")
    her.see("finished", ".head")
    assert [node["name"] for node in service.client.get("/v1/nodes").json()["nodes"]] == ["kept"]
    her.open("#/fleet")
    expect(bar).to_be_hidden()
    assert her.errors == []


def test_templates_and_flavors_are_made_changed_and_deleted_with_errors_at_their_fields(service, visit):
    her = visit(service.url, width=390, color_scheme="dark")
    her.open("#/templates")
    dialog = her.page.get_by_role("dialog")
    her.page.get_by_role("button", name="New template …").click()
    dialog.get_by_label("Name").fill("no trait")
    dialog.get_by_label("Step", exact=True).fill("erase")
    dialog.get_by_label("Priority").fill("-1")
    dialog.get_by_label("Arguments (JSON)").fill("[1]")
    dialog.get_by_role("button", name="Save").click()
    for label, text in (("Name", "must be a standard trait"), ("Priority", "must be an integer"),
                        ("Arguments (JSON)", "must be an object")):
        field = dialog.get_by_label(label)
        expect(field).to_have_attribute("aria-invalid", "")
        said = her.page.locator(f"#{field.get_attribute('aria-describedby')}")
        expect(said).to_contain_text(text)
    expect(dialog.get_by_label("Name")).to_be_focused()
    her.check_accessibility()
    dialog.get_by_label("Name").fill("CUSTOM_ERASED")
    dialog.get_by_label("Priority").fill("10")
    dialog.get_by_label("Arguments (JSON)").fill('{"tags": ["quick"]}')
    dialog.get_by_label("Arguments (JSON)").press("Enter")
    expect(her.page.get_by_role("heading", name="CUSTOM_ERASED", level=1)).to_be_visible()

    # Someone else changes it meanwhile: nothing is lost.
    change = her.page.get_by_role("button", name="Change …")
    change.click()
    dialog.get_by_role("button", name="Add step").click()
    dialog.get_by_role("group", name="step", exact=True).nth(1).get_by_label("Step", exact=True).fill("write_image")
    path = "/v1/deploy_templates/CUSTOM_ERASED"
    service.client.patch(path, json=[{"op": "add", "path": "/description", "value": "of another"}]).raise_for_status()
    dialog.get_by_role("button", name="Save").click()
    her.see("412", "dialog [role=alert]")
    dialog.get_by_role("button", name="Cancel").click()
    her.page.reload()
    her.settle()
    change.click()
    expect(dialog.get_by_label("Description")).to_have_value("of another")
    dialog.get_by_role("button", name="Remove this step").click()
    dialog.get_by_role("button", name="Add step").click()
    dialog.get_by_label("Step", exact=True).fill("write_image")
    dialog.get_by_role("button", name="Save").click()
    her.see("deploy.write_image")
    assert [step["step"] for step in service.client.get(path).json()["steps"]] == ["write_image"]
    her.page.get_by_role("button", name="Delete …").click()
    dialog.get_by_role("button", name="Delete").click()
    her.see("No template.")

    # A flavor; a refused extra spec stands at its value, and the flavor is not made twice.
    her.page.get_by_role("button", name="New flavor …").click()
    dialog.get_by_label("Name").fill("large")
    dialog.get_by_label("Key").fill("trait:CUSTOM_ERASED")
    dialog.get_by_label("Value").fill("maybe")
    dialog.get_by_role("button", name="Save").click()
    her.see("not one of required, forbidden", "dialog .bad")
    her.check_accessibility()
    dialog.get_by_label("Value").fill("required")
    dialog.get_by_role("button", name="Save").click()
    expect(her.page.get_by_role("heading", name="large", level=1)).to_be_visible()
    flavor, = service.client.get("/v1/flavors/detail").json()["flavors"]
    assert flavor["extra_specs"] == {"trait:CUSTOM_ERASED": "required"}
    her.page.get_by_role("button", name="Change …").click()
    dialog.get_by_label("Description").fill("for data bases")
    dialog.get_by_role("button", name="Remove this extra spec").click()
    dialog.get_by_role("button", name="Save").click()
    wait_for("the change", lambda: service.client.get("/v1/flavors/large").json()["flavor"]["extra_specs"] == {})
    assert service.client.get("/v1/flavors/large").json()["flavor"]["description"] == "for data bases"
    her.settle()
    her.check_accessibility()
    assert her.errors == []
