"""Time and requests of out-of-band inspections: one slow BMC, and many at once of which one does not respond."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from oslo_config import cfg

from ironic_rules.conf import inspector, redfish
from ironic_rules.hardware.redfish import client
from ironic_rules.hardware.redfish.inspect import RedfishInspect
from ironic_rules.models.inventories import InspectionData
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
    conf.register_opts(redfish.OPTS, group="redfish")
    conf.register_opts(inspector.OPTS, group="inspector")
    conf([], default_config_files=[], default_config_dirs=[])
    for name, value in {"auth_type": "basic", "inspection_timeout": 4, "connection_attempts": 1}.items():
        conf.set_override(name, value, group="redfish")
    return RedfishInspect(conf, lambda node, kind: None)


def inspected(interface: RedfishInspect, bmc: BMC) -> tuple[InspectionData, float]:
    began = time.monotonic()
    info = {"redfish_address": bmc.url, "redfish_username": "u", "redfish_password": "p"}
    data = interface.inspect_hardware(make_task({"driver_info": info}))
    return data, time.monotonic() - began


def test_a_server_of_24_drives_and_12_interfaces_at_200_ms_per_request_takes_less_than_8_seconds(interface):
    interface.conf.clear_override("inspection_timeout", group="redfish")
    with serving(server(ALL["drives"], ALL["interfaces"])) as bmc:
        bmc.delay_s = 0.2
        data, seconds = inspected(interface, bmc)

    assert seconds < 8
    assert (len(data.inventory["disks"]), len(data.inventory["interfaces"])) == (24, 12)
    assert bmc.most_at_once == 8
    told = data.plugin_data["redfish_inspection"]
    assert (told["missing"], told["requests"]) == ([], len(bmc.read) - 4)
    assert 0 < told["seconds"] <= seconds


@contextlib.contextmanager
def hanging(bmc: BMC) -> Iterator[None]:
    """Let requests below the system wait until the end of the block."""
    end, original = threading.Event(), bmc.document

    def document(path: str, query: dict[str, list[str]]) -> object:
        if path.count("/") > 4:
            end.wait(20)
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
        with ThreadPoolExecutor(len(bmcs)) as workers:
            (stuck, stuck_s), *others = workers.map(lambda bmc: inspected(interface, bmc), bmcs)

    assert max(seconds for _, seconds in others) < 4
    assert all(not data.plugin_data["redfish_inspection"]["missing"] for data, _ in others)
    assert stuck_s < 7
    assert stuck.plugin_data["redfish_inspection"]["missing"]
    # It told the amount of memory before.
    assert stuck.inventory["memory"]["physical_mb"] == 524288
