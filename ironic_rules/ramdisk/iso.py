"""ISO images that boot a kernel and a ramdisk, by BIOS and by UEFI, from a CD drive or as a disk.

GRUB boots them; by UEFI it is started by shim, both as Debian has signed them, so that secure boot accepts them and a
kernel that Debian has signed. GRUB reads the kernel parameters from :mod:`ironic_rules.models.boot_parameters`, a file
of a fixed size, over which :mod:`ironic_rules.hardware.boot.node_iso` writes those of a node.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from ironic_rules.exceptions import ConfigurationError
from ironic_rules.models import boot_parameters
from ironic_rules.models.boot_parameters import BootParameters
from ironic_rules.ramdisk.programs import Program, run
from ironic_rules.ramdisk.recipe import MACHINE

#: Where Debian's packages have what the images start with.
BIOS_MODULES, BIOS_MBR = Path("/usr/lib/grub/i386-pc"), Path("/usr/lib/grub/i386-pc/boot_hybrid.img")
SHIM = Path("/usr/lib/shim/shimx64.efi.signed")
GRUB = Path("/usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed")
PROGRAMS = (
    Program("xorriso", "xorriso"), Program("grub-mkimage", "grub-common"), Program("mformat", "mtools"),
    Program("mcopy", "mtools"), Program(str(BIOS_MBR), "grub-pc-bin"), Program(str(SHIM), "shim-signed"),
    Program(str(GRUB), "grub-efi-amd64-signed"),
)
LABEL = "IRONIC_RULES"
#: Parameters of an image as it is built: both the screen and the serial line show what happens.
CONSOLE = "console=tty0 console=ttyS0,115200n8"
_BIOS_MODULES = ("biosdisk", "iso9660", "part_msdos", "part_gpt", "search", "search_fs_file", "normal", "configfile",
                 "linux", "echo", "test", "sleep", "reboot", "minicmd", "gzio")
_MIB = 1 << 20

_START = """\
search --no-floppy --file --set=root /boot/{mark}
set prefix=($root)/boot/grub
configfile ($root)/boot/grub/grub.cfg
"""
_MENU = """\
set timeout=0
source ($root)/{parameters}
menuentry 'Ramdisk with ironic-python-agent' {{
    echo 'Loading the kernel and the ramdisk'
    linux ($root)/boot/vmlinuz {variables}
    initrd ($root)/boot/initrd
}}
"""


def kernel_problem(head: bytes) -> str | None:
    """Return why a file is not a Linux kernel for x86-64; None if it is one.

    https://docs.kernel.org/arch/x86/boot.html and https://docs.kernel.org/arch/arm64/booting.html define the headers.

    :param head: its first 1024 bytes
    """
    if head[0x202:0x206] == b"HdrS":
        is_64 = int.from_bytes(head[0x206:0x208], "little") >= 0x20c and head[0x236] & 1
        return None if is_64 else "it is a kernel for 32-bit x86 machines"
    if head[0x38:0x3c] == b"ARMd":
        return "it is a kernel for 64-bit ARM machines"
    if head[:2] == b"\x1f\x8b":
        return "it is compressed as a whole, as kernels of other architectures are"
    return "it is not a Linux kernel"


def make_iso(kernel: Path, ramdisk: Path, out: Path, work: Path, epoch: int, parameters: str = CONSOLE) -> None:
    """Write the image ``out``; an interruption leaves nothing of it there.

    :param work: a folder for other files;  epoch: the time of all files in it, in seconds since 1970
    :param parameters: kernel parameters for every node
    :raises ConfigurationError: the kernel is not for this architecture, the parameters cannot be passed, or a program
        fails
    """
    try:
        file = BootParameters(MACHINE, parameters).content()
    except ValueError as exc:
        raise ConfigurationError(f"{exc}.") from exc
    with kernel.open("rb") as head:
        problem = kernel_problem(head.read(1024))
    if problem:
        raise ConfigurationError(f"{kernel} cannot be booted by an image for x86-64: {problem}.")
    tree = work / "iso"
    files = {"boot/vmlinuz": kernel, "boot/initrd": ramdisk}
    mark = f"ironic-rules-{_digest([*files.values()])}"
    for name, source in files.items():
        _place(source, tree / name)
    start = _START.format(mark=mark)
    variables = " ".join(f"${name}" for name in boot_parameters.VARIABLES)
    menu = _MENU.format(parameters=boot_parameters.PATH, variables=variables)
    for name, text in {f"boot/{mark}": "", "boot/grub/grub.cfg": menu, "EFI/debian/grub.cfg": start}.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text, encoding="ascii")
    (tree / boot_parameters.PATH).write_bytes(file)
    (work / "start.cfg").write_text(start, encoding="ascii")
    environment = {"SOURCE_DATE_EPOCH": str(epoch)}
    run(["grub-mkimage", "-O", "i386-pc-eltorito", "-d", str(BIOS_MODULES), "-p", "/boot/grub",
         "-c", str(work / "start.cfg"), "-o", str(tree / "boot/grub/bios.img"), *_BIOS_MODULES], environment)
    partition = work / "efi.img"
    _efi_partition(partition, start, work, environment)
    for path in sorted(tree.rglob("*")):
        os.utime(path, (epoch, epoch))
    os.utime(partition, (epoch, epoch))
    date = dt.datetime.fromtimestamp(epoch, dt.UTC).strftime("%Y%m%d%H%M%S00")
    new = out.with_name(f".new-{out.name}")
    try:
        run(["xorriso", "-as", "mkisofs", "-quiet", "-r", "-J", "-V", LABEL, f"--modification-date={date}",
             "--set_all_file_dates", date, "--gpt_disk_guid", hashlib.sha256(mark.encode()).hexdigest()[:32],
             "-b", "boot/grub/bios.img", "-no-emul-boot", "-boot-load-size", "4", "-boot-info-table",
             "--grub2-boot-info", "--grub2-mbr", str(BIOS_MBR), "-eltorito-alt-boot",
             "-e", "--interval:appended_partition_2:all::", "-no-emul-boot", "-append_partition", "2", "0xef",
             str(partition), "-o", str(new), str(tree)], environment)
        os.replace(new, out)
    finally:
        new.unlink(missing_ok=True)


def _efi_partition(path: Path, start: str, work: Path, environment: dict[str, str]) -> None:
    """Write the FAT file system with what UEFI starts: shim, which starts GRUB."""
    files = {"::/EFI/BOOT/BOOTX64.EFI": SHIM, "::/EFI/BOOT/grubx64.efi": GRUB,
             "::/EFI/debian/grub.cfg": work / "start.cfg"}
    size = sum(source.stat().st_size for source in files.values())
    with path.open("wb") as file:
        file.truncate(-(-(size + _MIB) // _MIB) * _MIB)
    run(["mformat", "-i", str(path), "-N", "1F0D15C5", "-v", "IRONICRULES", "::"], environment)
    run(["mmd", "-i", str(path), "::/EFI", "::/EFI/BOOT", "::/EFI/debian"], environment)
    for name, source in files.items():
        run(["mcopy", "-i", str(path), str(source), name], environment)


def _place(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except OSError:  # of another file system, or of another user
        shutil.copyfile(source, target)


def _digest(files: Sequence[Path]) -> str:
    digest = hashlib.sha256()
    for path in files:
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:32]
