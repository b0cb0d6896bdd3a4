"""The operating system in an image: ``os_*``."""

from __future__ import annotations

from ironic_rules.extra_specs.validators import ExtraSpecValidator

PROPERTIES = [
    ExtraSpecValidator("os_admin_user", "The user whose password Nova sets.", {"type": str, "description": "A user."},
                       drivers=["libvirt"]),
    ExtraSpecValidator("os_command_line", "What the guest's kernel is started with, instead of what Nova would write.",
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
