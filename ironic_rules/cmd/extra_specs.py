"""``ironic-rules-extra-specs``: lists, describes and checks extra specs and image properties, without any service.

Exit status: 0 no problems, 1 problems were found, 2 the arguments or a file cannot be used.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ironic_rules.cmd import output
from ironic_rules.extra_specs import check, flavor_files, installed, validators
from ironic_rules.extra_specs import output as output_extra_specs
from ironic_rules.extra_specs.registry import SpecRegistry
from ironic_rules.extra_specs.values import DUPLICATE, MAX_LENGTH, UNKNOWN, SpecProblem, problem_of
from ironic_rules.models.documents import JSONObject
from ironic_rules.text import printable

PROG = "ironic-rules-extra-specs"
CLEAN, PROBLEMS, USAGE = 0, 1, 2
#: The name of what was given in arguments, and of the standard input.
_ARGUMENTS, _STDIN = "arguments", "standard input"


@dataclass(frozen=True)
class Finding:
    """A problem or a warning, with its place.

    :ivar subject: ``flavor`` or ``image``;  name: of that; empty if it has none
    :ivar line: 0 where it is not known
    """

    file: str
    subject: str
    name: str
    line: int
    problem: SpecProblem
    is_warning: bool

    def to_wire(self) -> JSONObject:
        """Return it as JSON-like data."""
        return {"file": self.file, self.subject: self.name or None, "line": self.line or None, **self.problem.to_wire()}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    try:
        return output.written(PROG, lambda: _run(_parser().parse_args(argv)))
    except (flavor_files.UnreadableFile, OSError) as exc:
        print(f"{PROG}: {printable(exc)}", file=sys.stderr)
        return USAGE


def _run(arguments: argparse.Namespace) -> int:
    return int(arguments.run(arguments))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(PROG, description="Lists, describes and checks extra specs of flavors and "
                                                       "properties of images. It needs no service.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: object, text: str, images: bool = True) -> argparse.ArgumentParser:
        subparser = commands.add_parser(name, help=text, description=text)
        subparser.set_defaults(run=run)
        if images:
            subparser.add_argument("--images", action="store_true", help="properties of images instead of extra specs")
        return subparser

    listing = command("list", _list, "List what there is.")
    listing.add_argument("--namespace", help="only those of a namespace, such as hw")
    listing.add_argument("--type", choices=("int", "bool", "str"), help="only those with values of a type")
    listing.add_argument("--status", choices=validators.STATUSES, help="only those with a status")
    listing.add_argument("--text", help="only those with a text in their name or description")
    listing.add_argument("--format", choices=("text", "json"), default="text", help="default: text")
    showing = command("show", _show, "Describe one, by its name or by a key that it describes.")
    showing.add_argument("name", metavar="NAME")
    showing.add_argument("--format", choices=("text", "json"), default="text", help="default: text")
    checking = command("check", _check, "Check files, or keys and values.")
    checking.add_argument("given", metavar="FILE|KEY=VALUE", nargs="*",
                          help="files with flavors or images in JSON or YAML, or with lines of key=value; nothing, "
                               "or -, for the standard input")
    checking.add_argument("--mode", choices=(check.STRICT, check.PERMISSIVE), default=check.STRICT,
                          help="strict (default): keys that are not known are problems; permissive: they are warnings")
    checking.add_argument("--format", choices=("text", "json", "github"), default="text",
                          help="default: text; github: annotations of GitHub's workflows")
    writing = command("metadefs", _metadefs, "Write namespaces for the image service's metadata definitions.",
                      images=False)
    writing.add_argument("folder", metavar="DIR", type=Path)
    rendering = command("rst", _rst, "Print the reference in reStructuredText.")
    rendering.add_argument("namespace", metavar="NAMESPACE", nargs="?", help="only those of a namespace")
    return parser


def _registry(images: bool) -> SpecRegistry:
    registry = installed.image_properties() if images else installed.extra_specs()
    for warning in registry.warnings:
        print(f"{PROG}: warning: {warning.entry_point}: {warning.text}", file=sys.stderr)
    return registry


def _list(arguments: argparse.Namespace) -> int:
    items = output_extra_specs.matching(_registry(arguments.images), arguments.namespace, arguments.type,
                                        arguments.status, arguments.text)
    if arguments.format == "json":
        print(json.dumps([output_extra_specs.describe(item) for item in items], indent=2, ensure_ascii=False))
        return CLEAN
    width = max((len(item.validator.name) for item in items), default=0)
    for item in items:
        status = "" if item.validator.status == validators.SUPPORTED else f"({item.validator.status}) "
        print(f"{item.validator.name:{width}}  {item.validator.value['type'].__name__:4}  "
              f"{status}{output_extra_specs.text_of(item.validator.description)}")
    return CLEAN


def _show(arguments: argparse.Namespace) -> int:
    registry = _registry(arguments.images)
    lookup = registry.find(arguments.name)
    item = registry.get(arguments.name) or (lookup[0] if lookup else None)
    if item is None:
        problem = check.validate(arguments.name, "", registry=registry)
        print(f"{PROG}: {problem.text if problem else arguments.name}", file=sys.stderr)
        return PROBLEMS
    print(json.dumps(output_extra_specs.describe(item), indent=2,
                     ensure_ascii=False) if arguments.format == "json" else output_extra_specs.rst_page([item]))
    return CLEAN


def _check(arguments: argparse.Namespace) -> int:
    registry = _registry(arguments.images)
    subject = "image" if arguments.images else "flavor"
    findings = [finding for file, text, flavors in _inputs(arguments.given, arguments.images)
                for finding in _findings(file, text, subject, flavors, arguments.mode, registry)]
    problems = [finding for finding in findings if not finding.is_warning]
    if arguments.format == "json":
        print(json.dumps({"problems": [finding.to_wire() for finding in problems],
                          "warnings": [finding.to_wire() for finding in findings if finding.is_warning]},
                         indent=2, ensure_ascii=False))
    else:
        for finding in findings:
            print(_github(finding) if arguments.format == "github" else _line(finding))
    return PROBLEMS if problems else CLEAN


def _inputs(arguments: Sequence[str], images: bool) -> Iterator[tuple[str, str, list[flavor_files.FlavorSpecs]]]:
    """Yield the name, the text, and the flavors or images of each file, ``key=value`` arguments first."""
    pairs = [argument for argument in arguments if argument != "-" and "=" in argument and not os.path.isfile(argument)]
    if pairs:
        yield _ARGUMENTS, "", [flavor_files.FlavorSpecs("", "", tuple(map(flavor_files.pair, pairs)))]
    for argument in [argument for argument in arguments if argument not in pairs] or ([] if pairs else ["-"]):
        name = _STDIN if argument == "-" else argument
        try:
            text = sys.stdin.read() if argument == "-" else Path(argument).read_text(encoding="utf-8")
            flavors = flavor_files.read(text, images)
        except (flavor_files.UnreadableFile, UnicodeDecodeError) as exc:
            raise flavor_files.UnreadableFile(f"{name}: {exc}") from exc
        yield name, text, flavors


def _findings(file: str, text: str, subject: str, flavors: Sequence[flavor_files.FlavorSpecs], mode: str,
              registry: SpecRegistry) -> Iterator[Finding]:
    lines = _Lines(text)
    for flavor in flavors:
        keys: set[str] = set()
        for entry in flavor.entries:
            line = entry.line or lines.next(entry.key)
            problem = check.validate(entry.key, entry.value, mode, registry, flavor.pointer)
            if problem and (problem.kind == UNKNOWN or not entry.is_templated):
                yield Finding(file, subject, flavor.name, line, problem, False)
            for warning in check.warnings({entry.key: entry.value}, mode, registry, flavor.pointer):
                yield Finding(file, subject, flavor.name, line, warning, True)
            if entry.key in keys:
                yield Finding(file, subject, flavor.name, line, problem_of(
                    entry.key, flavor.pointer, DUPLICATE,
                    f"The {registry.noun} '{printable(entry.key, MAX_LENGTH)}' is given again; only the last value is "
                    "used."), False)
            keys.add(entry.key)


class _Lines:
    """Finds the lines in which keys stand, in the order in which they are given, where reading has not told them."""

    #: Characters before and after a key: after it a colon in JSON, an equals sign in the output of a client.
    _BEFORE = frozenset(" \t\r\n\"',{")
    _BEHIND = re.compile(r"""["']?\s*[:=]""")

    def __init__(self, text: str) -> None:
        self._text = text
        #: place where each key was found last, and where any was, with the line
        self._after: dict[str, int] = {}
        self._last = (0, 1)

    def next(self, key: str) -> int:
        """Return the number of the next line with a key, 0 if there is none."""
        own = self._after.get(key, 0)
        # Mostly, it comes after the key before.
        place = self._find(key, max(own, self._last[0]))
        if place is None:
            place = self._find(key, own)
        if place is None:
            return 0
        self._after[key] = place + len(key)
        begin, line = self._last if self._last[0] <= place else (0, 1)
        self._last = place, line + self._text.count("\n", begin, place)
        return self._last[1]

    def _find(self, key: str, start: int) -> int | None:
        text = self._text
        while (place := text.find(key, start)) >= 0:
            if (not place or text[place - 1] in self._BEFORE) and self._BEHIND.match(text, place + len(key)):
                return place
            start = place + 1
        return None


def _line(finding: Finding) -> str:
    place = f"{printable(finding.file)}:{finding.line}" if finding.line else printable(finding.file)
    name = f" {finding.subject} {printable(finding.name, MAX_LENGTH)}:" if finding.name else ""
    return f"{place}:{name} {'warning: ' if finding.is_warning else ''}{printable(finding.problem.text)}"


def _github(finding: Finding) -> str:
    """Return a workflow command, with what would end its parts escaped."""
    level = "warning" if finding.is_warning else "error"
    file = printable(finding.file).replace("%", "%25").replace(":", "%3A").replace(",", "%2C")
    line = f",line={finding.line}" if finding.line else ""
    return f"::{level} file={file}{line}::{printable(finding.problem.text).replace('%', '%25')}"


def _metadefs(arguments: argparse.Namespace) -> int:
    namespaces = output_extra_specs.namespaces(_registry(images=False), _registry(images=True))
    for file in output_extra_specs.write_metadefs(arguments.folder, namespaces):
        print(file)
    return CLEAN


def _rst(arguments: argparse.Namespace) -> int:
    print(output_extra_specs.rst_page(output_extra_specs.matching(_registry(arguments.images), arguments.namespace)))
    return CLEAN


if __name__ == "__main__":
    sys.exit(main())
