"""Single documents that polls read from a BMC."""

from __future__ import annotations

import pytest
import sushy.connector
import urllib3

from ironic_rules.exceptions import BMCError
from ironic_rules.hardware.redfish import client, connections
from ironic_rules.hardware.redfish.client import RedfishInterface
from tests.unit.hardware import dripping
from tests.unit.hardware.redfish_bmc import SYSTEM, close_all, documents, serving
from tests.unit.inspection.tasks import make_task
from tests.walking import walking


@pytest.fixture
def bmc(conf, monkeypatch):
    monkeypatch.setattr(client, "CONNECTIONS", client.Connections())
    conf.set_override("auth_type", "basic", group="redfish")
    conf.set_override("connection_retry_interval", 1, group="redfish")
    with serving(documents({"PowerState": "On"}, {"Empty": b"", "List": [1], "Page": b"<html>"})) as found:
        yield found
    close_all(client.CONNECTIONS)


@pytest.fixture
def read(conf, bmc):
    interface = RedfishInterface(conf, lambda node, kind: None)
    info = {"redfish_address": bmc.url, "redfish_username": "u", "redfish_password": "s3cr3t"}
    return lambda path: interface.read(make_task({"driver_info": info}), path)


def test_a_document_is_one_request_with_the_login(bmc, read):
    read(SYSTEM)
    bmc.read.clear()
    bmc.logins.clear()

    status, found = read(SYSTEM)

    assert (status, found["PowerState"], bmc.read) == (200, "On", [SYSTEM])
    assert bmc.logins[0].startswith("Basic ")


def test_what_is_not_there_and_what_is_empty_is_no_error(read):
    assert read(f"{SYSTEM}/None") == (404, {})
    assert read(f"{SYSTEM}/Empty") == (200, {})


@pytest.mark.parametrize("path", ["List", "Page"])
def test_what_is_no_object_is_an_error(read, path):
    with pytest.raises(BMCError, match="sent an invalid response"):
        read(f"{SYSTEM}/{path}")


def test_a_document_that_is_too_large_is_an_error_and_the_next_one_is_read(bmc, read, monkeypatch):
    monkeypatch.setattr(connections, "MAX_BYTES", 100)
    bmc.content[f"{SYSTEM}/Large"] = {"Text": "x" * 200}

    with pytest.raises(BMCError, match="cannot be reached"):
        read(f"{SYSTEM}/Large")
    assert read(f"{SYSTEM}/Empty") == (200, {})


@pytest.mark.parametrize("path", ["http://192.0.2.1/redfish/v1", "//192.0.2.1/redfish/v1", "redfish", ""])
def test_no_other_host_is_asked(bmc, read, path):
    with pytest.raises(BMCError, match="is not one of its paths"):
        read(path)
    assert bmc.read == []


@walking("start", [dripping.HEADERS, dripping.BODY])
def test_a_document_that_comes_in_single_bytes_takes_too_long(start):
    with dripping.server(start) as url, pytest.raises(urllib3.exceptions.HTTPError):
        connector = sushy.connector.Connector(url)
        connector._session = connections.BMCSession(url, False, ())
        client.quick_get(connector, SYSTEM, 10, 0.4)


def test_a_bmc_that_hangs_up_is_asked_once(bmc, read):
    read(SYSTEM)
    bmc.read.clear()
    bmc.broken[SYSTEM] = None

    with pytest.raises(BMCError, match="cannot be reached"):
        read(SYSTEM)
    assert bmc.read == [SYSTEM]


def test_refusals_and_ended_sessions_are_left_to_sushy(bmc, read):
    read(SYSTEM)
    bmc.read.clear()
    bmc.refuse = (401, "no such session s3cr3t")

    with pytest.raises(BMCError, match="refuses the user name or the password") as caught:
        read(SYSTEM)
    assert "s3cr3t" not in str(caught.value)
    assert bmc.read == [SYSTEM, SYSTEM]


def test_a_proxy_of_the_environment_is_used(bmc, read, monkeypatch):
    # It is this BMC: what matters is that the request has the whole URL.
    monkeypatch.setenv("http_proxy", bmc.url)
    monkeypatch.setenv("no_proxy", "")

    with pytest.raises(BMCError):
        read(SYSTEM)
    assert bmc.read[-1].startswith(bmc.url)
