"""The image that the lab deploys: a disk whose boot loader shows its config drive on the console.

It boots by UEFI. It has no operating system, so it is small, and what the machine shows is what was written to its
disk: nothing else has the text, and GRUB finds the config drive by its label, as cloud-init does.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from ironic_rules.lab.host import run

MARK = "The instance of the lab has started"
_SIZE_MIB, _BEGIN_MIB = 48, 1
_MODULES = "serial terminal part_gpt fat iso9660 search search_label cat echo sleep test"
_MENU = f"""\
serial --unit=0 --speed=115200
terminal_output serial
search --no-floppy --set=drive --label config-2
if [ -n "$drive" ]; then
    echo "{MARK}; its config drive has:"
    cat ($drive)/openstack/latest/meta_data.json
    echo ""
else
    echo "{MARK}, without a config drive."
fi
sleep 86400
"""


def make(folder: Path, target: Path) -> str:
    """Write the image, as qcow2; return its SHA-256.

    :param folder: for files that it is made of
    """
    folder.mkdir(parents=True, exist_ok=True)
    menu, loader, disk = folder / "grub.cfg", folder / "BOOTX64.EFI", folder / "instance.raw"
    menu.write_text(_MENU, encoding="ascii")
    run(["grub-mkstandalone", "-O", "x86_64-efi", "-o", str(loader), f"--install-modules={_MODULES} normal memdisk tar",
         f"--modules={_MODULES}", "--locales=", "--fonts=", "--themes=", f"boot/grub/grub.cfg={menu}"])
    with disk.open("wb") as file:
        file.truncate(_SIZE_MIB * 2**20)
    run(["sgdisk", "--clear", f"--new=1:{_BEGIN_MIB}M:0", "--typecode=1:ef00", str(disk)])
    # Without the partition table's copy at the end, and in whole MiB.
    sectors = (_SIZE_MIB - _BEGIN_MIB - 1) * 2048
    part = f"{disk}@@{_BEGIN_MIB}M"
    run(["mformat", "-i", part, "-T", str(sectors), "-h", "64", "-s", "32", "-v", "INSTANCE", "::"])
    run(["mmd", "-i", part, "::/EFI", "::/EFI/BOOT"])
    run(["mcopy", "-i", part, str(loader), "::/EFI/BOOT/BOOTX64.EFI"])
    run(["qemu-img", "convert", "-f", "raw", "-O", "qcow2", "-c", str(disk), str(target)])
    target.chmod(0o644)
    return hashlib.sha256(target.read_bytes()).hexdigest()
