"""E-12 to E-19: the extra specs of flavors over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.functional.whole import Whole, fault

FLAVORS = "/v1/flavors"
COMPUTE = "/compute/v2.1/flavors"
MODES = ("strict", "permissive", "off")
BARE_METAL = {"resources:CUSTOM_GOLD": "1", "resources:VCPU": "0", "resources:MEMORY_MB": "0", "resources:DISK_GB": "0"}
#: Examples of the document, with the modes that accept each.
EXAMPLES = {
    ("hw:cpu_policy", "dedicated"): MODES,
    ("hw:cpu_policy", "deddddicated"): ("off",),
    ("hw:cpu_pollllicy", "dedicated"): ("permissive", "off"),
    ("hw:numa_nodes", "2"): MODES,
    ("hw:numa_nodes", "0"): ("off",),
    ("hw:numa_cpus.0", "0-3,^1"): MODES,
    ("hw:numa_cpus.0", "0-"): ("off",),
    ("hw:numa_cpus.x", "0"): ("permissive", "off"),
    ("foo:bar", "true"): ("permissive", "off"),
}


@pytest.fixture
def whole(service: Whole) -> Iterator[Whole]:
    """The whole service with one flavor."""
    yield service
    for item in service.app.get(FLAVORS).json["flavors"]:
        assert service.app.delete(f"{FLAVORS}/{item['id']}").status_int == 202


@pytest.fixture
def flavor(whole: Whole) -> str:
    """The URL of the extra specs of a flavor that has one."""
    body = {"flavor": {"id": "gold", "name": "bm.gold", "ram": 1024, "vcpus": 2, "disk": 10}}
    assert whole.app.post_json(FLAVORS, body).status_int == 200
    assert whole.app.post_json(f"{FLAVORS}/gold/os-extra_specs", {"extra_specs": BARE_METAL}).status_int == 200
    return f"{FLAVORS}/gold/os-extra_specs"


def stored(whole: Whole, url: str) -> dict[str, str]:
    found: dict[str, str] = whole.app.get(url).json["extra_specs"]
    return found


def refusal(reply: Any) -> str:
    assert reply.status_int == 400, reply.text
    return fault(reply)


def at(version: str) -> dict[str, str]:
    return {"OpenStack-API-Version": f"compute {version}"}


@pytest.mark.parametrize("mode", MODES)
def test_e_12_create_and_update_are_validated(whole, flavor, mode):
    accepted = {}
    for key, value in EXAMPLES:
        replies = [whole.app.post_json(f"{flavor}?validation={mode}", {"extra_specs": {key: value}}),
                   whole.app.put_json(f"{flavor}/{key}?validation={mode}", {key: value})]
        if replies[0].status_int == 200:
            assert replies[0].json["extra_specs"] == {key: value}
            assert replies[1].json[key] == value
        accepted[key, value] = [reply.status_int for reply in replies]

    assert accepted == {example: [200 if mode in modes else 400] * 2 for example, modes in EXAMPLES.items()}


def test_e_13_old_compute_versions_are_not_validated(whole, flavor):
    wrong = {"extra_specs": {"hw:cpu_policy": "deddddicated"}}
    url = f"{COMPUTE}/gold/os-extra_specs"

    assert whole.app.post_json(url, wrong, headers=at("2.85")).json == wrong
    assert whole.app.put_json(f"{url}/foo", {"foo": "bar"}).json == {"foo": "bar"}
    refused = whole.app.post_json(url, wrong, headers=at("2.86"))

    assert (refused.status_int, refused.json["badRequest"]["code"]) == (400, 400)
    assert "/extra_specs/hw:cpu_policy" in refused.json["badRequest"]["message"]
    assert whole.app.post_json(f"{url}?validation=off", wrong, headers=at("2.86")).json == wrong
    assert whole.app.post_json(f"{url}?validation=off", wrong, headers=at("2.85")).status_int == 400


def test_e_14_strict_is_the_default_and_refuses(whole, flavor):
    specs = {"hw:cpu_policy": "shared", "hw:mem_page_size": "huge", "foo:bar": "1", "bare": "1"}

    for query in ("", "?validation=strict"):
        told = refusal(whole.app.post_json(flavor + query, {"extra_specs": specs}))
        assert "/extra_specs/hw:mem_page_size: " in told
        assert "/extra_specs/foo:bar: " in told
        assert "/extra_specs/bare: " in told
        assert "hw:cpu_policy: " not in told
    assert stored(whole, flavor) == BARE_METAL


def test_e_15_permissive_logs_and_allows_unknown_keys(whole, flavor, logged):
    specs = {"hw:cpu_policy": "shared", "foo:bar": "1", "foo:password": "hunter2"}

    reply = whole.app.post_json(f"{flavor}?validation=permissive", {"extra_specs": specs})

    assert reply.json["extra_specs"] == specs
    assert stored(whole, flavor) == BARE_METAL | specs
    lines = [line for line in logged().splitlines() if "which is not known" in line]
    assert ["foo:bar" in line for line in lines] == [True, False]
    assert all("gold" in line and reply.headers["x-openstack-request-id"] in line for line in lines)
    assert "hunter2" not in logged()
    wrong = whole.app.post_json(f"{flavor}?validation=permissive", {"extra_specs": {
        "hw:cpu_policy": "deddddicated", "foo:other": "1"}})
    assert "hw:cpu_policy" in refusal(wrong)
    assert "foo:other" not in logged() + fault(wrong)


def test_e_16_off_checks_and_logs_nothing(whole, flavor, logged):
    specs = {"hw:cpu_policy": "deddddicated", "hw:cpu_pollllicy": "", "foo": "bar"}

    reply = whole.app.post_json(f"{flavor}?validation=off", {"extra_specs": specs})

    assert reply.json == {"extra_specs": specs}
    assert stored(whole, flavor) == BARE_METAL | specs
    assert not any(key in line for line in logged().splitlines() if "HTTP" not in line for key in specs)


@pytest.mark.parametrize("mode", ["", "Strict", "none", "off,strict", "strict&validation=off"])
def test_e_17_any_other_mode_is_refused(whole, flavor, mode):
    urls = (f"{flavor}?validation={mode}", f"{COMPUTE}/gold/os-extra_specs?validation={mode}")
    replies = [whole.app.post_json(url, {"extra_specs": {"hw:cpu_policy": "shared"}}, headers=at("2.86"))
               for url in urls]
    put = whole.app.put_json(f"{flavor}/hw:cpu_policy?validation={mode}", {"hw:cpu_policy": "shared"})

    assert [reply.status_int for reply in (*replies, put)] == [400] * 3
    assert "validation" in fault(put)
    assert stored(whole, flavor) == BARE_METAL


def test_e_18_a_wrong_value_is_refused(whole, flavor):
    told = refusal(whole.app.post_json(flavor, {"extra_specs": {"hw:cpu_policy": "deddddicated"}}))

    assert told.startswith("/extra_specs/hw:cpu_policy: ")
    assert "'dedicated'" in told
    assert stored(whole, flavor) == BARE_METAL


def test_e_19_a_wrong_key_is_refused(whole, flavor):
    told = refusal(whole.app.post_json(flavor, {"extra_specs": {"hw:cpu_pollllicy": "dedicated"}}))

    assert told.startswith("/extra_specs/hw:cpu_pollllicy: ")
    assert "'hw:cpu_policy'" in told
    assert stored(whole, flavor) == BARE_METAL
