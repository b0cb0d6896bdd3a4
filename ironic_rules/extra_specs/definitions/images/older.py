"""Older names of image properties, which Nova still reads."""

from __future__ import annotations

from collections.abc import Iterator

from ironic_rules.extra_specs.definitions.images import guest, hardware, image
from ironic_rules.extra_specs.validators import ExtraSpecValidator

#: older name: present name
_NAMES = {
    "architecture": "hw_architecture",
    "auto_disk_config": "hw_auto_disk_config",
    "bdm_v2": "img_bdm_v2",
    "bittorrent": "img_bittorrent",
    "block_device_mapping": "img_block_device_mapping",
    "cache_in_nova": "img_cache_in_nova",
    "hypervisor_type": "img_hv_type",
    "hypervisor_version_requires": "img_hv_requested_version",
    "ipxe_boot": "hw_ipxe_boot",
    "mappings": "img_mappings",
    "owner_id": "img_owner_id",
    "root_device_name": "img_root_device_name",
    "vm_mode": "hw_vm_mode",
    "vmware_disktype": "hw_disk_type",
    "vmware_image_version": "img_version",
    "vmware_linked_clone": "img_linked_clone",
    "vmware_ostype": "os_distro",
    "xenapi_device_id": "hw_device_id",
    "xenapi_image_compression_level": "img_compression_level",
    "xenapi_skip_agent_inject_files_at_boot": "os_skip_agent_inject_files_at_boot",
    "xenapi_skip_agent_inject_ssh": "os_skip_agent_inject_ssh",
    "xenapi_use_agent": "img_use_agent",
}


def _older() -> Iterator[ExtraSpecValidator]:
    present = {item.name: item for item in [*hardware.PROPERTIES, *image.PROPERTIES, *guest.PROPERTIES]}
    for name, replaced_by in _NAMES.items():
        item = present[replaced_by]
        yield ExtraSpecValidator(name, item.description, item.value, deprecated=True, replaced_by=replaced_by,
                                 drivers=item.drivers)
    yield ExtraSpecValidator("vmware_adaptertype", "The controller of disks.",
                             {"type": str, "description": "The model, or ``ide``.",
                              "enum": ("ide", *hardware.SCSI_MODELS), "aliases": hardware.SCSI_MODEL_ALIASES},
                             deprecated=True, replaced_by="hw_scsi_model", drivers=["vmware"])


PROPERTIES = [*_older()]
