"""The virtual hardware that an image needs: ``hw_*``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ironic_rules.extra_specs.definitions import hw
from ironic_rules.extra_specs.definitions.hw import CPU_MAP, LIBVIRT
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
#: What VMware calls them.
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


def _property(name: str, description: str, value: Mapping[str, Any], says: str, *, drivers: Sequence[str] = LIBVIRT,
              flavor: str = "", **more: Any) -> ExtraSpecValidator:
    """Return a property; ``flavor`` is the extra spec beside it, ``=`` for that of the same name."""
    spec = f"hw:{name}" if flavor == "=" else flavor
    return ExtraSpecValidator(f"hw_{name}", description, {**value, "description": says}, drivers=drivers, see_also=spec,
                              **more)


def _choice(values: Sequence[str], aliases: Mapping[str, str] | None = None) -> Mapping[str, Any]:
    return {"type": str, "enum": values, "aliases": aliases}


PROPERTIES = [
    _property("architecture", "The architecture of the processors that the image is for.",
              _choice(ARCHITECTURES, ARCHITECTURE_ALIASES), "An architecture.", drivers=()),
    _property("auto_disk_config", "Whether the root partition grows to the size of the disk.", _TEXT, "A boolean.",
              drivers=()),
    _property("boot_menu", "Lets a user at the console choose a boot device.", _FLAG,
              "Whether there is a boot menu.", flavor="="),
    _property("cdrom_bus", "The bus of CD-ROM drives.", _choice(DISK_BUSES), "A bus."),
    _property("cpu_cores", "The number of cores in each socket.", _POSITIVE, "Cores of a socket.", flavor="="),
    _property("cpu_max_cores", "The highest number of cores in each socket.", _POSITIVE, "Cores of a socket.",
              flavor="="),
    _property("cpu_max_sockets", "The highest number of sockets.", _POSITIVE, "Sockets.", flavor="="),
    _property("cpu_max_threads", "The highest number of threads in each core.", _POSITIVE, "Threads of a core.",
              flavor="="),
    _property("cpu_policy", "Whether virtual CPUs have host CPUs of their own. It may not contradict the flavor.",
              _choice(hw.CPU_POLICIES), "The policy.", flavor="="),
    _property("cpu_realtime_mask", "Which virtual CPUs are real-time, and with ``^`` which are not.", CPU_MAP,
              "Virtual CPUs, as a CPU map.", flavor="="),
    _property("cpu_sockets", "The number of sockets.", _POSITIVE, "Sockets.", flavor="="),
    _property("cpu_thread_policy", "Where dedicated CPUs come from on hosts with simultaneous multithreading.",
              _choice(hw.CPU_THREAD_POLICIES), "The policy.", flavor="="),
    _property("cpu_threads", "The number of threads in each core.", _POSITIVE, "Threads of a core.", flavor="="),
    _property("device_id", "The version of the interface to Xen's tools in the guest.", {"type": int}, "A version.",
              drivers=["xenapi"]),
    _property("disk_bus", "The bus of disks.", _choice(DISK_BUSES), "A bus."),
    _property("disk_type", "How the disk is allocated.", _TEXT, "Such as ``sparse`` or ``preallocated``.",
              drivers=["vmware"]),
    _property("emulation_architecture", "The architecture that the host emulates, where it is not the host's own.",
              _choice(ARCHITECTURES, ARCHITECTURE_ALIASES), "An architecture."),
    _property("ephemeral_encryption", "Encrypts the instance's local disks.", _FLAG,
              "Whether local disks are encrypted.", flavor="="),
    _property("ephemeral_encryption_format", "How local disks are encrypted.", _choice(hw.ENCRYPTION_FORMATS),
              "The format.", flavor="="),
    _property("ephemeral_encryption_secret_uuid", "The secret with which the image is encrypted.",
              {"type": str, "pattern": UUID}, "A UUID."),
    _property("firmware_stateless", "Whether the firmware keeps nothing between boots.", _FLAG,
              "Whether it is stateless.", requires=["hw_firmware_type"]),
    _property("firmware_type", "The firmware that boots the image.", _choice(("uefi", "bios")), "The firmware."),
    _property("floppy_bus", "The bus of floppy disks.", _choice(DISK_BUSES), "A bus."),
    _property("input_bus", "The bus of the keyboard and the pointer.", _choice(("usb", "virtio")), "A bus."),
    _property("ipxe_boot", "Whether the image is a CD that boots from the network.", _FLAG, "Whether it is.",
              drivers=["xenapi"]),
    _property("locked_memory", "Keeps the guest's memory from being swapped out.", _FLAG, "Whether memory is locked.",
              flavor="="),
    _property("machine_type", "The machine that is emulated.", _TEXT, "A name of QEMU's, such as ``q35``."),
    _property("maxphysaddr_bits", "The width of the guest's physical addresses.", _POSITIVE, "Bits of an address.",
              flavor="="),
    _property("maxphysaddr_mode", "Whether that width is the host's or emulated.", _choice(hw.PHYSICAL_ADDRESS_MODES),
              "The mode.", flavor="="),
    _property("mem_encryption", "Encrypts the guest's memory.", _FLAG, "Whether memory is encrypted.", flavor="="),
    _property("mem_encryption_model", "The feature of the processor that encrypts it.",
              _choice(hw.MEMORY_ENCRYPTION_MODELS), "The feature.", flavor="="),
    _property("mem_page_size", "The size of the host's pages that memory consists of.",
              {"type": str, "format": "page-size"}, "A word, or a number of KiB, or a number with a unit.", flavor="="),
    _property("numa_cpus.{num}", "Which virtual CPUs belong to a virtual NUMA node.", CPU_MAP,
              "Virtual CPUs, as a CPU map.", parameters=[_NODE], flavor="="),
    _property("numa_mem.{num}", "How much memory belongs to a virtual NUMA node.", _POSITIVE, "Memory in MiB.",
              parameters=[_NODE], flavor="="),
    _property("numa_nodes", "The number of virtual NUMA nodes.", _POSITIVE, "Virtual NUMA nodes.", flavor="="),
    _property("pci_numa_affinity_policy", "How near PCI devices must be to the instance's CPUs.",
              _choice(hw.PCI_AFFINITY_POLICIES), "The policy.", flavor="="),
    _property("pmu", "Whether the guest has a virtual performance monitoring unit.", _FLAG, "Whether there is one.",
              flavor="="),
    _property("pointer_model", "The pointer of the console.", _choice(("usbtablet",)), "The model."),
    _property("qemu_guest_agent", "Whether QEMU's agent runs in the guest.", _FLAG, "Whether it does."),
    _property("redirected_usb_ports", "The number of USB ports through which a client's devices reach the guest.",
              {"type": int, "min": 0, "max": hw.MAX_USB_PORTS}, "Ports.", flavor="="),
    _property("rescue_bus", "The bus of the disk from which an instance is rescued.", _choice(DISK_BUSES), "A bus."),
    _property("rescue_device", "The device from which an instance is rescued.",
              _choice(("cdrom", "disk", "floppy", "fs", "lun")), "A device."),
    _property("rng_model", "The device for random numbers.", _choice(("virtio",)), "The model.",
              flavor="hw_rng:allowed"),
    _property("scsi_model", "The controller of SCSI disks.", _choice(SCSI_MODELS, SCSI_MODEL_ALIASES), "The model.",
              drivers=["libvirt", "vmware"]),
    _property("serial_port_count", "The number of serial ports, at most what the flavor has.", {"type": int, "min": 0},
              "Ports.", flavor="="),
    _property("sound_model", "The sound device.", _choice(hw.SOUND_MODELS), "The model.", flavor="="),
    _property("time_hpet", "Whether the guest has a high precision event timer.", _FLAG, "Whether it has."),
    _property("tpm_model", "The interface of the emulated TPM.", _choice(hw.TPM_MODELS), "The model.", flavor="="),
    _property("tpm_version", "The version of the specification that the TPM follows.", _choice(hw.TPM_VERSIONS),
              "The version.", flavor="="),
    _property("usb_model", "The USB controller.", _choice(hw.USB_MODELS), "The model.", flavor="="),
    _property("video_model", "The graphics adapter.",
              _choice(("cirrus", "qxl", "vga", "vmvga", "xen", "virtio", "gop", "none", "bochs")), "The model."),
    _property("video_ram", "The video memory, at most what the flavor allows.", {"type": int, "min": 0},
              "Memory in MiB.", flavor="hw_video:ram_max_mb"),
    _property("vif_model", "The network devices.", _choice(NETWORK_MODELS, NETWORK_MODEL_ALIASES), "The model.",
              drivers=["libvirt", "vmware"]),
    _property("vif_multiqueue_enabled", "Gives network devices as many queues as there are virtual CPUs.", _FLAG,
              "Whether there are several queues.", flavor="="),
    _property("viommu_model", "The virtual IOMMU.", _choice(hw.VIOMMU_MODELS), "The model.", flavor="="),
    _property("virtio_packed_ring", "Lets the guest use virtio's packed rings.", _FLAG,
              "Whether packed rings are offered.", flavor="="),
    _property("vm_mode", "The interface between the guest and its host.",
              _choice(("hvm", "xen", "uml", "exe"), VM_MODE_ALIASES), "The mode."),
    _property("watchdog_action",
              "What happens when the guest does not answer its watchdog any more. It comes before what the flavor "
              "says.", _choice(hw.WATCHDOG_ACTIONS), "The action.", flavor="="),
]
