"""Metal3's baremetal-operator as a client: its requests in the form in which gophercloud sends them.

Paths, verbs, versions and the fields of bodies are those of its provisioner (``pkg/provisioner/ironic``); each method
is named after what a host does there. Status codes are those that gophercloud accepts.
"""

from __future__ import annotations

from typing import Any

import httpx

from ironic_rules.models import states
from tests.functional.processes import wait_for

#: The newest version that the operator requests.
VERSION = "1.95"


class Host:
    """A BareMetalHost, ``metal3~<name>``."""

    def __init__(self, url: str, name: str) -> None:
        self._http = httpx.Client(base_url=f"{url}/v1", trust_env=False, timeout=60, headers={
            "X-OpenStack-Ironic-API-Version": VERSION, "User-Agent": "gophercloud/v2.9.0",
            "Accept": "application/json"})
        self.name = f"metal3~{name}"
        self.uuid = ""

    def close(self) -> None:
        self._http.close()

    def ask(self, method: str, path: str, body: Any = None, *, ok: int) -> Any:
        """Send a request; return the JSON of the reply."""
        reply = self._http.request(method, path, **({} if body is None else {"json": body}))
        assert reply.status_code == ok, f"{method} {path}: {reply.status_code} {reply.text}"
        return reply.json() if reply.content else None

    def node(self, below: str = "") -> str:
        return f"/nodes/{self.uuid}{below}"

    def show(self) -> dict[str, Any]:
        return dict(self.ask("GET", self.node(), ok=200))

    def in_state(self, state: str) -> dict[str, Any]:
        """Wait until the host reaches a state: the operator asks again and again."""
        def reached() -> dict[str, Any] | None:
            shown = self.show()
            failed = shown["provision_state"].endswith("failed") or shown["last_error"]
            assert not failed or shown["provision_state"] == state, shown["last_error"]
            rests = shown["provision_state"] not in states.TRANSIENT and shown["reservation"] is None
            return shown if shown["provision_state"] == state and rests else None

        return wait_for(f"state {state} of {self.name}", reached)

    def change(self, target: str, **arguments: Any) -> None:
        """Request a provision state; a locked node is asked again, as the operator does."""
        def accepted() -> bool:
            reply = self._http.put(self.node("/states/provision"), json={"target": target, **arguments})
            assert reply.status_code in (202, 409), reply.text
            return reply.status_code == 202

        wait_for(f"{target} to be accepted", accepted)

    def update(self, **values: Any) -> None:
        """Set fields by a JSON patch; ``__`` in a name separates a key of the field."""
        body = [{"op": "add", "path": f"/{name.replace('__', '/')}", "value": value} for name, value in values.items()]
        self.ask("PATCH", self.node(), body, ok=200)

    def register(self, driver_info: dict[str, Any], mac: str, deploy_interface: str) -> None:
        """Create the node and its port, and make it manageable."""
        self.ask("GET", f"/nodes/{self.name}", ok=404)
        assert self.ask("GET", f"/ports?address={mac}&fields=node_uuid", ok=200)["ports"] == []
        created = self.ask("POST", "/nodes", {
            "driver": "redfish", "name": self.name, "driver_info": driver_info, "disable_power_off": False,
            "bios_interface": "redfish", "boot_interface": "redfish-virtual-media", "firmware_interface": "redfish",
            "deploy_interface": deploy_interface, "inspect_interface": "agent", "management_interface": "redfish",
            "power_interface": "redfish", "raid_interface": "redfish", "vendor_interface": "redfish",
            "properties": {"capabilities": "boot_mode:uefi", "cpu_arch": "x86_64"}}, ok=201)
        assert created["provision_state"] == "enroll"
        self.uuid = created["uuid"]
        self.ask("POST", "/ports", {"node_uuid": self.uuid, "address": mac, "pxe_enabled": True}, ok=201)
        self.change("manage")
        self.in_state("manageable")
        self.update(automated_clean=False)

    def firmware(self) -> tuple[dict[str, str], dict[str, dict[str, Any]], dict[str, str]]:
        """Return the settings, what is known about each, and the versions of the components."""
        detailed = self.ask("GET", self.node("/bios?detail=true"), ok=200)["bios"]
        short = self.ask("GET", self.node("/bios"), ok=200)["bios"]
        components = self.ask("GET", self.node("/firmware"), ok=200)["firmware"]
        return ({one["name"]: one["value"] for one in short}, {one["name"]: one for one in detailed},
                {one["component"]: one["current_version"] for one in components})

    def prepare(self, logical_disks: list[dict[str, Any]], settings: dict[str, Any]) -> None:
        """Begin manual cleaning, which creates volumes and writes BIOS settings."""
        self.ask("PUT", self.node("/states/raid"), {"logical_disks": logical_disks}, ok=204)
        self.change("clean", clean_steps=[
            {"interface": "raid", "step": "delete_configuration"},
            {"interface": "raid", "step": "create_configuration"},
            {"interface": "bios", "step": "apply_configuration", "args": {
                "settings": [{"name": name, "value": value} for name, value in settings.items()]}}])

    def provide(self) -> None:
        self.change("provide")
        self.in_state("available")

    def provision(self, image: dict[str, Any]) -> None:
        """Begin the deployment of an image, given as fields of ``instance_info``."""
        self.update(instance_uuid="7d6f7a2e-6f0a-4c56-a1a4-5d2cf1f6c0b7",
                    instance_info__capabilities={"boot_option": "local"},
                    driver_info__force_persistent_boot_device="Default",
                    **{f"instance_info__{name}": value for name, value in image.items()})
        found = self.ask("GET", self.node("/validate"), ok=200)
        assert {kind: found[kind].get("reason") for kind in ("boot", "deploy")} == {"boot": None, "deploy": None}
        # As the operator: a live ISO gets no config drive.
        drive = {"meta_data": {"local-hostname": "host-0"}, "user_data": "#cloud-config\n"}
        self.change("active", **({} if "boot_iso" in image else {"configdrive": drive}))

    def deprovision(self) -> None:
        self.change("deleted")
        self.in_state("available")

    def delete(self) -> None:
        self.update(maintenance=True)
        self.ask("DELETE", self.node(), ok=204)

    def subscribe(self, destination: str, headers: list[dict[str, str]]) -> str:
        """Create a subscription to the BMC's events; return its id."""
        created = self.ask("POST", self.node("/vendor_passthru?method=create_subscription"), {
            "Destination": destination, "Context": "metal3", "HttpHeaders": headers}, ok=200)
        return str(created["Id"])

    def unsubscribe(self, ident: str) -> None:
        self.ask("DELETE", self.node("/vendor_passthru?method=delete_subscription"), {"id": ident}, ok=200)

    def attach_data_image(self, url: str) -> None:
        self.ask("POST", self.node("/vmedia"), {"device_type": "cdrom", "image_url": url}, ok=204)

    def detach_data_image(self) -> None:
        self.ask("DELETE", self.node("/vmedia?device_types=cdrom"), ok=204)

    def has_data_image(self) -> bool:
        wait_for("the node", lambda: not self.show()["reservation"])
        return any(drive["inserted"] for drive in self.ask("GET", self.node("/vmedia"), ok=200))
