"""The report on the structure counts and finds what it says; see ``tests/structure.py``."""

from __future__ import annotations

from tests import structure
from tests.modules import PACKAGE, first_imports_in
from tests.walking import walking

#: A made-up tree: one circle of three, of which one is a package, and imports that make none.
TREE = {
    "exceptions.py": "class Wrong(Exception):\n    pass\n",
    "models/__init__.py": "",
    "models/node.py": "from typing import Any\nfrom ironic_rules.models import trait\n\nAnything = Any  # not Anyone\n",
    "models/trait.py": "import ironic_rules.models.words.common\n",
    "models/words/__init__.py": "",
    "models/words/common.py": "from ..words.rare import WORD\nfrom ..node import Node\n",
    "models/words/rare.py": "WORD = 'rare'\n",
    "db/__init__.py": "from ironic_rules import exceptions\nfrom ironic_rules.models.node import Anything\n",
    "db/rows.py": (
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ironic_rules.db import tables\n"
        "def later():\n    from ironic_rules.db.tables import TABLE\n"),
    "db/tables.py": "import os.path\nfrom ironic_rules.db import rows\nfrom ironic_rules.api import app\n",
    "api/app.py": "",
}
SOURCES = {PACKAGE / name: text for name, text in TREE.items()}
TESTS = [
    "def test_one():\n    pass\n\nclass TestMore:\n    def test_two(self):\n        pass\n",
    "def helper():\n    pass\n",
]

REPORT = """\
modules: 11
lines of a module: median 2, 95th percentile 4
longest modules:
      5  ironic_rules/db/rows.py
      4  ironic_rules/models/node.py
      3  ironic_rules/db/tables.py
      2  ironic_rules/db/__init__.py
      2  ironic_rules/exceptions.py
      2  ironic_rules/models/words/common.py
      1  ironic_rules/models/trait.py
      1  ironic_rules/models/words/rare.py
      0  ironic_rules/api/app.py
      0  ironic_rules/models/__init__.py
Any: 2 times
imports that point upwards: 1
  ironic_rules/db/tables.py:3: db must not import ironic_rules.api.app
circles between packages: 1
  models/node <-> models/trait <-> models/words
    ironic_rules/models/node.py:2: ironic_rules.models.trait
    ironic_rules/models/trait.py:1: ironic_rules.models.words.common
    ironic_rules/models/words/common.py:2: ironic_rules.models.node.Node
test functions: 2"""


def test_the_report_on_a_made_up_tree():
    assert structure.report(SOURCES, TESTS) == REPORT


def test_the_numbers_of_a_made_up_tree():
    found = structure.measures(SOURCES, {"a MAC": 3})

    assert found == {
        "modules": 11, "lines": 20, "small modules with one importer": 6, "modules in circles": 3,
        "import levels in api": 1, "import levels in db": 2, "import levels in models": 4, "Any in annotations": 0,
        "pecan.request outside api/app.py": 0, "vague local names": 0, "modules of the journey of a MAC": 3}


def test_only_annotations_and_requests_of_the_thread_are_counted():
    source = ("def read(x: list[Any], *, y: Any = 1) -> dict[str, Any]:\n"
              "    z: Any = pecan.request.db\n    return {x: Any}\n")
    found = structure.measures({PACKAGE / "api" / "nodes.py": source, PACKAGE / "api" / "app.py": source}, {})

    assert (found["Any in annotations"], found["pecan.request outside api/app.py"]) == (8, 1)


def test_bindings_of_vague_names_are_counted_and_their_uses_are_not():
    source = ("def read(given, *, what=None):\n    found = given\n    if (told := found):\n        return told.made\n"
              "    for made, row in what(found=1):\n        match row:\n            case [kept, *said]:\n"
              "                return {taken: 1 for taken in kept}\n    finding: int = lambda wanted: wanted\n")

    assert structure.measures({PACKAGE / "api" / "nodes.py": source}, {})["vague local names"] == 9


def test_a_number_that_rises_or_has_no_limit_is_told():
    assert structure.risen({"lines": 5, "modules": 2, "circles": 0}, {"lines": 4, "modules": 2}) == [
        "lines: 5, and at most 4 is allowed", "circles: has no limit"]


def test_no_number_of_this_tree_has_risen_as_the_report_says(capsys):
    status = structure.main()

    printed = capsys.readouterr().out
    assert (status, printed.partition("\nrisen: ")[2]) == (0, "0\n")
    said = dict(line.split(": ", 1) for line in printed.splitlines() if not line.startswith(" ") and ": " in line)
    assert int(said["modules"]) > 100
    assert int(said["test functions"]) > 1000
    assert printed.count("  ironic_rules/") >= structure.LONGEST
    assert "/migrations/versions/" not in printed
    kept = printed.partition("\nmust not rise:\n")[2].partition("\nrisen: ")[0].splitlines()
    assert {line.strip().rpartition(": ")[0] for line in kept} == structure.read_limits().keys()


@walking("edges, circles", [
    ("", []), ("ab bc", []), ("ab ba", ["ab"]), ("ab bc ca cd de", ["abc"]), ("ab ba cd dc bc", ["ab", "cd"]),
    ("ab ba bc cb", ["abc"]),
])
def test_circles_are_groups_that_import_each_other(edges, circles):
    found = structure.circles_in((importer, imported, importer + imported) for importer, imported in edges.split())

    assert ["".join(group) for group in found] == circles
    assert all({*imports} == {edge for edge in edges.split() if {*edge} <= {*group}}
               for group, imports in found.items())


def test_first_imports_are_those_that_importing_a_module_makes():
    source = """\
import typing
from typing import TYPE_CHECKING
try:
    import a
except ImportError:
    import b
if TYPE_CHECKING:
    import c
elif a:
    import d
else:
    import e
if typing.TYPE_CHECKING:
    import f
if not TYPE_CHECKING:
    import g
class Class:
    import h
    def method(self):
        import i
async def coroutine():
    import j
"""
    names = [name for _, name in first_imports_in(PACKAGE / "example.py", source)]

    assert names == ["typing", "typing.TYPE_CHECKING", *"abdegh"]
