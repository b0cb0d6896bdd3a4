"""The operator's policy files: which there are, and what they say, checked as a whole before any of it is enforced.

oslo.policy itself would find a mistake at the first request, and lets everything keep its default that has no rule.
"""

from __future__ import annotations

import graphlib
import os
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

import yaml
from oslo_config import cfg

from ironic_rules.exceptions import ConfigurationError
from ironic_rules.text import enumeration, misspelt, printable

#: oslo.policy's default, which need not exist.
_DEFAULT_FILE = "policy.yaml"
#: Between the checks in the text of a rule, also in the old form, which is a list of lists.
_BETWEEN = re.compile(r"[\s()\[\]'\",]+")
#: Check that is never true; oslo.policy puts it in place of a mistake, after an error in the log.
_NEVER = "!"
_REFERENCE = re.compile(r"(?:^|(?<=[\s(]))rule:([^\s()]+)")


class PolicyOverrides(NamedTuple):
    """Rules of files: ``{name: check}`` as they are written there, and ``{name: file}``."""

    checks: dict[str, Any]
    files: dict[str, str]


def main_file(conf: cfg.ConfigOpts) -> str | None:
    """Return the path of ``[oslo_policy]policy_file``, None if there is no such file."""
    path: str | None = conf.find_file(conf.oslo_policy.policy_file)
    return path


def stamp(conf: cfg.ConfigOpts) -> tuple[object, ...]:
    """Return a value that differs once a file was added, changed or removed."""
    stamps: list[object] = []
    try:
        for _, path in _found(conf):
            entry = os.stat(path)
            # The time of the last change of the file's permissions counts, too.
            stamps.append((path, entry.st_ctime_ns, entry.st_size, entry.st_ino))
    except (ConfigurationError, OSError) as exc:
        stamps.append(str(exc))
    return tuple(stamps)


def read(conf: cfg.ConfigOpts, *, required: bool = False) -> PolicyOverrides:
    """Return what the files say; a later one overrides an earlier one, as with oslo.policy.

    :param required: there must be a ``policy_file`` although it is not configured
    :raises ConfigurationError: a file cannot be read or is not what it should be, or the configured one does not exist
    """
    place = conf.get_location("policy_file", "oslo_policy")
    is_configured = conf.oslo_policy.policy_file != _DEFAULT_FILE or (
        place is not None and place.location.is_user_controlled)
    if main_file(conf) is None and (required or is_configured):
        raise ConfigurationError(
            f"[oslo_policy]policy_file: {printable(conf.oslo_policy.policy_file)} does not exist.")
    overrides = PolicyOverrides({}, {})
    for option, path in _found(conf):
        checks = _parsed(option, path)
        overrides.checks.update(checks)
        overrides.files.update(dict.fromkeys(checks, f"[oslo_policy]{option}: {printable(path)}"))
    return overrides


def _found(conf: cfg.ConfigOpts) -> Iterator[tuple[str, str]]:
    """Yield each file after the name of its option, in the order in which they are read."""
    if (path := main_file(conf)) is not None:
        yield "policy_file", path
    for name in conf.oslo_policy.policy_dirs:
        if (folder := conf.find_file(name)) is None:
            continue  # as oslo.policy's text about the option says
        try:
            names = sorted(os.listdir(folder))
        except OSError as exc:
            raise ConfigurationError(
                f"[oslo_policy]policy_dirs: {printable(folder)} cannot be read: {exc.strerror}.") from exc
        for path in (os.path.join(folder, name) for name in names if not name.startswith(".")):
            if not os.path.isdir(path):
                yield "policy_dirs", path


def _parsed(option: str, path: str) -> dict[str, Any]:
    place = f"[oslo_policy]{option}: {printable(path)}"
    try:
        with open(path, encoding="utf-8") as file:
            document = yaml.safe_load(file.read())
    except OSError as exc:
        raise ConfigurationError(f"{place} cannot be read: {exc.strerror}.") from exc
    except UnicodeDecodeError as exc:
        raise ConfigurationError(f"{place} is not text in UTF-8.") from exc
    except RecursionError as exc:
        raise ConfigurationError(f"{place} is nested too deeply.") from exc
    except yaml.YAMLError as exc:
        raise ConfigurationError(f"{place} is not YAML: {printable(' '.join(str(exc).split()))}") from exc
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise ConfigurationError(f'{place}: an object is expected, with lines such as "baremetal:node:list": "!".')
    for name, check in document.items():
        # oslo.policy takes null for "everybody may".
        if not isinstance(name, str) or not _is_check(check):
            raise ConfigurationError(f'{place}: {printable(name, 64)} must be the name of a rule, with a check in '
                                     'quotation marks: "" lets everybody in, and "!" no one.')
    return document


def _is_check(value: object) -> bool:
    """Return whether a value has one of oslo.policy's two forms: a text, or the old one, a list of texts and lists."""
    return isinstance(value, str) or (isinstance(value, list) and all(
        isinstance(item, str) or (isinstance(item, list) and all(isinstance(name, str) for name in item))
        for item in value))


def refuse(overrides: PolicyOverrides, rules: Mapping[str, object]) -> None:
    """Refuse checks that oslo.policy did not understand, and those that would never come to an end.

    :param rules: all rules, ``{name: oslo_policy.policy.Check}``
    :raises ConfigurationError: there are any
    """
    for name, check in overrides.checks.items():
        if _NEVER in _BETWEEN.split(str(rules[name])) and _NEVER not in _BETWEEN.split(str(check)):
            raise ConfigurationError(f"{overrides.files[name]}: the check of {printable(name, 64)} is not understood: "
                                     f"{printable(check, 200)}")
    try:
        graphlib.TopologicalSorter({name: _references(check) for name, check in rules.items()}).prepare()
    except graphlib.CycleError as exc:
        circle = exc.args[1]
        place = next(overrides.files[name] for name in circle if name in overrides.files)
        raise ConfigurationError(f"{place}: rules refer to each other in a circle: {enumeration(circle)}.") from exc


def warnings(overrides: PolicyOverrides, rules: Mapping[str, object], names: Collection[str],
             default: str) -> list[str]:
    """Return a line for each rule that has no effect, and each that refers to one which does not exist.

    A file of Ironic has rules of methods that this service does not offer, so they are no errors.

    :param rules: as of :func:`refuse`;  known: the names of the service's own
    :param default: the name of the rule that stands for all that do not exist, if it exists itself
    """
    lines = []
    references = {name: _references(rules[name]) for name in overrides.checks}
    used = {default, *names}.union(*references.values())
    for name, file in overrides.files.items():
        if name not in used:
            lines.append(f"{file}: this service has no rule {printable(name, 64)}, and no rule refers to it."
                         f"{_question(name, names)}")
        lines += [f"{file}: {printable(name, 64)} refers to the rule {printable(missing, 64)}, which does not exist: "
                  f"this part of the check is never true.{_question(missing, rules)}"
                  for missing in sorted(references[name] - rules.keys()) if default not in rules]
    return lines


def _references(check: object) -> set[str]:
    return set(_REFERENCE.findall(str(check)))


def _question(name: str, names: Collection[str]) -> str:
    similar = misspelt(name, names)
    return f" Is {similar} meant?" if similar else ""
