"""Extra specs of an instance's virtual machine, by namespace.

====================  ==================================================
``hw``                virtual hardware
``hw_rng``            random numbers for the guest
``hw_video``          video memory
``accel``             accelerators
``os``                the guest's operating system and its start
``pci_passthrough``   PCI devices of the host
``vmware``            extra specs of VMware's driver
====================  ==================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ironic_rules.extra_specs.validators import ExtraSpecValidator
from ironic_rules.models.documents import JSONObject

LIBVIRT = ("libvirt",)
CPU_MAP = {"type": str, "format": "cpu-map"}
#: The values that an extra spec and the image property beside it have in common.
CPU_POLICIES = ("dedicated", "shared", "mixed")
CPU_THREAD_POLICIES = ("prefer", "isolate", "require")
ENCRYPTION_FORMATS = ("plain", "luks", "luksv2")
MEMORY_ENCRYPTION_MODELS = ("amd-sev", "amd-sev-es", "amd-sev-snp", "intel-tdx")
PCI_AFFINITY_POLICIES = ("required", "preferred", "legacy", "socket")
PHYSICAL_ADDRESS_MODES = ("passthrough", "emulate")
SOUND_MODELS = ("sb16", "es1370", "pcspk", "ac97", "ich6", "ich9", "usb", "virtio")
TPM_MODELS = ("tpm-tis", "tpm-crb")
TPM_VERSIONS = ("1.2", "2.0")
USB_MODELS = ("none", "nec-xhci", "qemu-xhci")
VIOMMU_MODELS = ("intel", "smmuv3", "virtio", "auto")
WATCHDOG_ACTIONS = ("none", "pause", "poweroff", "reset", "disabled")
MAX_USB_PORTS = 15

_NODE = {"name": "num", "description": "The virtual NUMA node, from 0.", "type": int}


def _spec(name: str, description: str, value: JSONObject, says: str, *, drivers: Sequence[str] = LIBVIRT,
          requires: Sequence[str] = (), image: bool = True, **more: Any) -> ExtraSpecValidator:
    return ExtraSpecValidator(f"hw:{name}", description, {**value, "description": says}, drivers=drivers,
                              requires=requires, see_also=f"hw_{name}" if image else "", **more)


def _choice(values: Sequence[str]) -> JSONObject:
    return {"type": str, "enum": values}


_AT_LEAST_ONE = {"type": int, "min": 1}
_FLAG = {"type": bool}

HW_SPECS = [
    _spec("boot_menu", "Lets a user at the console choose a boot device before the instance boots.", _FLAG,
          "Whether there is a boot menu."),
    _spec("cpu_cores",
          "The number of cores in each socket of the virtual CPUs, if the image does not choose otherwise.",
          _AT_LEAST_ONE, "Cores of a socket."),
    _spec("cpu_dedicated_mask",
          "The virtual CPUs that have host CPUs of their own, in an instance with the policy ``mixed``. All others "
          "share.", CPU_MAP, "Virtual CPUs, as a CPU map.", requires=["hw:cpu_policy"], image=False),
    _spec("cpu_max_cores", "The highest number of cores in each socket that an image can choose.", _AT_LEAST_ONE,
          "Cores of a socket."),
    _spec("cpu_max_sockets", "The highest number of sockets that an image can choose.", _AT_LEAST_ONE, "Sockets."),
    _spec("cpu_max_threads", "The highest number of threads in each core that an image can choose.", _AT_LEAST_ONE,
          "Threads of a core."),
    _spec("cpu_policy",
          "Whether virtual CPUs have host CPUs of their own (``dedicated``), float over those that all share "
          "(``shared``), or some do one and some the other (``mixed``).", _choice(CPU_POLICIES), "The policy."),
    _spec("cpu_realtime", "Runs virtual CPUs with a real-time scheduling policy of the host's kernel.", _FLAG,
          "Whether virtual CPUs are real-time.", requires=["hw:cpu_policy", "hw:cpu_realtime_mask"], image=False),
    _spec("cpu_realtime_mask", "The virtual CPUs that are real-time, or with ``^`` those that are not.", CPU_MAP,
          "Virtual CPUs, as a CPU map.", requires=["hw:cpu_realtime"]),
    _spec("cpu_sockets", "The number of sockets of the virtual CPUs, if the image does not choose otherwise.",
          _AT_LEAST_ONE, "Sockets."),
    _spec("cpu_thread_policy",
          "Where dedicated CPUs come from on hosts with simultaneous multithreading: from thread siblings where "
          "possible (``prefer``), from cores whose siblings remain unused (``isolate``), or from siblings only "
          "(``require``).", _choice(CPU_THREAD_POLICIES), "The policy.", requires=["hw:cpu_policy"]),
    _spec("cpu_threads",
          "The number of threads in each core of the virtual CPUs, if the image does not choose otherwise.",
          _AT_LEAST_ONE, "Threads of a core."),
    _spec("emulator_threads_policy",
          "Where the emulator's own threads run: on a further host CPU for them alone (``isolate``), or on CPUs that "
          "are shared (``share``).", _choice(("isolate", "share")), "The policy.", requires=["hw:cpu_policy"],
          image=False),
    _spec("ephemeral_encryption", "Encrypts the instance's local disks, on hosts that can.", _FLAG,
          "Whether local disks are encrypted."),
    _spec("ephemeral_encryption_format", "The encryption of local disks.", _choice(ENCRYPTION_FORMATS), "The format.",
          requires=["hw:ephemeral_encryption"]),
    ExtraSpecValidator("hw:hide_hypervisor_id",
                       "Keeps the hypervisor's signature from the guest, for drivers that refuse to work in a virtual "
                       "machine.", {"type": bool, "description": "Whether it is hidden."}, drivers=LIBVIRT,
                       see_also="img_hide_hypervisor_id"),
    _spec("locked_memory", "Keeps the guest's memory from being swapped out or moved by the host.", _FLAG,
          "Whether memory is locked.", requires=["hw:mem_page_size"]),
    _spec("maxphysaddr_bits", "The width of the guest's physical addresses.", _AT_LEAST_ONE, "Bits of an address.",
          requires=["hw:maxphysaddr_mode"]),
    _spec("maxphysaddr_mode",
          "Whether the guest's physical addresses are as wide as the host's (``passthrough``) or of a width that is "
          "emulated (``emulate``).", _choice(PHYSICAL_ADDRESS_MODES), "The mode."),
    _spec("mem_encryption", "Encrypts the guest's memory, on hosts whose processors can.", _FLAG,
          "Whether memory is encrypted."),
    _spec("mem_encryption_model", "The feature of the processor that encrypts the guest's memory.",
          _choice(MEMORY_ENCRYPTION_MODELS), "The feature.", requires=["hw:mem_encryption"]),
    _spec("mem_page_size",
          "The size of the host's pages that the guest's memory consists of: that of huge pages (``large``), that of "
          "normal ones (``small``), whatever there is (``any``), or a size.", {"type": str, "format": "page-size"},
          "A word, or a number of KiB, or a number with a unit, such as ``2MB`` or ``1Gi``."),
    _spec("numa_cpus.{num}",
          "The virtual CPUs of a virtual NUMA node. Needed unless all nodes have the same number.",
          CPU_MAP, "Virtual CPUs, as a CPU map.", parameters=[_NODE], requires=["hw:numa_nodes"]),
    _spec("numa_mem.{num}",
          "The memory of a virtual NUMA node. Needed unless all nodes have the same amount.", _AT_LEAST_ONE,
          "Memory in MiB.", parameters=[_NODE], requires=["hw:numa_nodes"]),
    _spec("numa_nodes", "The number of virtual NUMA nodes, each of which is on a host NUMA node of its own.",
          _AT_LEAST_ONE, "Virtual NUMA nodes."),
    _spec("pci_numa_affinity_policy",
          "The distance of PCI devices and SR-IOV ports from the instance's CPUs: on the same NUMA node "
          "(``required``), at the same socket (``socket``), near if possible (``preferred``), or near where the host "
          "knows their place (``legacy``).", _choice(PCI_AFFINITY_POLICIES), "The policy."),
    _spec("pmem", "Persistent memory for the instance, by the labels that the host's configuration has for it.",
          {"type": str, "pattern": "(?:[a-zA-Z0-9_]+,?)+"}, "Labels, separated by commas.", image=False),
    _spec("pmu", "Whether the guest has a virtual performance monitoring unit. Real-time instances are better without.",
          _FLAG, "Whether there is one; unset: as the hypervisor has it."),
    _spec("redirected_usb_ports", "The number of USB ports through which a client's devices reach the guest.",
          {"type": int, "min": 0, "max": MAX_USB_PORTS}, "Ports.", requires=["hw:usb_model"]),
    _spec("serial_port_count", "The number of serial ports.", {"type": int, "min": 0}, "Ports."),
    _spec("sound_model", "The sound device. Without it there is none.", _choice(SOUND_MODELS), "The model."),
    _spec("tpm_model", "The interface of the emulated TPM.", _choice(TPM_MODELS), "The model.",
          requires=["hw:tpm_version"]),
    _spec("tpm_secret_security",
          "The readers of the secret that unlocks the emulated TPM, who can also move the instance: its user, its "
          "host, or the deployment.", _choice(("user", "host", "deployment")), "The readers.",
          requires=["hw:tpm_version"], image=False),
    _spec("tpm_version", "The version of the specification that the emulated TPM follows. Without it there is no TPM.",
          _choice(TPM_VERSIONS), "The version."),
    _spec("usb_model", "The USB controller. Without it there is none.", _choice(USB_MODELS), "The model."),
    _spec("vif_multiqueue_enabled", "Gives virtio network devices as many queues as there are virtual CPUs.", _FLAG,
          "Whether there are several queues."),
    _spec("viommu_model", "The virtual IOMMU; ``auto`` chooses one that fits the machine type.", _choice(VIOMMU_MODELS),
          "The model."),
    _spec("virtio_packed_ring", "Lets the guest use virtio's packed rings.", _FLAG,
          "Whether packed rings are offered."),
    _spec("watchdog_action",
          "The action when the guest no longer answers its watchdog. Without it, or with ``disabled``, there is no "
          "watchdog.", _choice(WATCHDOG_ACTIONS), "The action."),
]


HW_RNG_SPECS = [
    ExtraSpecValidator("hw_rng:allowed",
                       "Whether the guest can have a device for random numbers of the host. With ``false``, it has "
                       "none whatever its image says.", {"type": bool, "description": "Whether it can."},
                       drivers=LIBVIRT, see_also="hw_rng_model"),
    ExtraSpecValidator("hw_rng:rate_bytes", "The maximum entropy of the host that the guest can read in a period.",
                       {"type": int, "min": 0, "description": "Bytes of a period."}, drivers=LIBVIRT,
                       requires=["hw_rng:allowed", "hw_rng:rate_period"]),
    ExtraSpecValidator("hw_rng:rate_period", "The period in which the guest can read so many bytes of entropy.",
                       {"type": int, "min": 0, "description": "Milliseconds."}, drivers=LIBVIRT,
                       requires=["hw_rng:rate_bytes"]),
]


HW_VIDEO_SPECS = [
    ExtraSpecValidator("hw_video:ram_max_mb", "The most video memory that an image can request.",
                       {"type": int, "min": 0, "description": "Memory in MiB."}, drivers=LIBVIRT,
                       see_also="hw_video_ram"),
]


ACCEL_SPECS = [
    ExtraSpecValidator(
        name="accel:device_profile",
        description="Accelerators for the instance, as a device profile of the accelerator service describes them.",
        value={"type": str, "description": "The name of a device profile."},
        drivers=["libvirt"],
    ),
]


OS_SPECS = [
    ExtraSpecValidator(
        name="os:secure_boot",
        description="Whether the guest must boot with UEFI Secure Boot. It comes before what the image says. For bare "
                    "metal see ``capabilities:secure_boot``.",
        value={"type": str, "description": "Whether Secure Boot is on.", "enum": ["disabled", "required"]},
        drivers=["libvirt"],
        see_also="os_secure_boot",
    ),
]


PCI_PASSTHROUGH_SPECS = [
    ExtraSpecValidator(
        name="pci_passthrough:alias",
        description="PCI devices of the host that the instance gets, by the aliases that Nova's configuration has for "
                    "them.",
        value={"type": str, "description": "Aliases with a number of devices each, such as ``gpu:2,nic:1``.",
               "pattern": r"[^:]+:[0-9]+(?:\s*,\s*[^:]+:[0-9]+)*"},
        drivers=["libvirt"],
    ),
]


VMWARE_SPECS = [
    ExtraSpecValidator(
        name="vmware:hw_version",
        description="The version of the virtual hardware, which decides on which hosts the instance can run.",
        value={"type": str, "description": "The version, such as ``vmx-19``."},
        drivers=["vmware"],
    ),
    ExtraSpecValidator(
        name="vmware:storage_policy",
        description="The storage policy of the instance's disks, where the cloud has such policies.",
        value={"type": str, "description": "The name of the policy."},
        drivers=["vmware"],
    ),
]
