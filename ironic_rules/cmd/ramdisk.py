"""``ironic-rules-ramdisk``: builds a ramdisk with ironic-python-agent, and ISO images.

Exit status: 0 the files are there, 2 they are not, for the printed reason, 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ironic_rules.cmd import lifecycle
from ironic_rules.exceptions import ConfigurationError
from ironic_rules.ramdisk import build, iso, programs, recipe
from ironic_rules.ramdisk.recipe import Recipe

PROG = "ironic-rules-ramdisk"
CACHE = Path("/var/cache/ironic-rules/ramdisk")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(PROG, description="Builds a ramdisk with ironic-python-agent from Debian, and ISO "
                                                       "images that boot a kernel and a ramdisk.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    building = commands.add_parser("build", help="build a kernel, a ramdisk and an ISO image", description=(
        "Builds vmlinuz, initrd and ipa.iso for machines with x86-64. Needs root, and takes some minutes; the same "
        "recipe is built once."))
    building.set_defaults(run=_build)
    building.add_argument("--output", type=Path, default=Path(), metavar="FOLDER",
                          help="put the files there; default: the current folder")
    building.add_argument("--cache", type=Path, default=CACHE, metavar="FOLDER", help=f"default: {CACHE}")
    building.add_argument("--again", action="store_true",
                          help="build it even if it was built before, with the packages that Debian has today")
    building.add_argument("--suite", choices=tuple(recipe.SUITES), default=Recipe.suite,
                          help=f"release of Debian; default: {Recipe.suite}")
    building.add_argument("--snapshot", metavar="TIME", help=(
        "use Debian's packages as they were at this time, such as 20261101T000000Z, from snapshot.debian.org"))
    building.add_argument("--mirror", metavar="URL", help=f"Debian's archive; default: {recipe.MIRROR}")
    building.add_argument("--security-mirror", metavar="URL", help=f"default: {recipe.SECURITY_MIRROR}")
    building.add_argument("--package", action="append", default=[], metavar="NAME",
                          help="a further package of Debian; may be repeated")
    building.add_argument("--firmware", action="store_true", help=(
        f"add firmware that drivers of network cards load, which is not free software: {', '.join(recipe.FIRMWARE)}"))
    building.add_argument("--agent-requirements", type=Path, metavar="FILE", help=(
        "requirements for pip: the agent and all that it needs; default: ironic-python-agent 13 with fixed versions"))
    building.add_argument("--ca-file", type=Path, metavar="FILE", help="certificates (PEM) that the agent trusts, too")
    building.add_argument("--authorized-keys", type=Path, metavar="FILE", help="SSH keys that may log in as root")
    imaging = commands.add_parser("iso", help="make an ISO image of a kernel and a ramdisk", description=(
        "Makes an ISO image of any kernel and ramdisk for x86-64, into which the service can write the parameters of a "
        "node. It boots by BIOS and UEFI."))
    imaging.set_defaults(run=_iso)
    imaging.add_argument("--kernel", type=Path, required=True, metavar="FILE")
    imaging.add_argument("--ramdisk", type=Path, required=True, metavar="FILE")
    imaging.add_argument("--output", type=Path, required=True, metavar="FILE", help="the image")
    imaging.add_argument("--parameters", default=iso.CONSOLE, metavar="TEXT", help=(
        f"kernel parameters for every node, before its own; default: {iso.CONSOLE}"))
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    # An ending by a signal is one that removes temporary files.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return lifecycle.guarded(_run, argv)
    except KeyboardInterrupt:
        print(f"{PROG}: interrupted; nothing is left of what was not complete", file=sys.stderr)
        return 130


def _run(argv: Sequence[str]) -> int:
    arguments = _parser().parse_args(argv)
    try:
        arguments.run(arguments)
    except OSError as exc:
        place = f"{exc.filename}: " if exc.filename else ""
        raise ConfigurationError(f"{place}{exc.strerror}.") from exc
    return 0


def _build(arguments: argparse.Namespace) -> None:
    def text(path: Path | None) -> str:
        return "" if path is None else path.read_text(encoding="utf-8")

    mirrors = recipe.snapshot(arguments.snapshot) if arguments.snapshot else (recipe.MIRROR, recipe.SECURITY_MIRROR)
    chosen = Recipe(
        suite=arguments.suite, mirror=arguments.mirror or mirrors[0],
        security_mirror=arguments.security_mirror or mirrors[1], packages=tuple(arguments.package),
        has_firmware=arguments.firmware, requirements=text(arguments.agent_requirements) or recipe.requirements(),
        certificates=text(arguments.ca_file), keys=text(arguments.authorized_keys))
    folder = build.Builder(arguments.cache.absolute(), _tell).build(chosen, again=arguments.again)
    arguments.output.mkdir(parents=True, exist_ok=True)
    for name in build.FILES:
        _copy(folder / name, arguments.output / name)
        size = (arguments.output / name).stat().st_size
        print(f"{arguments.output / name}: {size / 1e6:.1f} MB")


def _iso(arguments: argparse.Namespace) -> None:
    programs.check(iso.PROGRAMS)
    out = arguments.output.absolute()
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=".ironic-rules-ramdisk-") as work:
        iso.make_iso(arguments.kernel, arguments.ramdisk, out, Path(work), recipe.EPOCH, arguments.parameters)
    print(f"{arguments.output}: {out.stat().st_size / 1e6:.1f} MB")


def _tell(line: str) -> None:
    print(line, flush=True)


def _copy(source: Path, target: Path) -> None:
    """Copy a file; a reader sees all of it, or the previous one."""
    new = target.with_name(f".new-{target.name}")
    try:
        shutil.copyfile(source, new)
        os.chmod(new, 0o644)
        os.replace(new, target)
    finally:
        new.unlink(missing_ok=True)


if __name__ == "__main__":
    sys.exit(main())
