import contextlib
import json
import socket

import httpx
import pytest

from ironic_rules.simulator import node_setup
from ironic_rules.simulator.client import VERSION_HEADER, ApiError, Client, Retry, Stopped, Unreachable, fault
from tests.walking import walking

BODY = {"inventory": {"interfaces": [{"mac_address": "02:00:00:00:00:01"}]}}


def callbacks(service):
    return [call for call in service.calls if call[1] == "/v1/continue_inspection"]


@pytest.fixture
def waiting_node(service):
    service.nodes["n"] = {"uuid": "n", "name": "n", "provision_state": "inspect wait", "last_error": None}
    service.ports.append({"node_uuid": "n", "address": "02:00:00:00:00:01"})
    return service.nodes["n"]


def test_a_trailing_v1_of_the_endpoint_is_dropped(service):
    with Client(service.url + "/v1/") as client:
        client.check()

    assert [path for _, path, _ in service.calls] == ["/", "/v1/nodes"]


def test_operators_requests_carry_the_microversion(client, service):
    client.get("/v1/nodes")

    assert service.calls[0][2][VERSION_HEADER] == "1.96"


def test_ramdisks_requests_carry_no_microversion(client, service, waiting_node):
    client.send_inventory(json.dumps(BODY).encode())

    assert VERSION_HEADER not in callbacks(service)[0][2]


def test_a_closed_port_is_unreachable_in_one_line():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with Client(url) as client, pytest.raises(Unreachable) as caught:
            client.check()

    assert str(caught.value).startswith(f"cannot connect to {url}: ")
    assert "\n" not in str(caught.value)


@walking("url", ["127.0.0.1:1", "http://[broken", "ftp://127.0.0.1/"])
def test_something_that_is_no_http_url_is_reported(url):
    with Client(url) as client, pytest.raises(Unreachable):
        client.check()


def test_another_service_at_the_endpoint_is_recognized(client, service):
    service.root = ["hello"]

    with pytest.raises(ApiError, match="not a bare-metal API"):
        client.check()


@pytest.mark.parametrize(("version", "told"), [
    ("1.97", r"does not support API version 1\.97, only 1\.1 to 1\.96"), ("next", "only 1.1 to 1.96"),
    ("1.1", r"API version 1\.1 does not have what the simulation needs: use a later one, up to 1\.96")])
def test_an_api_version_that_does_not_suffice_is_reported_with_those_that_do(service, version, told):
    service.faults = [406]

    with Client(service.url, version) as client, pytest.raises(ApiError, match=told):
        client.check()


def test_a_locked_node_is_tried_again(client, service):
    service.faults = [409, 409]

    assert client.get("/v1/nodes") == {"nodes": []}
    assert len(service.calls) == 3


def test_a_conflict_that_is_final_is_not_tried_again(client, service):
    service.faults = [409]

    with pytest.raises(ApiError) as caught:
        client.call("POST", "/v1/nodes", {}, retry_conflict=False)

    assert (caught.value.status, caught.value.uncertain, len(service.calls)) == (409, False, 1)


def test_a_refusal_after_a_server_error_is_uncertain(client, service):
    service.faults = [503, 404]

    with pytest.raises(ApiError) as caught:
        client.get("/v1/nodes")

    assert caught.value.uncertain


def test_tries_are_bounded(client, service):
    service.faults = [503] * 9

    with pytest.raises(ApiError, match="503 not now"):
        client.get("/v1/nodes")

    assert len(service.calls) == 5


def test_all_pages_are_read(client, service):
    service.nodes = {f"n{i}": {"uuid": f"n{i}", "provision_state": "inspecting"} for i in range(5)}
    service.slow_lists = 9

    nodes = client.pages("/v1/nodes", "nodes", provision_state="inspecting", fields="uuid")

    assert [node["uuid"] for node in nodes] == ["n0", "n1", "n2", "n3", "n4"]


@pytest.mark.parametrize("status", [409, 500, 503, None])
def test_a_callback_is_tried_again(client, service, waiting_node, status):
    service.callback_faults = [(status, False)]

    result = client.send_inventory(json.dumps(BODY).encode())

    assert (result.accepted, result.tries) == (True, 2)


def test_a_callback_that_is_not_found_is_given_up_at_once(client, service):
    result = client.send_inventory(json.dumps(BODY).encode())

    assert (result.accepted, result.uncertain, result.tries) == (False, False, 1)
    assert result.reason == "404 lookup failed"


@pytest.mark.parametrize("status", [None, 502])
def test_not_found_after_a_lost_answer_leaves_the_callback_uncertain(client, service, waiting_node, status):
    service.callback_faults = [(status, True)]

    result = client.send_inventory(json.dumps(BODY).encode())

    assert (result.accepted, result.uncertain, result.tries) == (False, True, 2)
    assert waiting_node["provision_state"] == "manageable"


def test_delays_double_up_to_six_times_the_base():
    retry = Retry(base_delay_s=5.0)

    assert [retry.delay_s(tries) for tries in (1, 2, 3, 4, 5)] == [5, 10, 20, 30, 30]


def test_an_interrupt_ends_the_waiting(service):
    service.faults = [503]
    with Client(service.url, retry=Retry(base_delay_s=60.0)) as client:
        client.stop.set()

        with pytest.raises(Stopped):
            client.get("/v1/nodes")


@walking("body, text", [
    ('{"error_message": "{\\"faultstring\\": \\"a\\"}"}', "a"),
    ('{"error_message": {"faultstring": "b"}}', "b"),
    ('{"error_message": "plain"}', "plain"),
    ('{"faultcode": "Client", "faultstring": "c"}', "c"),
    ('{"title": "d"}', "d"),
    ("<html>", "Not Found"),
    ('{"error_message": "[1]"}', "Not Found"),
])
def test_fault_finds_the_words_in_every_form(body, text):
    assert fault(httpx.Response(404, text=body)) == text


@pytest.mark.parametrize(("faults", "is_error"), [([503, 404], False), ([503] * 9, True), ([503, 500], True)])
def test_a_state_that_was_never_requested_is_not_waited_for(client, service, faults, is_error):
    service.faults = faults

    with pytest.raises(ApiError) if is_error else contextlib.nullcontext():
        node_setup.request_state(client, "n", "inspect")
