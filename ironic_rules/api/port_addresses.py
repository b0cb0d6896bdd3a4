"""Addresses of new and changed ports and port groups."""

from __future__ import annotations

from typing import Any

from ironic_rules.api.request import Request
from ironic_rules.exceptions import InvalidParameterValue, Problem
from ironic_rules.models import addresses


def check(request: Request, values: dict[str, Any]) -> None:
    """Replace an InfiniBand address in ``values["address"]`` by the MAC address that stands for it.

    :raises InvalidParameterValue: 400, ``[DEFAULT]infiniband_addresses`` is off
    """
    if (found := addresses.mac_of_infiniband(values.get("address"))) is None:
        return
    if not request.conf.infiniband_addresses:
        raise InvalidParameterValue(problems=[Problem("/address", (
            "expected a MAC address of the form xx:xx:xx:xx:xx:xx; addresses of InfiniBand are accepted if the option "
            "infiniband_addresses is on"))])
    values["address"] = found
