"""The parts of the scenarios, and their order."""

from __future__ import annotations

from ironic_rules.lab import scenarios
from ironic_rules.lab.scenarios import BOOTS, Scenarios
from tests.walking import walking


@walking("names, boots, parts", [
    (["discover"], BOOTS, "discover; switch it on again"),
    (["inspect"], BOOTS, "inspect by iPXE; inspect by virtual media"),
    (["inspect"], ["ipxe"], "inspect by iPXE"),
    (["deploy", "clean"], BOOTS, "clean; deploy; undeploy"),
    (["rescue"], BOOTS, "rescue; undeploy"),
    (["all"], BOOTS, "discover; switch it on again; inspect by iPXE; inspect by virtual media; clean; deploy; "
                     "rescue; undeploy; faults"),
])
def test_parts_follow_in_the_order_of_a_life(names: list[str], boots: list[str], parts: str) -> None:
    found = scenarios.parts_of(Scenarios(rig=None), names, boots)  # type: ignore[arg-type]

    assert [name for name, _ in found] == parts.split("; ")
