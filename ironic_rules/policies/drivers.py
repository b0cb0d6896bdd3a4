"""Policies of ``/v1/drivers``."""

from __future__ import annotations

from ironic_rules.policies.base import ADMIN, READER, documented

GET = "baremetal:driver:get"
GET_PROPERTIES = "baremetal:driver:get_properties"
GET_RAID = "baremetal:driver:get_raid_logical_disk_properties"
VENDOR_PASSTHRU = "baremetal:driver:vendor_passthru"

RULES = [
    documented(GET, READER, "List and show drivers", ("GET", "/v1/drivers"), ("GET", "/v1/drivers/{driver}")),
    documented(GET_PROPERTIES, READER, "Show the properties of a driver", ("GET", "/v1/drivers/{driver}/properties")),
    documented(GET_RAID, READER, "Show the properties of a driver's logical disks",
               ("GET", "/v1/drivers/{driver}/raid/logical_disk_properties")),
    documented(VENDOR_PASSTHRU, ADMIN, "List and call the vendor methods of a driver",
               ("GET", "/v1/drivers/{driver}/vendor_passthru/methods"),
               *((method, "/v1/drivers/{driver}/vendor_passthru?method={method_name}")
                 for method in ("GET", "POST", "PUT", "PATCH", "DELETE"))),
]
