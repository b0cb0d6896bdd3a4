"""Reading rules and facts from files and directories, and where in them a problem is that the service reports."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from osc_lib import exceptions

from ironic_rules.client import rule_text

SUFFIXES = (".yaml", ".yml", ".json")
#: Begins a problem of one rule or fact in an error of the service, whose problems are separated by "; ".
_PROBLEM = re.compile(r"(?:^|; )/(?:rules|facts)/(\d+)(?=[/:])")
_POINTER = re.compile(r"/(?:rules|facts)/(\d+)(?=/|\Z)")
#: Keys of the lists that a service replies, and of the link to the following page.
RULES, FACTS, _NEXT = "inspection_rules", "facts", "next"
#: Fields that a service prints and that none of them takes back: of rules those of this one, and of an Ironic.
PRINTED = {
    RULES: frozenset(("created_at", "updated_at", "nodes_counted", "built_in", "valid", "problems", "links")),
    FACTS: frozenset(("created_at", "updated_at", "type", "is_list", "origin", "problems", "links", "operation"))}
#: Fields of which a printed rule has at least one, and a file that a person writes has none.
_PRINTED_BY_ALL = ("created_at", "links")
_STATUS = re.compile(r" \(HTTP \d+\)(?: \(Request-ID: [^()]*\))?$")


@dataclass(frozen=True, slots=True)
class FilePlace:
    """The place of a rule: a file, and the JSON pointer to the rule in it, empty if the file is that rule."""

    file: str
    pointer: str

    def of(self, pointer: str) -> str:
        """Return the place of what ``pointer`` names in the rule, e.g. ``racks.yaml: /3/conditions/0``."""
        whole = self.pointer + pointer
        return f"{self.file}: {whole}" if whole else self.file


@dataclass(slots=True)
class GivenRules:
    """Rules as their author has written them: of one file, or of all files of a directory, in their order."""

    rules: list[Any] = field(default_factory=list)
    #: The place of each rule.
    places: list[FilePlace] = field(default_factory=list)
    #: The index and the problem of each rule that a service has printed without what makes it one.
    incomplete: list[tuple[int, str]] = field(default_factory=list)
    #: The fields that a service has printed, and that are not sent.
    left_out: set[str] = field(default_factory=set)

    def add(self, rule: object, place: FilePlace) -> None:
        """Append a rule."""
        self.rules.append(rule)
        self.places.append(place)

    def listed(self, key: str) -> GivenRules:
        """Return these rules, with those of a list below ``key`` instead of the object that has it."""
        result = GivenRules()
        for rule, place in zip(self.rules, self.places, strict=True):
            if isinstance(rule, dict) and isinstance(rule.get(key), list):
                for index, item in enumerate(rule[key]):
                    result.add(item, FilePlace(place.file, f"{place.pointer}/{key}/{index}"))
            else:
                result.add(rule, place)
        return result

    def writable(self, kind: str = RULES) -> GivenRules:
        """Return these rules as they are sent: of lists that a service has printed, each rule, without :data:`PRINTED`.

        :param kind: the key of such a list
        :raises CommandError: a list is one page of several
        """
        for rule, place in zip(self.rules, self.places, strict=True):
            if isinstance(rule, dict) and isinstance(rule.get(kind), list) and rule.get(_NEXT):
                raise exceptions.CommandError(
                    f"{place.of('')} contains one page of a list of rules, and {_NEXT!r} names the following one: "
                    "use export, or request a list with a higher limit")
        result = GivenRules()
        listed = self.listed(kind)
        for index, (rule, place) in enumerate(zip(listed.rules, listed.places, strict=True)):
            if isinstance(rule, dict) and any(name in rule for name in _PRINTED_BY_ALL):
                if problem := _lack(rule):
                    result.incomplete.append((index, problem))
                result.left_out |= PRINTED[kind] & rule.keys()
                rule = {name: value for name, value in rule.items() if name not in PRINTED[kind]}
            result.add(rule, place)
        return result

    def explain_left_out(self) -> None:
        """Write to the standard error which fields are not sent."""
        if self.left_out:
            print(f"note: not sent, since services only print them: {', '.join(sorted(self.left_out))}",
                  file=sys.stderr)

    def unsendable(self) -> Iterator[tuple[int, str]]:
        """Yield the index and the problem of each rule that cannot be sent, e.g. a set or a list as a key."""
        yield from self.incomplete
        for index, rule in enumerate(self.rules):
            try:
                json.dumps(rule, allow_nan=False)
            except (TypeError, ValueError) as error:
                yield index, f"the rule cannot be written as JSON: {error}"

    def located(self, pointer: str) -> str:
        """Return a pointer into a request as the place in the file, e.g. ``racks.yaml: /3`` for ``/rules/17``."""
        match = _POINTER.match(pointer)
        if match is None or int(match[1]) >= len(self.places):
            return pointer
        return self.places[int(match[1])].of(pointer[match.end():])

    def explained(self, error: str) -> str:
        """Return an error of the service with one line for each problem, each with its place in the files."""
        general, problems, status = split(error)
        if not problems:
            return error
        lines = [general] if general else []
        for index, problem in sorted(problems, key=lambda item: item[0]):
            pointer, _, text = problem.partition(": ") if problem.startswith("/") else ("", "", problem)
            lines.append(f"{self.located(f'/rules/{index}{pointer}')}: {text}")
        return "\n".join([*lines, f"Nothing was changed.{status}"])


def split(error: str) -> tuple[str, list[tuple[int, str]], str]:
    """Divide an error of the service into its problems.

    :returns: what is not about a rule; for each problem the index of the rule in the request and the problem, e.g.
        ``(17, "/priority: must be a number")``; HTTP status and request ID as python-ironicclient writes them
    """
    status = _STATUS.search(error)
    text = error[:status.start()] if status else error
    general, *rest = _PROBLEM.split(text)
    problems = [(int(index), problem.removeprefix(": ")) for index, problem in zip(rest[::2], rest[1::2], strict=True)]
    return general, problems, status[0] if status else ""


def read(source: str) -> GivenRules:
    """Return the rules of a file or directory. The service checks whether they are valid.

    :param source: path of a JSON or YAML file (UTF-8) that contains one rule, a list of rules, or several YAML
        documents of these; or of a directory with such files, which are read in the order of their names, without
        hidden ones and without those of directories in it; ``-`` is the standard input
    :raises CommandError: a file cannot be read, is neither JSON nor YAML, or contains neither an object nor a list;
        a directory has no such files. With the problems of all files.
    """
    file_rules = GivenRules()
    problems: list[str] = []
    for name in _files(Path(source)) if source != "-" and Path(source).is_dir() else [source]:
        try:
            _read(name, file_rules)
        except exceptions.CommandError as error:
            problems.append(str(error))
    if problems:
        problems += [f"{file_rules.places[index].of('')}: {problem}" for index, problem in file_rules.unsendable()]
        raise exceptions.CommandError("\n".join(problems))
    return file_rules


def read_whole(source: str, kind: str = RULES) -> GivenRules:
    """Return the rules, or facts, of a file or directory as they are sent.

    :param kind: the key of a list of them that a service has printed
    :raises CommandError: as :func:`read`, and if any of them cannot be sent
    """
    file_rules = read(source).writable(kind)
    if problems := [f"{file_rules.places[index].of('')}: {problem}" for index, problem in file_rules.unsendable()]:
        raise exceptions.CommandError("\n".join(problems))
    return file_rules


def _files(folder: Path) -> list[str]:
    try:
        names = sorted(path.name for path in folder.iterdir() if not path.name.startswith(".")
                       and path.suffix.lower() in SUFFIXES and not path.is_dir())
    except OSError as error:
        raise exceptions.CommandError(f"{folder} cannot be read: {error}") from error
    if not names:
        raise exceptions.CommandError(f"{folder} has no files *{', *'.join(SUFFIXES)}; those in directories in it are "
                                      "not read")
    return [str(folder / name) for name in names]


def _lack(rule: Mapping[str, object]) -> str | None:
    """Return why a printed rule cannot be written to a service."""
    if rule.get("built_in") is True:
        return "this is a built-in rule, which belongs to a file of its service"
    if rule.get("origin") == "built-in":
        return "this is a built-in fact, which its service has anyway"
    if rule.get("sensitive") is True and rule.get("actions") is None:
        return ("the rule is sensitive, so no service shows its conditions and actions: "
                "take them from where it was written")
    return None


def _read(source: str, file_rules: GivenRules) -> None:
    name = "standard input" if source == "-" else source
    try:
        text = sys.stdin.read() if source == "-" else Path(source).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise exceptions.CommandError(f"{name} cannot be read: {error}") from error
    try:
        documents = rule_text.documents(text, prefer_json=name.endswith(".json"))
    except ValueError as error:
        raise exceptions.CommandError(f"{name} is neither JSON nor YAML: {error}") from error
    for number, document in enumerate(documents, start=1):
        file = name if len(documents) == 1 else f"{name} (document {number})"
        if isinstance(document, list):
            for index, rule in enumerate(document):
                file_rules.add(rule, FilePlace(file, f"/{index}"))
        elif isinstance(document, dict):
            file_rules.add(document, FilePlace(file, ""))
        else:
            raise exceptions.CommandError(f"{file} contains neither a rule nor a list of rules")
