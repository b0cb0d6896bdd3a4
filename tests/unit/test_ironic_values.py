"""The page for operators of Ironic names what the service refuses, and defaults as they are."""

from __future__ import annotations

import re
from pathlib import Path

from ironic_rules.conf import ironic, opts
from tests.unit.doc_extensions import extension

TABLE = extension("ironic_values")
PAGE = Path(__file__).resolve().parents[2] / "doc" / "source" / "admin" / "coming-from-ironic.rst"
OPTIONS = {(group, option.dest): option for group, options in opts.list_opts() for option in options}


def test_every_value_is_in_one_row_with_its_advice() -> None:
    found = [(option, value, advice) for option, values, advice in TABLE.rows() for value in values]

    assert len(found) == len(set(found))
    assert set(found) == {(f"[{group}]{name}", value, advice) for (group, name), known in ironic.VALUES.items()
                          for value, advice in known.items()}


def test_every_option_with_advice_exists() -> None:
    assert ironic.VALUES.keys() - OPTIONS.keys() == set()


def test_the_defaults_of_the_page_are_those_of_the_options() -> None:
    rows = re.findall(r"^``\[(\w+)\](\w+)`` {2,}\S.*? {2,}`*([\w.-]+)", PAGE.read_text(encoding="utf-8"), re.MULTILINE)

    shown = {(group, name): text for group, name, text in rows}
    assert len(shown) >= 6
    for (group, name), text in shown.items():
        default = OPTIONS[group, name].default
        value = ",".join(default) if isinstance(default, list) else str(default)
        assert text.lower() == value.lower(), (group, name)


def test_every_protection_is_in_one_row() -> None:
    found = [(option, advice) for options, advice in TABLE.protection_rows() for option in options]

    assert len(found) == len(set(found))
    assert set(found) == {(f"[{group}]{name}", protection.instead)
                          for (group, name), protection in ironic.PROTECTIONS.items()}


def test_what_nothing_reads_is_no_option() -> None:
    of_ironic = {(group, name) for group, names in ironic.NAMES.items() for name in names}
    library = {(group, option.dest) for group, options in opts.list_library_opts() for option in options}

    assert OPTIONS.keys() | library >= {tuple(re.findall(r"\w+", other)) for other in ironic.RENAMED.values()}
    assert of_ironic.isdisjoint(OPTIONS.keys() | library)
    assert ironic.PROTECTIONS.keys().isdisjoint(OPTIONS.keys() | library)
    assert ironic.RENAMED.keys().isdisjoint(OPTIONS.keys() | library)
    assert {group for group, _ in OPTIONS}.isdisjoint(ironic.GROUPS)


def test_advice_names_options_that_exist() -> None:
    named = {found for protection in ironic.PROTECTIONS.values()
             for found in re.findall(r"\[(\w+)\](\w+)", protection.instead)}

    assert len(named) > 10
    assert {(group, name) for group, name in named if group in {own for own, _ in OPTIONS}
            and name != "transport_url"} - OPTIONS.keys() == set()
