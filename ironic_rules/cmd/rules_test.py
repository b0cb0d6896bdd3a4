"""``ironic-rules-test``: tests of inspection rules that are kept in files, without a service.

Exit status: 0 all cases are as expected, 1 some are not, 2 the files cannot be used.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

from ironic_rules.cmd import output
from ironic_rules.exceptions import ConfigurationError
from ironic_rules.inspection import rule_cases
from ironic_rules.inspection.rule_cases import CaseResult, Coverage
from ironic_rules.rules import load_plugins

PROG = "ironic-rules-test"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    return output.written(PROG, lambda: _run(sys.argv[1:] if argv is None else argv))


def _run(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog=PROG, description="Test inspection rules that are kept in files.")
    parser.add_argument("place", type=Path, metavar="PATH", help="file with cases, or folder with such files (*.yaml)")
    parser.add_argument("--junit", type=Path, metavar="FILE", help="write the results in JUnit's form")
    parser.add_argument("--coverage", action="store_true",
                        help="name the conditions that no case made true, or none made false")
    parser.add_argument("--fail-under", type=_percentage, default=0.0, metavar="PERCENT",
                        help="exit with 1 if less of the conditions' outcomes is covered")
    arguments = parser.parse_args(argv)
    coverage, results = Coverage(), []
    try:
        load_plugins()
        files = rule_cases.files(arguments.place)
        if not files:
            subject = "no file has" if arguments.place.is_dir() else "the file has no"
            raise rule_cases.BadCase(f"{arguments.place}: {subject} cases")
        for file in files:
            for result in rule_cases.run(file, coverage, time.perf_counter):
                results.append(result)
                _tell(result)
        if arguments.junit is not None:
            arguments.junit.write_bytes(_junit(results))
    except (ConfigurationError, OSError) as error:
        print(f"{PROG}: {error}", file=sys.stderr)
        return 2
    failed = sum(bool(result.problems) for result in results)
    print(f"{len(results)} cases, {failed} failed; {coverage.share:.0%} of the conditions' outcomes covered")
    if arguments.coverage:
        for text in coverage.missing():
            print(f"  {text}")
    return 1 if failed or coverage.share * 100 < arguments.fail_under else 0


def _percentage(text: str) -> float:
    with contextlib.suppress(ValueError):
        if 0 <= (value := float(text)) <= 100:  # NaN is not
            return value
    raise argparse.ArgumentTypeError(f"a number from 0 to 100 is required: {text}")


def _tell(result: CaseResult) -> None:
    print(f"{'FAILED' if result.problems else 'ok':6} {result.file}: {result.name}")
    for problem in result.problems:
        print(f"       {problem}")


def _junit(results: Sequence[CaseResult]) -> bytes:
    suites = ElementTree.Element("testsuites")
    for file in dict.fromkeys(result.file for result in results):
        of_file = [result for result in results if result.file == file]
        failures = sum(bool(result_of_file.problems) for result_of_file in of_file)
        suite = ElementTree.SubElement(suites, "testsuite", {
            "name": str(file), "tests": str(len(of_file)), "failures": str(failures),
            "time": f"{sum(result_of_file.seconds for result_of_file in of_file):.3f}"})
        for result in of_file:
            case = ElementTree.SubElement(suite, "testcase", {
                "classname": str(file), "name": _printable(result.name), "time": f"{result.seconds:.3f}"})
            if result.problems:
                failure = ElementTree.SubElement(case, "failure", {"message": _printable(result.problems[0])})
                failure.text = _printable("\n".join(result.problems))
    return ElementTree.tostring(suites, encoding="utf-8", xml_declaration=True)


def _printable(text: str) -> str:
    """Return a text without characters that XML cannot have."""
    return "".join(character if character.isprintable() or character in "\n\t" else "?" for character in text)
