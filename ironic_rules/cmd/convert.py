"""``ironic-rules-convert``: rules of ironic-inspector as inspection rules. Needs no service and no configuration.

Exit status: 0 every rule was converted; 1 some cannot be, or do something else with an inventory of ``--check``; 2 a
file cannot be read or written, or the arguments are wrong.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ironic_rules import legacy
from ironic_rules.cmd import output
from ironic_rules.conf.inspector import hook_names
from ironic_rules.exceptions import ConfigurationError, InvalidRule
from ironic_rules.inspection import bulk
from ironic_rules.inspection.bulk import ComparedRules, Comparison
from ironic_rules.legacy import conversion
from ironic_rules.legacy.conversion import Conversion, Verdict
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.inventories import InspectionData
from ironic_rules.models.rules import LegacyRule
from ironic_rules.text import printable

PROG = "ironic-rules-convert"
DEFAULT_HOOKS = "ramdisk-error,validate-interfaces,ports,architecture"
_STDIN = "-"


class _Failure(Exception):
    """The command cannot continue; the text says why."""


@dataclass(slots=True)
class _File:
    """A file of legacy rules, and their conversions."""

    name: str
    rules: list[conversion.GivenRule]
    converted: list[Conversion]

    @property
    def made(self) -> list[JSONObject]:
        """The inspection rules."""
        return [result.rule for result in self.converted if result.rule is not None]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    try:
        return output.written(PROG, lambda: _run(_parser().parse_args(argv)))
    except (_Failure, ConfigurationError) as exc:
        print(f"{PROG}: {exc}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=PROG, description=(
        "Convert rules of ironic-inspector to inspection rules. The rules are written to standard output as YAML, and "
        "a report on each of them to standard error."))
    parser.add_argument("file", nargs="+", metavar="FILE", help=(
        "JSON or YAML with a rule, a list of rules, several documents, or a reply of GET /v1/rules; '-' for standard "
        "input."))
    parser.add_argument("--to-dir", type=Path, metavar="DIR", help=(
        "Write the rules of each file to a file of its name in this folder, which is created if missing. The report "
        "is then written to standard output."))
    parser.add_argument("--check", nargs="+", action="extend", default=[], metavar="INVENTORY", help=(
        "Files with data of machines, JSON as ramdisks send it or as `openstack baremetal node inventory save` writes "
        "it: run both rules on an empty node with each of them, and report where the results differ."))
    parser.add_argument("--hooks", default=DEFAULT_HOOKS, metavar="NAMES", help=(
        f"Comma-separated hooks that your service enables, for --check. Default: {DEFAULT_HOOKS}."))
    return parser


def _run(args: argparse.Namespace) -> int:
    files = [_read(name) for name in args.file]
    out = sys.stderr if args.to_dir is None else sys.stdout
    comparison = Comparison(hook_names(args.hooks))
    reports = _reports(args.check, comparison)
    is_right, report = True, []
    for file in files:
        for file_rule in file.rules:
            result, rule = _converted(file_rule)
            file.converted.append(result)
            report += [f"{_named(file.name, file_rule)}: {result.verdict}",
                       *(f"  {problem}" for problem in (*result.problems, *result.notes))]
            is_right &= result.verdict is not Verdict.NOT_CONVERTIBLE
            if reports and rule is not None and result.rule is not None:
                both = ComparedRules(rule, result.rule)
                for name, sent in reports.items():
                    differences = comparison.differences(both, sent)
                    is_right &= not differences
                    report += [f"  {name}: {text}" for text in differences]
    _write(files, args.to_dir)
    print(*report, *_summary(files), sep="\n", file=out)
    return int(not is_right)


def _converted(file_rule: conversion.GivenRule) -> tuple[Conversion, LegacyRule | None]:
    try:
        rule = legacy.parse(file_rule.body)
    except InvalidRule as exc:
        return Conversion(None, problems=tuple(exc.problems)), None
    return conversion.convert(rule), rule


def _reports(names: list[str], comparison: Comparison) -> dict[str, InspectionData]:
    """Return the data of machines by the name of their file, without those whose inspection fails anyway."""
    data_by_name = {}
    for name in names:
        report = _report(name)
        try:
            comparison.check(report)
            data_by_name[name] = report
        except bulk.NotComparable as exc:
            print(f"{name} is left out: {exc}", file=sys.stderr)
    return data_by_name


def _summary(files: list[_File]) -> list[str]:
    verdicts = [result.verdict for file in files for result in file.converted]
    counts = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in Verdict)
    lines = [f"{len(verdicts)} {'rule' if len(verdicts) == 1 else 'rules'}: {counts}."]
    if undone := sum(bool(result.not_undone) for file in files for result in file.converted):
        lines.append(f"What {undone} of them set stays on a node when they no longer match: inspection rules undo "
                     "nothing.")
    return lines


def _named(file: str, file_rule: conversion.GivenRule) -> str:
    place = f"{'standard input' if file == _STDIN else file}{': ' if file_rule.place else ''}{file_rule.place}"
    return f"{place} ({printable(file_rule.name, 64)})" if file_rule.name else place


def _read(name: str) -> _File:
    try:
        return _File(name, conversion.parse(_text(name)), [])
    except conversion.BadRuleFile as exc:
        raise _Failure(f"{name}: {exc}") from exc


def _report(name: str) -> InspectionData:
    try:
        return bulk.report_of(json.loads(_text(name)))
    except (ValueError, RecursionError) as exc:
        raise _Failure(f"{name} is not JSON: {exc}") from exc
    except bulk.NotComparable as exc:
        raise _Failure(f"{name}: {exc}") from exc


def _text(name: str) -> str:
    try:
        return sys.stdin.read() if name == _STDIN else Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        raise _Failure(f"{name} cannot be read: {exc}") from exc


def _write(files: list[_File], folder: Path | None) -> None:
    if folder is None:
        print(_yaml([rule for file in files for rule in file.made]), end="")
        return
    targets: dict[str, _File] = {}
    for file in files:
        target = "rules.yaml" if file.name == _STDIN else f"{Path(file.name).stem}.yaml"
        if target in targets:
            raise _Failure(f"{targets[target].name} and {file.name} would both be written to {folder / target}")
        targets[target] = file
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for target, file in targets.items():
            (folder / target).write_text(_yaml(file.made), encoding="utf-8")
    except OSError as exc:
        raise _Failure(f"{folder} cannot be written: {exc}") from exc


def _yaml(rules: list[Any]) -> str:
    return yaml.safe_dump(rules, sort_keys=False, allow_unicode=True, width=120)


if __name__ == "__main__":
    sys.exit(main())
