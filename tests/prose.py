"""``python -m tests.prose [FOLDER]``: a report on sentences; exit status 1 if a number in ``prose.csv`` is exceeded.

FOLDER has the documentation as XML (``sphinx-build -b xml``). The report also covers docstrings, help texts of options,
messages of errors and texts of the page. ``prose.yaml`` has the rules, which proselint applies with checks of its own.
"""

from __future__ import annotations

import argparse
import ast
import csv
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import yaml
from proselint.checks import __register__ as all_checks
from proselint.registry.checks import Check
from proselint.registry.checks.types import ExistenceSimple

ROOT = Path(__file__).resolve().parents[1]
RULES = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
LIMITS = Path(__file__).with_suffix(".csv")
#: Text that stands for a literal of reStructuredText, a placeholder of a message, or a role.
LITERAL = "X"
PASSIVE = re.compile(r"\b(?:am|is|are|was|were|be|been|being)\s+(?:(?:not|also|only|never|always|\w+ly)\s+)?"
                     rf"(?:\w+ed|{'|'.join(RULES['participles'])})\b")
ABBREVIATIONS = re.compile(r"\b(e\.g|i\.e|etc|vs|approx|v)\.", re.IGNORECASE)
END = re.compile(r"(?<=[.!?])[\"')]*\s+(?=[A-Z`\"'(])")
_WORD = re.compile(r"\S*[^\W_]\S*")
STRINGS = re.compile(r'"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`')


@dataclass(frozen=True)
class Sentence:
    """A sentence, the kind of text that contains it, and its place: a path, or the name of an option or error."""

    kind: str
    place: str
    text: str

    @property
    def words(self) -> int:
        """The number of words; a literal counts as one."""
        return len(re.findall(r"[^\W_][\w'’-]*", self.text))


def sentences_of(text: str) -> Iterator[str]:
    """Yield the sentences of a paragraph."""
    text = ABBREVIATIONS.sub(lambda match: match[0].replace(".", ""), " ".join(text.split()))
    for sentence in END.split(text):
        if len(sentence.split()) > 2:
            yield sentence


def in_documentation(folder: Path) -> Iterator[Sentence]:
    """Yield the sentences of the paragraphs of the documentation, whose XML is in ``folder``.

    The changelog is left out: it depends on the history of the checkout.
    """
    for path in sorted(set(folder.rglob("*.xml")) - {folder / "changelog.xml"}):
        place = path.relative_to(folder).with_suffix(".rst").as_posix()
        for paragraph in ElementTree.parse(path).iter("paragraph"):
            for sentence in sentences_of(_plain(paragraph)):
                yield Sentence("docs", place, sentence)


def _plain(element: ElementTree.Element) -> str:
    inside = "".join(_plain(child) + (child.tail or "") for child in element)
    return LITERAL if element.tag in ("literal", "raw") else (element.text or "") + inside


def in_docstrings() -> Iterator[Sentence]:
    """Yield the sentences of the docstrings of the package, without their fields and literal blocks."""
    for path in sorted((ROOT / "ironic_rules").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                for paragraph in _paragraphs(ast.get_docstring(node) or ""):
                    for sentence in sentences_of(paragraph):
                        yield Sentence("docstrings", path.relative_to(ROOT).as_posix(), sentence)


def _paragraphs(docstring: str) -> Iterator[str]:
    for block in re.split(r"\n\s*\n", docstring):
        if not block.startswith((" ", ":", "..", "=", ">>>")):
            yield re.sub(r"``.+?``|:\w+:`.+?`", LITERAL, block)


def in_options() -> Iterator[Sentence]:
    """Yield the sentences of the help texts of the options."""
    import ironic_rules.cmd  # noqa: F401  (it selects the backend of oslo.service)
    from ironic_rules.conf import opts

    for group, options in opts.list_opts():
        for option in options:
            for sentence in sentences_of(re.sub(r"``.+?``", LITERAL, option.help or "")):
                yield Sentence("options", f"[{group}]{option.name}", sentence)


def in_messages() -> Iterator[Sentence]:
    """Yield the sentences of the messages of errors: those of classes, and those of the table of texts."""
    from ironic_rules import exceptions

    for name, value in vars(exceptions).items():
        text = value.text if isinstance(value, exceptions.Wording) else getattr(value, "message", None)
        if isinstance(text, str):
            for sentence in sentences_of(re.sub(r"\{.*?\}", LITERAL, text)):
                yield Sentence("messages", name, sentence)


def in_page() -> Iterator[Sentence]:
    """Yield the sentences that the page's own code contains."""
    for path in sorted((ROOT / "ironic_rules" / "ui").rglob("*.js")):
        if "vendor" not in path.parts:
            code = re.sub(r"(?m)^\s*//.*$", "", path.read_text(encoding="utf-8"))
            for match in STRINGS.finditer(code):
                text = re.sub(r"\$\{.*?\}", LITERAL, match[1] or match[2] or "")
                if re.search(r"[A-Z][a-z]+ \w+ ", text) and "<" not in text:
                    for sentence in sentences_of(text):
                        yield Sentence("page", path.relative_to(ROOT).as_posix(), sentence)


def checks() -> list[Check]:
    """Return the checks: those of proselint that the rules name, and one for each pattern of the rules."""
    names = tuple(RULES["proselint"])
    ours = [Check(check_type=ExistenceSimple(pattern=pattern), path=f"ours.{name}", message=f"{{}}: {advice}")
            for name, rules in RULES["sentences"].items() for pattern, advice in rules.items()]
    return [check for check in all_checks if check.path.startswith(names)] + ours


def problems_of(sentence: Sentence, of: Iterable[Check]) -> Iterator[tuple[str, str]]:
    """Yield the name of each check that fails, and its message."""
    for check in of:
        for result in check.check_with_flags(sentence.text):
            yield result.check_path, result.message


def measures(sentences: Iterable[Sentence]) -> tuple[dict[str, float], list[str]]:
    """Return the numbers that must not rise, by name, and a line for each problem."""
    numbers: dict[str, float] = {}
    counts: dict[str, int] = {}
    lines = []
    loaded = checks()
    for sentence in sentences:
        kind = sentence.kind
        counts[kind] = counts.get(kind, 0) + 1
        found = {"long sentences, %": sentence.words > RULES["longest"],
                 "passives, %": bool(PASSIVE.search(sentence.text))}
        for name, is_so in found.items():
            numbers[f"{kind}: {name}"] = numbers.get(f"{kind}: {name}", 0) + is_so
        for path, message in problems_of(sentence, loaded):
            name = f"{kind}: {path.split('.')[0] if not path.startswith('ours') else path[5:]}"
            numbers[name] = numbers.get(name, 0) + 1
            lines.append(f"{sentence.place}: {message.strip()}\n    {sentence.text[:160]}")
    for name in numbers:
        if name.endswith("%"):
            numbers[name] = round(100 * numbers[name] / counts[name.split(":")[0]], 1)
    return numbers, lines


def words_by_section(folder: Path) -> dict[str, int]:
    """Return the number of words of each folder of the documentation's source, with literals and tables.

    A word has a letter or a digit: lines below headings and around tables are none.
    """
    counts: dict[str, int] = {}
    for path in sorted(folder.rglob("*.rst")):
        section = path.relative_to(folder).parts[0] if path.parent != folder else "index"
        counts[section] = counts.get(section, 0) + len(_WORD.findall(path.read_text(encoding="utf-8")))
    return counts


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.prose", description="Report on sentences.")
    parser.add_argument("folder", nargs="?", type=Path, help="the documentation as XML")
    parser.add_argument("--worst", type=int, default=0, metavar="N", help="show the N longest sentences of each page")
    parser.add_argument("--problems", action="store_true", help="show each problem")
    args = parser.parse_args(arguments)
    sentences = [*in_docstrings(), *in_options(), *in_messages(), *in_page()]
    sections = words_by_section(ROOT / "doc" / "source")
    if args.folder:
        sentences += in_documentation(args.folder)
    numbers, lines = measures(sentences)
    numbers["words of the documentation"] = sum(sections.values())
    print("words: " + ", ".join(f"{name} {count}" for name, count in sections.items()))
    for name, number in sorted(numbers.items()):
        print(f"{number:8g}  {name}")
    if args.problems:
        print("\n".join(lines))
    for place in sorted({sentence.place for sentence in sentences}) if args.worst else ():
        longest = sorted((each for each in sentences if each.place == place), key=lambda each: -each.words)
        print(place, *(f"  {each.words:3}  {each.text}" for each in longest[:args.worst]), sep="\n")
    with LIMITS.open(encoding="utf-8") as file:
        limits = {row["Measure"]: float(row["Most"]) for row in csv.DictReader(file)}
    risen = [f"{name} is {number:g}, {limits.get(name, 0):g} is allowed" for name, number in sorted(numbers.items())
             if number > limits.get(name, 0) and (args.folder or not name.startswith("docs"))]
    print(*risen, sep="\n")
    return bool(risen)


if __name__ == "__main__":
    sys.exit(main())
