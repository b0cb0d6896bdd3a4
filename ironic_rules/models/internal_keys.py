"""The keys of a node's ``driver_internal_info``: what the service notes there, each of them declared once.

A procedure's own keys begin with its name, see :class:`~ironic_rules.steps.procedures.Procedure`. Plug-ins have others.
"""

from __future__ import annotations

#: Address of the agent of the ramdisk that runs now: each ramdisk has its own address, and its own certificate.
AGENT_URL = "agent_url"
AGENT_VERIFY_CA = "agent_verify_ca"
#: Keys of the agent's address, which ends with its token.
AGENT_ADDRESS = frozenset({AGENT_URL, AGENT_VERIFY_CA})
#: Present while an operation ends that leaves the machine in the ramdisk, whose agent keeps its token.
AGENT_STAYS = "agent_stays"
#: Facts about the agent from its last heartbeat.
AGENT_VERSION = "agent_version"
AGENT_LAST_HEARTBEAT = "agent_last_heartbeat"
AGENT_STATUS = "agent_status"
AGENT_STATUS_MESSAGE = "agent_status_message"
#: The versions of the agent's hardware managers when the steps were planned.
AGENT_MANAGERS = "agent_hardware_managers"
#: The id of the last command of the agent that has been processed.
AGENT_LAST_COMMAND = "agent_last_command"
#: Present once the command of the current step was started.
AGENT_COMMAND_STARTED = "agent_command_started"
#: Present if the machine reboots after the current step.
AGENT_REBOOTS = "agent_reboots"
#: The time of the first of the requests to the agent that have not been answered.
AGENT_SILENT_SINCE = "agent_silent_since"
#: Key, as the agent reads it -> option of ``[deploy]``, as Ironic names it: how clean steps erase disks.
AGENT_ERASURE = {
    "agent_continue_if_secure_erase_failed": "continue_if_disk_secure_erase_fails",
    "agent_enable_ata_secure_erase": "enable_ata_secure_erase",
    "agent_enable_nvme_secure_erase": "enable_nvme_secure_erase",
    "agent_erase_devices_iterations": "shred_random_overwrite_iterations",
    "agent_erase_devices_zeroize": "shred_final_overwrite_with_zeros",
    "agent_erase_skip_read_only": "erase_skip_read_only",
    "disk_erasure_concurrency": "disk_erasure_concurrency",
}

#: The addresses of the BMC, with which lookups compare.
BMC_ADDRESSES = "lookup_bmc_addresses"
#: While a ramdisk runs that this service has booted for an inspection: the node's fields that determine the boot
#: interface used, because a user or a rule may change them before the inspection ends.
MANAGED_BOOT = "inspection_managed_boot"
#: Present while the inspect interface waits for more data than it has received.
WAITS_FOR_MORE = "inspection_waits_for_more"
#: The rescue system was booted, and its heartbeat is awaited.
RESCUE_BOOTED = "rescue_ramdisk_booted"

#: Poll until the current step ends, see :mod:`ironic_rules.steps.procedures`.
STEP_POLL = "step_poll"
#: Boot of a failed procedure's ramdisk that could not be undone. The next procedure that boots one replaces it.
BOOT_LEFT = "ramdisk_boot_left"
#: Present while a step that deletes volumes waits for that.
RAID_DELETES = "raid_step_deletes"

#: The boot device that is set again before each boot, and whether the next boot is left out: ``{device, is_once}``.
RENEWED_BOOT_DEVICE = "renewed_boot_device"

#: Names of the boot scripts that were written, for ramdisks and for instances.
IPXE_SCRIPTS = "ipxe_scripts"
IPXE_INSTANCE_SCRIPTS = "ipxe_instance_scripts"
#: The VIFs for which the node has no port.
VIFS_WITHOUT_PORT = "vifs_without_port"

#: The state of the fake hardware, which exists nowhere else.
FAKE_BOOT_DEVICE = "fake_boot_device"
FAKE_MEDIA = "fake_virtual_media"
FAKE_BIOS_SETTINGS = "fake_bios_settings"
