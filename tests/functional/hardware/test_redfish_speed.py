"""Time and requests of out-of-band inspections: one slow BMC, and many at once of which one does not respond."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from oslo_config import cfg

from ironic_rules.conductor.worker_pool import Lane
from ironic_rules.conf import hardware, inspector
from ironic_rules.hardware.redfish import client
from ironic_rules.hardware.redfish.driver_info import RedfishHardware
from ironic_rules.hardware.redfish.inspect import RedfishInspect
from ironic_rules.models import states
from ironic_rules.models.inventories import InspectionData
from tests.functional.processes import in_time, wait_for
from tests.functional.whole import running
from tests.unit.hardware.redfish_bmc import BMC, close_all, serving
from tests.unit.hardware.redfish_machine import server
from tests.unit.inspection.tasks import make_task

pytestmark = pytest.mark.slow
ALL = {"drives": 24, "interfaces": 12}


@pytest.fixture(autouse=True)
def connections(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(client, "CONNECTIONS", client.Connections())
    yield
    close_all(client.CONNECTIONS)


@pytest.fixture
def interface(tmp_path: Path) -> RedfishInspect:
    conf = cfg.ConfigOpts()
    # Without the modules' groups: all ConfigOpts of a process would share their overrides.
    conf.register_opts(hardware.REDFISH_OPTS, group="redfish")
    conf.register_opts(inspector.OPTS, group="inspector")
    conf([], default_config_files=[], default_config_dirs=[])
    for name, value in {"auth_type": "basic", "inspection_timeout": 15, "connection_attempts": 1}.items():
        conf.set_override(name, value, group="redfish")
    return RedfishInspect(conf, lambda node, kind: None)


def inspected(interface: RedfishInspect, bmc: BMC) -> InspectionData:
    info = {"redfish_address": bmc.url, "redfish_username": "u", "redfish_password": "p"}
    return interface.inspect_hardware(make_task({"driver_info": info}))


def test_a_server_of_24_drives_and_12_interfaces_is_asked_eight_things_at_a_time(interface):
    interface.conf.clear_override("inspection_timeout", group="redfish")
    with serving(server(ALL["drives"], ALL["interfaces"])) as bmc:
        bmc.delay_s = 0.2
        data = inspected(interface, bmc)

    assert (len(data.inventory["disks"]), len(data.inventory["interfaces"])) == (24, 12)
    assert bmc.most_at_once == 8
    told = data.plugin_data["redfish_inspection"]
    assert (told["missing"], told["requests"]) == ([], len(bmc.read) - 4)
    # Of 200 ms each.
    assert told["seconds"] >= told["requests"] / 8 * 0.2


@contextlib.contextmanager
def hanging(bmc: BMC) -> Iterator[None]:
    """Let requests below the system wait until the end of the block."""
    end, original = threading.Event(), bmc.document

    def document(path: str, query: dict[str, list[str]]) -> object:
        if path.count("/") > 4:
            end.wait(600)
        return original(path, query)

    bmc.document = document  # type: ignore[method-assign]
    try:
        yield
    finally:
        end.set()


def test_a_bmc_that_hangs_delays_no_other_and_releases_its_worker_in_time(interface):
    with contextlib.ExitStack() as stack:
        bmcs = [stack.enter_context(serving(server(4, 2, 4))) for _ in range(8)]
        stack.enter_context(hanging(bmcs[0]))
        with in_time(), ThreadPoolExecutor(len(bmcs)) as workers:
            first, *others = [workers.submit(inspected, interface, bmc) for bmc in bmcs]
            assert not any(other.result().plugin_data["redfish_inspection"]["missing"] for other in others)
            assert not first.done()
            stuck = first.result()

    assert stuck.plugin_data["redfish_inspection"]["missing"]
    # It told the amount of memory before.
    assert stuck.inventory["memory"]["physical_mb"] == 524288


FIFTY = """
[DEFAULT]
enabled_boot_interfaces = fake
enabled_deploy_interfaces = fake
enabled_inspect_interfaces = redfish,agent
enabled_management_interfaces = fake,redfish
enabled_power_interfaces = fake,redfish
[inspector]
hooks = $default_hooks
[redfish]
auth_type = basic
# This test is about workers, however slow the machine is that also runs the fifty BMCs.
inspection_timeout = 600
"""


class Server(RedfishHardware):
    supported_boot_interfaces = ("fake",)
    supported_deploy_interfaces = ("fake",)
    supported_inspect_interfaces = ("redfish", "agent")


def with_own_addresses(content: dict[str, Any], number: int) -> dict[str, Any]:
    return json.loads(json.dumps(content).replace("B0:7B:25:E4:52:", f"B0:7B:25:E4:{number:02X}:"))


@pytest.mark.long
def test_fifty_slow_bmcs_at_once_hold_no_worker_beyond_their_share(tmp_path):
    content = server(ALL["drives"], ALL["interfaces"])
    with contextlib.ExitStack() as stack:
        bmcs = [stack.enter_context(serving(with_own_addresses(content, number))) for number in range(50)]
        service = stack.enter_context(running(tmp_path, FIFTY, {"redfish": Server}))
        size, workers = service.conf.conductor.workers_pool_size, service.conductor.workers
        nodes = [service.enroll("manageable", driver="redfish", inspect_interface="redfish", driver_info={
            "redfish_address": bmc.url, "redfish_username": "u", "redfish_password": "p"}) for bmc in bmcs]
        healthy = service.enroll("manageable")
        for bmc in bmcs:
            bmc.delay_s = 0.2
        ids = [service.row(node).id for node in nodes]

        def is_at_rest(node: str) -> bool:
            row = service.row(node)
            return row.reservation is None and row.provision_state not in states.TRANSIENT

        began, cpu_s = time.monotonic(), time.process_time()
        for node in nodes:
            assert service.ask(node, "inspect").status_int == 202
        wait_for("the first BMCs to be asked", lambda: sum(bool(bmc.read) for bmc in bmcs) >= min(size, 50))
        # All workers have a BMC each, and those of other work are free.
        assert sum(bool(bmc.read) for bmc in bmcs) <= size + sum(map(is_at_rest, nodes))
        with workers.take(service.row(healthy).id, lane=Lane.RECOVERY):
            pass
        wait_for("the inspections", lambda: all(map(is_at_rest, nodes)), 600, 0.2)
        took_s, cpu_s = time.monotonic() - began, time.process_time() - cpu_s
        wait_for("the workers", lambda: not any(map(workers.is_active, ids)))

        assert workers.missing == 0
        rows = [service.row(node) for node in nodes]
        assert {(row.provision_state, row.last_error) for row in rows} == {("manageable", None)}
        told = [service.app.get(f"/v1/nodes/{node}/inventory").json["plugin_data"]["redfish_inspection"]
                for node in nodes]
        assert all(one["missing"] == [] for one in told)
        assert max(bmc.most_at_once for bmc in bmcs) <= service.conf.redfish.inspection_requests_at_once
        assert service.inspect(healthy, service.machine()[1])["provision_state"] == "manageable"
    print(f"50 BMCs, {sum(one['requests'] for one in told)} requests of 200 ms: {took_s:.1f} s, "
          f"{cpu_s:.1f} s of processor time with the BMCs, longest {max(one['seconds'] for one in told):.1f} s")
