"""The node does not depend on the order in which a report lists the interfaces: it is that of a directory."""

from __future__ import annotations

import copy
import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import strategies as st

from ironic_rules import rules
from ironic_rules.inspection import payload
from ironic_rules.inspection.hook_settings import HookSettings
from ironic_rules.inspection.hooks import loader
from ironic_rules.inspection.pipeline import Pipeline
from ironic_rules.inspection.shared_addresses import natural
from ironic_rules.models import addresses
from tests import corpus_reports, strategies
from tests.unit.inspection import reports
from tests.unit.inspection.tasks import make_task
from tests.unit.rules import world
from tests.walking import walking

HOOKS = ["ramdisk-error", "validate-interfaces", "ports", "architecture", "parse-lldp", "local-link-connection",
         "physical-network"]
MAP = ("192.0.2.0/24:provider", "198.51.100.0/24:storage", "2001:db8::/32:v6")
#: Rules that read what the hooks have stored, and of several interfaces the first or the last.
RULES = [world.compiled(world.rule(
    uuid=f"00000000-0000-4000-8000-00000000000{number}", conditions=[
        {"op": "is-none", "args": ["{item[value][ipv4_address]}"], "loop": "{plugin_data[valid_interfaces]}",
         "multiple": multiple}],
    actions=[{"op": "extend-attribute", "args": [f"/extra/{multiple}", "{item[value][mac_address]}"],
              "loop": "{plugin_data[all_interfaces]}"}])) for number, multiple in enumerate(["any", "first", "last"])]
SETTINGS = st.builds(
    HookSettings, add_ports=st.sampled_from(["all", "active", "pxe", "disabled"]),
    keep_ports=st.sampled_from(["all", "present", "added"]), update_pxe_enabled=st.booleans(),
    physical_network_cidr_map=st.just(MAP))

#: Others fail before any interface is read, or because of their disks.
MACHINES = [machine for machine in corpus_reports.machines() if "error" not in machine["expect"]]



def test_interfaces_are_in_the_order_of_their_numbers_if_these_are_few() -> None:
    assert sorted(["eth10", "eth2", "eth02"], key=natural) == ["eth02", "eth2", "eth10"]
    assert len(natural("1a" * 2000)[0]) == 1


pipelines: dict[str, Pipeline] = {}


def pipeline(settings: HookSettings) -> Pipeline:
    key = repr(settings)
    if key not in pipelines:
        pipelines[key] = Pipeline(loader.load(HOOKS, settings), settings)
    return pipelines[key]


def inspected(body: dict[str, Any], settings: HookSettings, ports: list[dict[str, Any]], foreign: list[str]) -> Any:
    """Return everything that an inspection leaves: the node, ports, data, and texts without places in the report."""
    sent = payload.split(copy.deepcopy(body))
    task = make_task(ports=copy.deepcopy(ports), foreign=foreign)
    outcome = pipeline(settings).run(task, sent.inventory, sent.plugin_data, rules.RuleSet(RULES))
    changes = task.port_changes()
    for row in changes.created:
        row.pop("uuid")
    return {"node": task.node.changes(), "created": changes.created, "updated": changes.updated,
            "deleted": changes.deleted, "plugin_data": outcome.plugin_data, "macs": sorted(sent.macs),
            "names": list(outcome.plugin_data["all_interfaces"]),
            "messages": Counter(text.split(" is ignored")[-1] for _, text in outcome.messages)}


def is_valid(interface: dict[str, Any]) -> bool:
    """Return whether an interface may become a port: by its own words, not by those of the hooks."""
    found = [addresses.parse(interface[key]) for key in ("ipv4_address", "ipv6_address")]
    return addresses.is_mac(interface["mac_address"]) and not any(each is not None and each.is_loopback
                                                                  for each in found)


def ports_of(addresses_: list[str], draw: st.DrawFn) -> list[dict[str, Any]]:
    chosen = draw(st.lists(st.sampled_from(addresses_), max_size=3, unique=True)) if addresses_ else []
    known = {"switch_id": "d8:9e:f3:00:11:01", "port_id": "7", "switch_info": "by-hand"}
    return [{"address": address, "pxe_enabled": draw(st.booleans()),
             "physical_network": draw(st.sampled_from([None, "storage"])),
             "local_link_connection": draw(st.sampled_from([{}, known]))} for address in chosen]


@pytest.mark.slow
@pytest.mark.parametrize("batch", strategies.batches(60))
def test_the_node_does_not_depend_on_the_order_of_interfaces(batch):
    def holds(body, settings, data):
        listed = body["inventory"]["interfaces"]
        known = sorted({addresses.normalize_mac(each["mac_address"]) for each in listed
                        if addresses.is_mac(each["mac_address"])})
        ports = ports_of([*known, "52:54:00:00:00:99"], data.draw)
        free = [address for address in known if address not in {port["address"] for port in ports}]
        foreign = data.draw(st.lists(st.sampled_from(free), max_size=1)) if free else []
        before = inspected(body, settings, ports, foreign)

        order = data.draw(st.permutations(range(len(listed))))
        body["inventory"]["interfaces"] = [listed[index] for index in order]
        after = inspected(body, settings, ports, foreign)

        assert after == before
        check_ports(before, listed, settings, ports, foreign)

    strategies.check(batch, holds, body=reports.bodies(), settings=SETTINGS, data=st.data())


@walking("machine", MACHINES)
def test_the_machines_of_the_corpus_do_not_depend_on_it_either(machine):
    body = corpus_reports.body(machine)
    listed = body["inventory"]["interfaces"]
    settings = HookSettings(add_ports="active", physical_network_cidr_map=corpus_reports.NETWORKS)
    results = [inspected(body, settings, [], [])]

    for seed in range(3):
        body["inventory"]["interfaces"] = random.Random(seed).sample(listed, len(listed))
        results.append(inspected(body, settings, [], []))

    assert results == results[:1] * 4
    check_ports(results[0], listed, settings, [], [])


def check_ports(result: Any, listed: list[Any], settings: HookSettings, ports: list[Any], foreign: list[str]) -> None:
    """Compare ports with what the options promise, if no name is there twice."""
    names = [each["name"] for each in listed]
    if len(set(names)) < len(names):
        return
    data, valid = result["plugin_data"], [each for each in listed if is_valid(each)]
    assert set(data["all_interfaces"]) == {each["name"] for each in listed if addresses.is_mac(each["mac_address"])}
    assert set(data["valid_interfaces"]) == {each["name"] for each in valid}
    active = {each["mac_address"].lower() for each in valid if each["ipv4_address"] or each["ipv6_address"]}
    selected = {"all": set(data["macs"]), "active": active, "disabled": set(),
                "pxe": {each["mac_address"] for each in data["valid_interfaces"].values() if each["pxe_enabled"]}}
    wanted = selected[settings.add_ports] - set(foreign) - set(settings.ignored_macs)
    created = [row["address"] for row in result["created"]]
    assert sorted(created) == sorted(wanted - {port["address"] for port in ports})
    added = {each["mac_address"] for each in data["valid_interfaces"].values() if each["is_added"]}
    assert added == wanted
    assert {each["mac_address"] for each in data["valid_interfaces"].values() if not each["is_added"]}.isdisjoint(added)
