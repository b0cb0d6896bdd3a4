"""Texts use the words of OpenStack's documentation; ``tests/prose.yaml`` lists other words, with those to use."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

from tests.prose import RULES

ROOT = Path(__file__).resolve().parents[2]

#: between two words of one sentence: a space, or the end of a line within a docstring, comment or string
GAP = r"(?: |\"?\s*\n\s*(?:#:? ?|[fr]?\" ?)?)"
PATTERNS = [(re.compile(word.replace(" ", GAP)), instead) for word, instead in RULES["texts"].items()]
#: before an expression; one that begins within a word is none, and ``{`` begins a name in an f-string
WITHIN = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_{-")
#: Folders with texts of ours. What was recorded elsewhere is not here.
FOLDERS = ("ironic_rules", "doc/source", "etc", "releasenotes/notes", "tests", ".ci")
#: Since Python 3.12, an f-string is several tokens; before, it is a string.
TEXTS = {tokenize.STRING, tokenize.COMMENT} | {
    getattr(tokenize, name, tokenize.STRING) for name in ("FSTRING_START", "FSTRING_MIDDLE", "FSTRING_END")}
#: Files that list such words.
EXCEPT = {Path(__file__), ROOT / "tests" / "prose.yaml"}
TYPES = {".py", ".rst", ".yaml", ".csv", ".sample", ".conf", ".service", ".sh", ""}


def texts() -> Iterator[Path]:
    """Yield the files that people read."""
    yield from (ROOT / name for name in ("README.rst", "setup.cfg", "tox.ini"))
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and path.suffix in TYPES and path not in EXCEPT and "__pycache__" not in path.parts:
                yield path


def prose(path: Path) -> str:
    """Return a file with everything blanked that is not text: of Python, all but comments and strings stays out."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return text
    lines = text.splitlines(keepends=True)
    blank = [re.sub(r"[^\n]", " ", line) for line in lines]
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in TEXTS:
            for row in range(token.start[0], token.end[0] + 1):
                start = token.start[1] if row == token.start[0] else 0
                end = token.end[1] if row == token.end[0] else None
                line = blank[row - 1]
                kept = lines[row - 1][start:end]
                blank[row - 1] = line[:start] + kept + line[start + len(kept):]
    return "".join(blank)


def expressions(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield the line, the words and the replacement of each expression in a text."""
    # In lower case: ignoring the case would cost as much as all the rest of this folder's tests.
    lower = text.lower()
    for pattern, instead in PATTERNS:
        for match in pattern.finditer(lower):
            if lower[:match.start()][-1:] not in WITHIN:
                yield lower.count("\n", 0, match.start()) + 1, " ".join(match[0].split()), instead


def test_texts_use_the_words_of_the_field() -> None:
    found = [f"{path.relative_to(ROOT)}:{line}: {words!r}: {instead}" for path in texts()
             if any(expressions(path.read_text(encoding="utf-8")))  # to find the strings takes longer
             for line, words, instead in expressions(prose(path))]
    assert not found, "\n".join(found)


def test_expressions_are_found_in_comments_docstrings_and_strings(tmp_path: Path) -> None:
    file = tmp_path / "example.py"
    file.write_text('''"""Ends quietly."""

# The last sign of
# life of a node.
log("The message is not "
    "heeded", strangers, f"{nobody} can"
    " not")
''', encoding="utf-8")
    assert sorted((line, words) for line, words, _ in expressions(prose(file))) == [
        (1, "quietly"), (3, "sign of # life"), (6, 'can" " not'), (6, "heeded")]
