"""What the image is and needs to be started: ``img_*``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ironic_rules.extra_specs.definitions.images.hardware import UUID
from ironic_rules.extra_specs.validators import ExtraSpecValidator

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


def _property(name: str, description: str, value: Mapping[str, Any], says: str, *, drivers: Sequence[str] = (),
              **more: Any) -> ExtraSpecValidator:
    return ExtraSpecValidator(f"img_{name}", description, {**value, "description": says}, drivers=drivers, **more)


def _signature(name: str, description: str, value: Mapping[str, Any], says: str) -> ExtraSpecValidator:
    return _property(name, description, value, says, requires=[other for other in _SIGNATURE if other != f"img_{name}"])


PROPERTIES = [
    _property("bdm_v2", "Whether ``img_block_device_mapping`` has the present form.", {"type": bool},
              "Whether it has."),
    _property("bittorrent", "Whether hosts load the image with BitTorrent.", {"type": bool}, "Whether they do.",
              drivers=["xenapi"]),
    _property("block_device_mapping", "The disks of a server from which the image was made.", {"type": str},
              "A list in JSON, as Nova writes it."),
    _property("cache_in_nova", "Whether hosts keep the image, where they keep some only.", {"type": bool},
              "Whether they do.", drivers=["xenapi"]),
    _property("compression_level", "How much uploaded images are compressed.", {"type": int, "min": 1, "max": 9},
              "A level.", drivers=["xenapi"]),
    _property("config_drive", "Whether the image needs a config drive.",
              {"type": str, "enum": ("optional", "mandatory")}, "Whether it does."),
    _property("hide_hypervisor_id", "Keeps the hypervisor's signature from the guest.", {"type": bool},
              "Whether it is hidden.", drivers=["libvirt"], see_also="hw:hide_hypervisor_id"),
    _property("hv_requested_version", "The versions of the hypervisor with which the image works.",
              {"type": str, "pattern": _VERSIONS}, "Comparisons, such as ``>=2.6``."),
    _property("hv_type", "The hypervisor that the image is for.",
              {"type": str, "enum": HYPERVISORS, "aliases": {"xapi": "xen"}}, "A hypervisor."),
    _property("linked_clone", "Whether disks are linked to the image instead of copies.", {"type": bool},
              "Whether they are.", drivers=["vmware"]),
    _property("mappings", "Names of disks and their devices.", {"type": str}, "A list in JSON, as Nova writes it."),
    _property("owner_id", "The project that uploaded the image.", {"type": str}, "A project."),
    _property("root_device_name", "The device of the root disk.", {"type": str}, "Such as ``/dev/vda``."),
    _signature("signature", "The signature of the image's data.", {"type": str}, "Base64."),
    _signature("signature_certificate_uuid", "The certificate for the signature.", {"type": str, "pattern": UUID},
               "A UUID."),
    _signature("signature_hash_method", "The hash that is signed.", {"type": str, "enum": SIGNATURE_HASHES}, "A hash."),
    _signature("signature_key_type", "The kind of key that signed it.", {"type": str, "enum": SIGNATURE_KEYS},
               "A kind of key."),
    _property("use_agent", "Whether Nova's agent runs in the guest.", {"type": bool}, "Whether it does.",
              drivers=["xenapi"]),
    _property("version", "The version of the image's format.", {"type": int}, "A version.", drivers=["vmware"]),
]
