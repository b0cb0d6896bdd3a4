from __future__ import annotations

from ironic_rules.models import traits
from tests.walking import walking


@walking("name", ["CUSTOM_GOLD", "HW_CPU_X86_VMX", "CUSTOM_" + "A" * 248])
def test_standard_and_custom_traits_are_accepted(name):
    assert traits.is_trait(name)


@walking("name", ["CUSTOM_", "CUSTOM_gold", "CUSTOM_GOLD\n", "GOLD", "", None, 5,
                                  "CUSTOM_" + "A" * 249])
def test_everything_else_is_refused(name):
    assert not traits.is_trait(name)
