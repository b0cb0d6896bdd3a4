"""Each message of an error has an id that never changes, and the documentation lists all of them."""

from __future__ import annotations

import csv
from pathlib import Path

from ironic_rules import exceptions
from ironic_rules.httpd import faults
from tests.unit.doc_extensions import extension

FOLDER = Path(__file__).resolve().parents[2] / "doc" / "source" / "reference"


def test_ids_are_unique_and_are_those_of_the_list() -> None:
    """``messages.csv`` has every id that was ever given: add lines, and change none."""
    listed = list(csv.reader((FOLDER / "messages.csv").read_text(encoding="utf-8").splitlines()))[1:]
    named = [(item.message_id, name) for name, item in vars(exceptions).items()
             if isinstance(item, exceptions.Wording) or name in exceptions.http_errors()]

    assert sorted(named) == sorted((message_id, name) for message_id, name in listed if name)
    # A ramdisk must not learn whether its machine is known.
    assert {name for message_id, name in listed if message_id == "IR-1010"} == {"LookupFailed", "MachineUnknown"}
    assert len({message_id for message_id, _ in listed}) == len(listed) - 1


def test_remedies_are_about_messages_that_exist() -> None:
    reference = extension("message_reference")
    text = reference.page()

    assert all(f".. _{message_id}:" in text for message_id in reference.messages())
    remedies = {line.split(":")[0] for line in (FOLDER / "messages.yaml").read_text(encoding="utf-8").splitlines()
                if line.startswith("IR-")}
    assert remedies <= reference.messages().keys()


def test_a_reply_has_the_id_of_its_message() -> None:
    assert b'message_id\\":\\"IR-2007' in faults.from_error(
        exceptions.node_protected(node="n", action="deletion")).body
    assert b'message_id\\":\\"IR-0500' in faults.from_error(ZeroDivisionError()).body
    assert b'message_id\\":\\"IR-0404' in faults.from_status(404).body
