"""Each message of an error has an id that never changes, and the documentation lists all of them."""

from __future__ import annotations

import csv
from importlib import resources
from pathlib import Path

from ironic_rules import exceptions
from ironic_rules.api import message_page
from ironic_rules.httpd import faults
from ironic_rules.models import secrets
from ironic_rules.models.nodes import failure_reason
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
    lines = (resources.files("ironic_rules") / "api" / "messages.yaml").read_text(encoding="utf-8").splitlines()
    assert {line.split(":")[0] for line in lines if line.startswith("IR-")} <= reference.messages().keys()


def test_a_reply_has_the_id_of_its_message() -> None:
    assert b'message_id\\":\\"IR-2007' in faults.from_error(
        exceptions.node_protected(node="n", action="deletion")).body
    assert b'message_id\\":\\"IR-0500' in faults.from_error(ZeroDivisionError()).body
    assert b'message_id\\":\\"IR-0404' in faults.from_status(404).body


def test_the_page_has_an_anchor_and_what_to_do_for_each_message() -> None:
    page = message_page.page().decode()

    assert [name for name in message_page.messages() if f'<section id="{name}">' not in page] == []
    assert "<p>Set <code>protected</code> to false first.</p>" in page
    assert "``" not in page and ":doc:" not in page


def test_a_text_that_is_kept_ends_with_the_id_of_the_most_particular_message() -> None:
    broken = exceptions.BMCError(node="n", reason="refused")

    def failed(reason: str) -> str:
        return exceptions.identified(exceptions.state_failed(state="verifying", step="", reason=reason))

    assert failed(exceptions.identified(broken)).endswith(": The BMC of node n: refused (IR-0502)")
    assert failed(exceptions.identified(exceptions.IronicRulesError("no room"))).endswith(": no room (IR-2086)")
    assert exceptions.identified(ValueError("odd")) == "odd"


def test_a_long_text_keeps_its_id() -> None:
    assert secrets.message(f"{'x' * 5000} http://u:p@h/ (IR-1027)").endswith(" more characters) (IR-1027)")
    assert secrets.message("see http://u:secret@h/\n(IR-1)") == "see http://u:******@h/\\n(IR-1)"


def test_failures_with_different_ids_are_different_reasons() -> None:
    assert failure_reason("The BMC of node 1: no answer in 30 s (IR-0502)") == (
        "The BMC of node …: no answer in … s (IR-0502)")
