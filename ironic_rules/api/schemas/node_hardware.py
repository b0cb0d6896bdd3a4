"""Bodies of requests on a node's machine: ``management``, ``vmedia``, ``vendor_passthru``, some of its ``states``."""

from __future__ import annotations

from ironic_rules.api import schema
from ironic_rules.hardware.base import DEVICE_TYPES

BOOT_DEVICE = schema.Object(
    {"boot_device": schema.Text(255, min_length=1), "persistent": schema.Boolean(nullable=True)},
    required=("boot_device",))
#: An empty body, or an empty object.
NOTHING = schema.Object({}, nullable=True)
#: What is meant is for the interface to check.
INDICATOR = schema.Object({"state": schema.Text(255, min_length=1)}, required=("state",))
BOOT_MODE = schema.Object({"target": schema.Enum("uefi", "bios")}, required=("target",))
SECURE_BOOT = schema.Object({"target": schema.Boolean()}, required=("target",))
#: The node's RAID interface checks its content.
RAID_CONFIG = schema.Map()
CONSOLE = schema.Object({"enabled": schema.Boolean()}, required=("enabled",))
VMEDIA = schema.Object({
    "device_type": schema.Enum(*DEVICE_TYPES), "image_url": schema.HttpUrl(2048),
    "image_download_source": schema.Enum("http", "local", "swift", nullable=True),
}, required=("device_type", "image_url"))
#: Types of drives, separated by commas.
VMEDIA_TYPES = schema.Object({"device_types": schema.Text(255, min_length=1)}, nullable=True)
#: The arguments of a vendor method, which checks them.
VENDOR_ARGUMENTS = schema.Map(nullable=True)
