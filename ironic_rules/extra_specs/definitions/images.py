"""Properties of images: ``hw_*``, ``img_*``, ``os_*`` and traits; the older names of some of them are deprecated.

They describe the virtual hardware that an image needs, the image and its start, and its operating system.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ironic_rules.extra_specs.definitions import compute
from ironic_rules.extra_specs.definitions.compute import CPU_MAP, LIBVIRT
from ironic_rules.extra_specs.definitions.scheduling import standard_traits
from ironic_rules.extra_specs.validators import ExtraSpecValidator

ARCHITECTURES = (
    "aarch64", "alpha", "armv6", "armv7b", "armv7l", "cris", "i686", "ia64", "lm32", "m68k", "microblaze",
    "microblazeel", "mips", "mips64", "mips64el", "mipsel", "openrisc", "parisc", "parisc64", "ppc", "ppc64", "ppc64le",
    "ppcemb", "ppcle", "s390", "s390x", "sh4", "sh4eb", "sparc", "sparc64", "unicore32", "x86_64", "xtensa", "xtensaeb")
ARCHITECTURE_ALIASES = {
    "amd64": "x86_64", "i386": "i686", "i486": "i686", "i586": "i686", "x86_32": "i686", "x86_32p": "i686"}
DISK_BUSES = ("fdc", "ide", "sata", "scsi", "usb", "virtio", "xen", "lxc", "uml")
NETWORK_MODELS = (
    "virtio", "ne2k_pci", "pcnet", "rtl8139", "e1000", "e1000e", "igb", "netfront", "spapr-vlan", "lan9118", "sriov",
    "vmxnet", "vmxnet3")
SCSI_MODELS = ("buslogic", "ibmvscsi", "lsilogic", "lsisas1068", "lsisas1078", "virtio-scsi", "vmpvscsi")
#: VMware's names of network models.
NETWORK_MODEL_ALIASES = {
    "virtuale1000": "e1000", "virtuale1000e": "e1000e", "virtualpcnet32": "pcnet", "virtualsriovethernetcard": "sriov",
    "virtualvmxnet": "vmxnet", "virtualvmxnet3": "vmxnet3"}
SCSI_MODEL_ALIASES = {"lsilogicsas": "lsisas1068", "paravirtual": "vmpvscsi"}
VM_MODE_ALIASES = {"pv": "xen", "hv": "hvm", "baremetal": "hvm"}
UUID = "[0-9A-Fa-f]{8}-?(?:[0-9A-Fa-f]{4}-?){3}[0-9A-Fa-f]{12}"
_NODE = {"name": "num", "description": "The virtual NUMA node, from 0.", "type": int}
_FLAG: Mapping[str, Any] = {"type": bool}
_POSITIVE: Mapping[str, Any] = {"type": int, "min": 1}
_TEXT: Mapping[str, Any] = {"type": str}


def _hardware_property(name: str, description: str, value: Mapping[str, object], says: str, *,
                       drivers: Sequence[str] = LIBVIRT,
                       flavor: str = "", **more: Any) -> ExtraSpecValidator:
    """Return a property; ``flavor`` is the extra spec beside it, ``=`` for that of the same name."""
    spec = f"hw:{name}" if flavor == "=" else flavor
    return ExtraSpecValidator(f"hw_{name}", description, {**value, "description": says}, drivers=drivers, see_also=spec,
                              **more)


def _choice(values: Sequence[str], aliases: Mapping[str, str] | None = None) -> Mapping[str, Any]:
    return {"type": str, "enum": values, "aliases": aliases}


HARDWARE_PROPERTIES = [
    _hardware_property("architecture", "The architecture of the processors that the image is for.",
                       _choice(ARCHITECTURES, ARCHITECTURE_ALIASES), "An architecture.", drivers=()),
    _hardware_property("auto_disk_config", "Whether the root partition grows to the size of the disk.", _TEXT,
                       "A boolean.",
                       drivers=()),
    _hardware_property("boot_menu", "Lets a user at the console choose a boot device.", _FLAG,
                       "Whether there is a boot menu.", flavor="="),
    _hardware_property("cdrom_bus", "The bus of CD-ROM drives.", _choice(DISK_BUSES), "A bus."),
    _hardware_property("cpu_cores", "The number of cores in each socket.", _POSITIVE, "Cores of a socket.", flavor="="),
    _hardware_property("cpu_max_cores", "The highest number of cores in each socket.", _POSITIVE, "Cores of a socket.",
                       flavor="="),
    _hardware_property("cpu_max_sockets", "The highest number of sockets.", _POSITIVE, "Sockets.", flavor="="),
    _hardware_property("cpu_max_threads", "The highest number of threads in each core.", _POSITIVE,
                       "Threads of a core.",
                       flavor="="),
    _hardware_property("cpu_policy",
                       "Whether virtual CPUs have host CPUs of their own. It may not contradict the flavor.",
                       _choice(compute.CPU_POLICIES), "The policy.", flavor="="),
    _hardware_property("cpu_realtime_mask", "The virtual CPUs that are real-time, or with ``^`` those that are not.",
                       CPU_MAP, "Virtual CPUs, as a CPU map.", flavor="="),
    _hardware_property("cpu_sockets", "The number of sockets.", _POSITIVE, "Sockets.", flavor="="),
    _hardware_property("cpu_thread_policy", "Where dedicated CPUs come from on hosts with simultaneous multithreading.",
                       _choice(compute.CPU_THREAD_POLICIES), "The policy.", flavor="="),
    _hardware_property("cpu_threads", "The number of threads in each core.", _POSITIVE, "Threads of a core.",
                       flavor="="),
    _hardware_property("device_id", "The version of the interface to Xen's tools in the guest.", {"type": int},
                       "A version.",
                       drivers=["xenapi"]),
    _hardware_property("disk_bus", "The bus of disks.", _choice(DISK_BUSES), "A bus."),
    _hardware_property("disk_type", "The allocation of the disk.", _TEXT, "Such as ``sparse`` or ``preallocated``.",
                       drivers=["vmware"]),
    _hardware_property("emulation_architecture",
                       "The architecture that the host emulates, where it is not the host's own.",
                       _choice(ARCHITECTURES, ARCHITECTURE_ALIASES), "An architecture."),
    _hardware_property("ephemeral_encryption", "Encrypts the instance's local disks.", _FLAG,
                       "Whether local disks are encrypted.", flavor="="),
    _hardware_property("ephemeral_encryption_format", "The encryption of local disks.",
                       _choice(compute.ENCRYPTION_FORMATS),
                       "The format.", flavor="="),
    _hardware_property("ephemeral_encryption_secret_uuid", "The secret with which the image is encrypted.",
                       {"type": str, "pattern": UUID}, "A UUID."),
    _hardware_property("firmware_stateless", "Whether the firmware keeps nothing between boots.", _FLAG,
                       "Whether it is stateless.", requires=["hw_firmware_type"]),
    _hardware_property("firmware_type", "The firmware that boots the image.", _choice(("uefi", "bios")),
                       "The firmware."),
    _hardware_property("floppy_bus", "The bus of floppy disks.", _choice(DISK_BUSES), "A bus."),
    _hardware_property("input_bus", "The bus of the keyboard and the pointer.", _choice(("usb", "virtio")), "A bus."),
    _hardware_property("ipxe_boot", "Whether the image is a CD that boots from the network.", _FLAG, "Whether it is.",
                       drivers=["xenapi"]),
    _hardware_property("locked_memory", "Keeps the guest's memory from being swapped out.", _FLAG,
                       "Whether memory is locked.",
                       flavor="="),
    _hardware_property("machine_type", "The machine that is emulated.", _TEXT, "A name of QEMU's, such as ``q35``."),
    _hardware_property("maxphysaddr_bits", "The width of the guest's physical addresses.", _POSITIVE,
                       "Bits of an address.",
                       flavor="="),
    _hardware_property("maxphysaddr_mode", "Whether that width is the host's or emulated.",
                       _choice(compute.PHYSICAL_ADDRESS_MODES),
                       "The mode.", flavor="="),
    _hardware_property("mem_encryption", "Encrypts the guest's memory.", _FLAG, "Whether memory is encrypted.",
                       flavor="="),
    _hardware_property("mem_encryption_model", "The feature of the processor that encrypts it.",
                       _choice(compute.MEMORY_ENCRYPTION_MODELS), "The feature.", flavor="="),
    _hardware_property("mem_page_size", "The size of the host's pages that memory consists of.",
                       {"type": str, "format": "page-size"}, "A word, or a number of KiB, or a number with a unit.",
                       flavor="="),
    _hardware_property("numa_cpus.{num}", "The virtual CPUs of a virtual NUMA node.", CPU_MAP,
                       "Virtual CPUs, as a CPU map.", parameters=[_NODE], flavor="="),
    _hardware_property("numa_mem.{num}", "The memory of a virtual NUMA node.", _POSITIVE, "Memory in MiB.",
                       parameters=[_NODE], flavor="="),
    _hardware_property("numa_nodes", "The number of virtual NUMA nodes.", _POSITIVE, "Virtual NUMA nodes.", flavor="="),
    _hardware_property("pci_numa_affinity_policy", "The distance of PCI devices from the instance's CPUs.",
                       _choice(compute.PCI_AFFINITY_POLICIES), "The policy.", flavor="="),
    _hardware_property("pmu", "Whether the guest has a virtual performance monitoring unit.", _FLAG,
                       "Whether there is one.",
                       flavor="="),
    _hardware_property("pointer_model", "The pointer of the console.", _choice(("usbtablet",)), "The model."),
    _hardware_property("qemu_guest_agent", "Whether QEMU's agent runs in the guest.", _FLAG, "Whether it does."),
    _hardware_property("redirected_usb_ports",
                       "The number of USB ports through which a client's devices reach the guest.",
                       {"type": int, "min": 0, "max": compute.MAX_USB_PORTS}, "Ports.", flavor="="),
    _hardware_property("rescue_bus", "The bus of the disk from which an instance is rescued.", _choice(DISK_BUSES),
                       "A bus."),
    _hardware_property("rescue_device", "The device from which an instance is rescued.",
                       _choice(("cdrom", "disk", "floppy", "fs", "lun")), "A device."),
    _hardware_property("rng_model", "The device for random numbers.", _choice(("virtio",)), "The model.",
                       flavor="hw_rng:allowed"),
    _hardware_property("scsi_model", "The controller of SCSI disks.", _choice(SCSI_MODELS, SCSI_MODEL_ALIASES),
                       "The model.",
                       drivers=["libvirt", "vmware"]),
    _hardware_property("serial_port_count", "The number of serial ports, at most what the flavor has.",
                       {"type": int, "min": 0},
                       "Ports.", flavor="="),
    _hardware_property("sound_model", "The sound device.", _choice(compute.SOUND_MODELS), "The model.", flavor="="),
    _hardware_property("time_hpet", "Whether the guest has a high precision event timer.", _FLAG, "Whether it has."),
    _hardware_property("tpm_model", "The interface of the emulated TPM.", _choice(compute.TPM_MODELS), "The model.",
                       flavor="="),
    _hardware_property("tpm_version", "The version of the specification that the TPM follows.",
                       _choice(compute.TPM_VERSIONS),
                       "The version.", flavor="="),
    _hardware_property("usb_model", "The USB controller.", _choice(compute.USB_MODELS), "The model.", flavor="="),
    _hardware_property("video_model", "The graphics adapter.",
                       _choice(("cirrus", "qxl", "vga", "vmvga", "xen", "virtio", "gop", "none", "bochs")),
                       "The model."),
    _hardware_property("video_ram", "The video memory, at most what the flavor allows.", {"type": int, "min": 0},
                       "Memory in MiB.", flavor="hw_video:ram_max_mb"),
    _hardware_property("vif_model", "The network devices.", _choice(NETWORK_MODELS, NETWORK_MODEL_ALIASES),
                       "The model.",
                       drivers=["libvirt", "vmware"]),
    _hardware_property("vif_multiqueue_enabled", "Gives network devices as many queues as there are virtual CPUs.",
                       _FLAG,
                       "Whether there are several queues.", flavor="="),
    _hardware_property("viommu_model", "The virtual IOMMU.", _choice(compute.VIOMMU_MODELS), "The model.", flavor="="),
    _hardware_property("virtio_packed_ring", "Lets the guest use virtio's packed rings.", _FLAG,
                       "Whether packed rings are offered.", flavor="="),
    _hardware_property("vm_mode", "The interface between the guest and its host.",
                       _choice(("hvm", "xen", "uml", "exe"), VM_MODE_ALIASES), "The mode."),
    _hardware_property("watchdog_action",
                       "The action when the guest no longer answers its watchdog. It precedes the flavor's.",
                       _choice(compute.WATCHDOG_ACTIONS), "The action.", flavor="="),
]


HYPERVISORS = (
    "baremetal", "bhyve", "docker", "fake", "hyperv", "ironic", "kqemu", "kvm", "lxc", "lxd", "openvz", "parallels",
    "phyp", "prsm", "qemu", "test", "uml", "vbox", "vmware", "vz", "xen", "zvm")
SIGNATURE_HASHES = ("SHA-224", "SHA-256", "SHA-384", "SHA-512")
SIGNATURE_KEYS = (
    "DSA", "ECC_SECP384R1", "ECC_SECP521R1", "ECC_SECT409K1", "ECC_SECT409R1", "ECC_SECT571K1", "ECC_SECT571R1",
    "RSA-PSS")
#: As Nova reads a requirement such as ``>=2.6,<4``.
_VERSIONS = r"\s*(?:<|<=|==|!=|>=|>)\s*[0-9.]+\s*(?:,\s*(?:<|<=|==|!=|>=|>)\s*[0-9.]+\s*)*"
_SIGNATURE = ["img_signature", "img_signature_certificate_uuid", "img_signature_hash_method", "img_signature_key_type"]


def _image_property(name: str, description: str, value: Mapping[str, object], says: str, *, drivers: Sequence[str] = (),
                    **more: Any) -> ExtraSpecValidator:
    return ExtraSpecValidator(f"img_{name}", description, {**value, "description": says}, drivers=drivers, **more)


def _signature(name: str, description: str, value: Mapping[str, object], says: str) -> ExtraSpecValidator:
    return _image_property(name, description, value, says,
                           requires=[other for other in _SIGNATURE if other != f"img_{name}"])


IMAGE_PROPERTIES = [
    _image_property("bdm_v2", "Whether ``img_block_device_mapping`` has the present form.", {"type": bool},
                    "Whether it has."),
    _image_property("bittorrent", "Whether hosts load the image with BitTorrent.", {"type": bool}, "Whether they do.",
                    drivers=["xenapi"]),
    _image_property("block_device_mapping", "The disks of a server from which the image was made.", {"type": str},
                    "A list in JSON, as Nova writes it."),
    _image_property("cache_in_nova", "Whether hosts keep the image, where they keep some only.", {"type": bool},
                    "Whether they do.", drivers=["xenapi"]),
    _image_property("compression_level", "The compression of uploaded images.", {"type": int, "min": 1, "max": 9},
                    "A level.", drivers=["xenapi"]),
    _image_property("config_drive", "Whether the image needs a config drive.",
                    {"type": str, "enum": ("optional", "mandatory")}, "Whether it does."),
    _image_property("hide_hypervisor_id", "Keeps the hypervisor's signature from the guest.", {"type": bool},
                    "Whether it is hidden.", drivers=["libvirt"], see_also="hw:hide_hypervisor_id"),
    _image_property("hv_requested_version", "The versions of the hypervisor with which the image works.",
                    {"type": str, "pattern": _VERSIONS}, "Comparisons, such as ``>=2.6``."),
    _image_property("hv_type", "The hypervisor that the image is for.",
                    {"type": str, "enum": HYPERVISORS, "aliases": {"xapi": "xen"}}, "A hypervisor."),
    _image_property("linked_clone", "Whether disks are linked to the image instead of copies.", {"type": bool},
                    "Whether they are.", drivers=["vmware"]),
    _image_property("mappings", "Names of disks and their devices.", {"type": str},
                    "A list in JSON, as Nova writes it."),
    _image_property("owner_id", "The project that uploaded the image.", {"type": str}, "A project."),
    _image_property("root_device_name", "The device of the root disk.", {"type": str}, "Such as ``/dev/vda``."),
    _signature("signature", "The signature of the image's data.", {"type": str}, "Base64."),
    _signature("signature_certificate_uuid", "The certificate for the signature.", {"type": str, "pattern": UUID},
               "A UUID."),
    _signature("signature_hash_method", "The hash that is signed.", {"type": str, "enum": SIGNATURE_HASHES}, "A hash."),
    _signature("signature_key_type", "The kind of key that signed it.", {"type": str, "enum": SIGNATURE_KEYS},
               "A kind of key."),
    _image_property("use_agent", "Whether Nova's agent runs in the guest.", {"type": bool}, "Whether it does.",
                    drivers=["xenapi"]),
    _image_property("version", "The version of the image's format.", {"type": int}, "A version.", drivers=["vmware"]),
]


GUEST_PROPERTIES = [
    ExtraSpecValidator("os_admin_user", "The user whose password Nova sets.", {"type": str, "description": "A user."},
                       drivers=["libvirt"]),
    ExtraSpecValidator("os_command_line", "Arguments for the guest's kernel, instead of those that Nova writes.",
                       {"type": str, "description": "Arguments."}, drivers=["libvirt"]),
    ExtraSpecValidator("os_distro", "The distribution.", {"type": str, "description": "Such as ``ubuntu``."}),
    ExtraSpecValidator("os_require_quiesce",
                       "Refuses snapshots of a running server whose file systems cannot be frozen.",
                       {"type": bool, "description": "Whether they are refused."}, drivers=["libvirt"],
                       requires=["hw_qemu_guest_agent"]),
    ExtraSpecValidator("os_secure_boot", "Whether the image boots with UEFI Secure Boot. The flavor comes first.",
                       {"type": str, "description": "Whether it does.", "enum": ("required", "disabled", "optional")},
                       drivers=["libvirt"], see_also="os:secure_boot"),
    ExtraSpecValidator("os_skip_agent_inject_files_at_boot", "Leaves files to the guest's own tools.",
                       {"type": bool, "description": "Whether they are left."}, drivers=["xenapi"]),
    ExtraSpecValidator("os_skip_agent_inject_ssh", "Leaves SSH keys to the guest's own tools.",
                       {"type": bool, "description": "Whether they are left."}, drivers=["xenapi"]),
    ExtraSpecValidator("os_type", "The family of the operating system.",
                       {"type": str, "description": "A family.", "enum": ("linux", "windows"), "aliases": {}}),
]


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
    present = {item.name: item for item in [*HARDWARE_PROPERTIES, *IMAGE_PROPERTIES, *GUEST_PROPERTIES]}
    for name, replaced_by in _NAMES.items():
        item = present[replaced_by]
        yield ExtraSpecValidator(name, item.description, item.value, deprecated=True, replaced_by=replaced_by,
                                 drivers=item.drivers)
    yield ExtraSpecValidator("vmware_adaptertype", "The controller of disks.",
                             {"type": str, "description": "The model, or ``ide``.",
                              "enum": ("ide", *SCSI_MODELS), "aliases": SCSI_MODEL_ALIASES},
                             deprecated=True, replaced_by="hw_scsi_model", drivers=["vmware"])


OLDER_PROPERTIES = [*_older()]


_REQUIRED = {"type": str, "description": "An image can only require a trait.", "enum": ["required"]}

_CUSTOM = {"name": "trait", "description": "The name of the trait after ``CUSTOM_``.", "pattern": "[A-Z0-9_]+"}
_STANDARD = {"name": "trait", "description": "The name of a trait of os-traits.", "enum": standard_traits}

TRAIT_PROPERTIES = [
    ExtraSpecValidator("trait:CUSTOM_{trait}", "Require a custom trait of the host, beside those of the flavor.",
                       _REQUIRED, [_CUSTOM], see_also="trait{group}:CUSTOM_{trait}"),
    ExtraSpecValidator("trait:{trait}", "Require a standard trait of the host, beside those of the flavor.",
                       _REQUIRED, [_STANDARD], see_also="trait{group}:{trait}"),
]


PROPERTIES = [*HARDWARE_PROPERTIES, *IMAGE_PROPERTIES, *GUEST_PROPERTIES, *TRAIT_PROPERTIES, *OLDER_PROPERTIES]
