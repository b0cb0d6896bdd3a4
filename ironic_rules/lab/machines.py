"""Virtual machines of the lab: their disks and consoles, and their BMC, which is sushy-tools with libvirt."""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import dataclass
from pathlib import Path

from ironic_rules.lab.host import run

DISK_GIB = 6
#: Seconds of two years: a machine whose clock has lost its battery.
TWO_YEARS_S = 2 * 365 * 86400
FIRMWARE, VARIABLES = "/usr/share/OVMF/OVMF_CODE_4M.fd", "/usr/share/OVMF/OVMF_VARS_4M.fd"


@dataclass(frozen=True)
class Machine:
    """A virtual machine.

    :ivar firmware: ``bios`` or ``uefi``
    :ivar folder: has its disk and its console
    :ivar clock_s: by which its clock differs
    """

    name: str
    firmware: str
    folder: Path
    memory_mib: int
    processors: int
    accelerator: str
    interface: str
    has_unplugged_adapter: bool = False
    clock_s: int = 0

    @property
    def uuid(self) -> str:
        return str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{self.name}.lab"))

    @property
    def mac(self) -> str:
        return _mac(self.name, 0)

    @property
    def console(self) -> Path:
        return self.folder / f"{self.name}.console"

    @property
    def disk(self) -> Path:
        return self.folder / f"{self.name}.qcow2"

    @property
    def adapters(self) -> list[str]:
        """The MAC addresses; the second adapter has no link."""
        return [_mac(self.name, number) for number in range(1 + self.has_unplugged_adapter)]

    def define(self) -> None:
        """Make the disk, which is empty, and the machine, which is off."""
        self.folder.mkdir(parents=True, exist_ok=True)
        run(["qemu-img", "create", "-q", "-f", "qcow2", str(self.disk), f"{DISK_GIB}G"])
        file = self.folder / f"{self.name}.xml"
        file.write_text(domain(self), encoding="utf-8")
        run(["virsh", "define", str(file)])

    def is_on(self) -> bool:
        return run(["virsh", "domstate", self.name]).strip() not in ("shut off", "crashed")

    def switch_on(self) -> None:
        """Press its power button."""
        run(["virsh", "start", self.name])

    def cut_power(self) -> None:
        """Take its power away."""
        run(["virsh", "destroy", self.name])

    def remove(self) -> None:
        """Remove it with its disk; its console stays."""
        if self.is_on():
            self.cut_power()
        run(["virsh", "undefine", "--nvram", self.name])
        self.disk.unlink(missing_ok=True)


def _mac(name: str, adapter: int) -> str:
    digest = hashlib.sha256(f"{name} {adapter}".encode()).digest()
    return ":".join(f"{octet:02x}" for octet in (0x52, 0x54, 0x00, *digest[:3]))


def domain(machine: Machine) -> str:
    """Return the definition of a machine for libvirt (formatdomain)."""
    if machine.firmware == "uefi":
        # Its own driver boots over the network, as that of a real adapter does; iPXE comes by TFTP.
        loader = (f"<loader readonly='yes' type='pflash'>{FIRMWARE}</loader>"
                  f"<nvram template='{VARIABLES}'>{machine.folder / machine.name}.fd</nvram>")
        rom = "<rom enabled='no'/>"
    else:
        loader, rom = "<bios useserial='yes'/>", ""
    adapters = "".join(_adapter(machine, number, mac, rom) for number, mac in enumerate(machine.adapters))
    clock = (f"<clock offset='variable' adjustment='{machine.clock_s}' basis='utc'/>" if machine.clock_s
             else "<clock offset='utc'/>")
    return f"""\
<domain type='{"kvm" if machine.accelerator == "kvm" else "qemu"}'>
  <name>{machine.name}</name>
  <uuid>{machine.uuid}</uuid>
  <memory unit='MiB'>{machine.memory_mib}</memory>
  <vcpu>{machine.processors}</vcpu>
  <sysinfo type='smbios'><system>
    <entry name='manufacturer'>QEMU</entry><entry name='product'>lab {machine.firmware}</entry>
    <entry name='serial'>LAB-{machine.name.upper()}</entry><entry name='uuid'>{machine.uuid}</entry>
  </system></sysinfo>
  <os>
    <type arch='x86_64' machine='q35'>hvm</type>{loader}
    <boot dev='network'/><boot dev='hd'/><smbios mode='sysinfo'/>
  </os>
  <features><acpi/><apic/></features>
  <cpu mode='{"host-passthrough" if machine.accelerator == "kvm" else "maximum"}'/>
  {clock}
  <on_poweroff>destroy</on_poweroff><on_reboot>restart</on_reboot><on_crash>destroy</on_crash>
  <devices>
    <disk type='file' device='disk'>
      <driver name='qemu' type='qcow2' cache='unsafe' discard='unmap'/>
      <source file='{machine.disk}'/><target dev='vda' bus='virtio'/><serial>DISK-{machine.name.upper()}</serial>
    </disk>
    {adapters}
    <serial type='file'><source path='{machine.console}' append='on'/><target port='0'/></serial>
    <rng model='virtio'><backend model='random'>/dev/urandom</backend></rng>
    <video><model type='none'/></video><memballoon model='none'/>
  </devices>
</domain>
"""


def _adapter(machine: Machine, number: int, mac: str, rom: str) -> str:
    link = "<link state='down'/>" if number else ""
    return (f"<interface type='bridge'><mac address='{mac}'/><source bridge='{machine.interface}'/>"
            f"<model type='virtio'/>{link}{rom}</interface>")


def libvirt_files(folder: Path) -> dict[Path, str]:
    """Return the files of a libvirt that manages the machines of the lab only, and is managed by root."""
    return {
        folder / "libvirtd.conf": 'auth_unix_rw = "none"\nauth_unix_ro = "none"\nlog_outputs = "3:stderr"\n',
        folder / "qemu.conf": ('user = "root"\ngroup = "root"\ndynamic_ownership = 0\nremember_owner = 0\n'
                               'security_driver = "none"\ncgroup_controllers = []\nnamespaces = []\n'
                               'stdio_handler = "file"\nmax_core = 0\n'),
    }


def pool(folder: Path) -> str:
    """Return the definition of the pool for images of virtual media."""
    return f"<pool type='dir'><name>default</name><target><path>{folder}</path></target></pool>"


def emulator_config(address: str, port: int, users: Path, state: Path) -> str:
    """Return the configuration of sushy-tools: a BMC for all machines, with a login."""
    settings = {
        "SUSHY_EMULATOR_LISTEN_IP": address, "SUSHY_EMULATOR_LISTEN_PORT": port, "SUSHY_EMULATOR_SSL_CERT": None,
        "SUSHY_EMULATOR_SSL_KEY": None, "SUSHY_EMULATOR_AUTH_FILE": str(users),
        "SUSHY_EMULATOR_STATE_DIR": str(state), "SUSHY_EMULATOR_LIBVIRT_URI": "qemu:///system",
        "SUSHY_EMULATOR_IGNORE_BOOT_DEVICE": False,
        "SUSHY_EMULATOR_BOOT_LOADER_MAP": {"UEFI": {"x86_64": FIRMWARE}, "Legacy": {"x86_64": None}},
        "SUSHY_EMULATOR_SECURE_BOOT_DISABLED_NVRAM": VARIABLES, "SUSHY_EMULATOR_SECURE_BOOT_ENABLED_NVRAM": VARIABLES,
    }
    return "".join(f"{name} = {value!r}\n" for name, value in settings.items())


