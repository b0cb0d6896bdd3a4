"""Built-in rules: the operator's YAML files, read and checked once, at start.

A file contains a list of rules, or one rule. Like all rules they are ordered by ``(-priority, position)``: their
positions start after every position in the database, so that of rules with equal priority the users' rules run first,
in the order of their creation, then the built-in ones, in the order of the files.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import orjson

from ironic_rules.exceptions import ConfigurationError, Problem
from ironic_rules.models.documents import JSONObject, clone
from ironic_rules.models.rules import RULE, SEALED, WRITABLE, Rule
from ironic_rules.rules import strict_yaml
from ironic_rules.rules.compiler import Checked, check
from ironic_rules.rules.limits import DEFAULT, Limits
from ironic_rules.rules.rule_fields import from_wire
from ironic_rules.rules.values import KnownPaths

MAX_FILE_BYTES = 8 * 1024 * 1024
#: The column ``position`` of stored rules has 32 bits.
FIRST_POSITION = 1 << 32
#: Fields that earlier versions did not have: the UUIDs of rules that do not use them are unchanged.
_ADDED = frozenset({"name", "bundle", "enabled", "max_nodes"})
_NAMESPACE = uuid.UUID("6f2f1c0e-7f5b-5d0a-9c57-3b1e4f0d8a61")


class Found(NamedTuple):
    """A rule of a file and its location there: a JSON pointer, empty if the file is that rule."""

    file: Path
    where: str
    rule: JSONObject

    def told(self, problem: Problem) -> str:
        """Return a problem of the rule with its place."""
        return ": ".join(filter(None, (str(self.file), self.where + problem.where, problem.text)))


def load(path: str | Path, *, limits: Limits = DEFAULT,
         known_paths: KnownPaths | None = None) -> list[tuple[Rule, Checked]]:
    """Return the rules of a YAML file, or of all ``*.yaml`` in a directory (by name, without hidden files), compiled.

    ``*.yml`` is a problem: clients read such files, too.

    A rule without ``uuid`` gets one that depends on the content of the rule, but not on its location. The UUID of a
    sensitive rule does not depend on its conditions and actions, because it could be used to verify guesses at them.

    :param known_paths: as that of ``rules.check``, for warnings
    :raises ConfigurationError: with every problem of every file: its name, JSON pointer and text, one per line
    """
    problems: list[str] = []
    entries = read(path, problems)
    checked = [check(entry.rule, built_in=True, limits=limits, known_paths=known_paths) for entry in entries]
    problems += [entry.told(problem) for entry, result in zip(entries, checked, strict=True)
                 for problem in result.problems]
    rules = [] if problems else [_stored(entry.rule) for entry in entries]
    if not problems:
        problems.extend(_repeated(entries, rules))
    if problems:
        raise ConfigurationError("The built-in inspection rules cannot be used:\n" + "\n".join(problems))
    return [(Rule(**rule, position=FIRST_POSITION + index, built_in=True), result)
            for index, (rule, result) in enumerate(zip(rules, checked, strict=True))]


def read(path: str | Path, problems: list[str]) -> list[Found]:
    """Return the rules of a YAML file, or of the ``*.yaml`` in a directory, unchecked; append what cannot be read."""
    return [rule for file in _files(Path(path), problems) for rule in _read(file, problems)]


def writable_by_others(path: str | Path) -> list[Path]:
    """Return those of the files, and the directory, that are writable by their group or by all users."""
    start = Path(path)
    places = [start, *_files(start, [])] if start.is_dir() else [start]
    return [place for place in places if place.stat().st_mode & 0o022]


def _files(path: Path, problems: list[str]) -> list[Path]:
    try:
        if path.is_dir():
            files = sorted(file for file in path.iterdir() if not file.name.startswith("."))
            problems += [f"{file}: it is not read, its name must end with .yaml" for file in files
                         if file.suffix == ".yml"]
            return [file for file in files if file.suffix == ".yaml"]
    except OSError as exc:
        problems.append(f"{path}: {exc.strerror}")
        return []
    return [path]


def _read(file: Path, problems: list[str]) -> Iterator[Found]:
    try:
        if not file.is_file():
            problems.append(f"{file}: there is no such file" if not file.exists() else f"{file}: not a file")
            return
        with file.open("rb") as stream:
            content = stream.read(MAX_FILE_BYTES + 1)
    except OSError as exc:
        problems.append(f"{file}: {exc.strerror}")
        return
    if len(content) > MAX_FILE_BYTES:
        problems.append(f"{file}: longer than {MAX_FILE_BYTES} bytes")
        return
    try:
        document = strict_yaml.load(content.decode("utf-8"))
    except UnicodeDecodeError as exc:
        problems.append(f"{file}: not UTF-8 at byte {exc.start}")
    except strict_yaml.BadYaml as exc:
        problems.append(f"{file}: {exc}")
    else:
        single = isinstance(document, dict)
        many = [document] if single else [] if document is None else document
        if not isinstance(many, list):
            problems.append(f"{file}: must be a list of rules, or one rule")
            return
        for index, rule in enumerate(many):
            where = "" if single else f"/{index}"
            if isinstance(rule, dict):
                yield Found(file, where, from_wire(rule))
            else:
                problems.append(f"{file}: {where}: a rule is an object")


def _stored(rule: JSONObject) -> JSONObject:
    """Return the fields of a valid rule, with a UUID."""
    return {**{name: clone(rule[name]) for name in WRITABLE if name in rule},
            "uuid": rule.get("uuid") or _identity(rule)}


def _identity(rule: JSONObject) -> str:
    names = [name for name in WRITABLE if name != "uuid" and not (rule["sensitive"] and name in SEALED)]
    content_fields = {name: rule[name] for name in names if name not in _ADDED or rule[name] != RULE[name].initial()}
    content = orjson.dumps(content_fields, option=orjson.OPT_SORT_KEYS)
    return str(uuid.uuid5(_NAMESPACE, content.decode()))


def _repeated(entries: list[Found], rules: list[JSONObject]) -> Iterator[str]:
    first: dict[str, Found] = {}
    named: dict[str, Found] = {}
    for entry, rule in zip(entries, rules, strict=True):
        if rule["name"] is not None and (other := named.setdefault(rule["name"], entry)) is not entry:
            yield f"{entry.file}: {entry.where or '/'}: this name is already that of {other.file}: {other.where or '/'}"
        earlier = first.setdefault(rule["uuid"], entry)
        if earlier is entry:
            continue
        place = f"{earlier.file}: {earlier.where or '/'}"
        if entry.rule.get("uuid"):
            reason = f"this uuid is already that of {place}"
        elif rule["sensitive"]:
            reason = f"apart from conditions and actions the same as {place}; give one of them a uuid"
        else:
            reason = f"the same rule as {place}"
        yield f"{entry.file}: {entry.where or '/'}: {reason}"
