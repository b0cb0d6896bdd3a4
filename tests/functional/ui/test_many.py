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
    """A service with nodes: ``rack-0`` to ``rack-2`` and ``kept``, which has an instance, are manageable, ``new`` is not."""

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
    service.client.patch(path, json=[{"op": "add", "path": "/description", "value": "of somebody"}]).raise_for_status()
    dialog.get_by_role("button", name="Save").click()
    her.see("412", "dialog [role=alert]")
    dialog.get_by_role("button", name="Cancel").click()
    her.page.reload()
    her.settle()
    change.click()
    expect(dialog.get_by_label("Description")).to_have_value("of somebody")
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
