"""Identifiers of a machine: usable serial numbers and UUIDs, in one form."""

from __future__ import annotations

from ironic_rules.models import machine_ids
from tests.walking import walking

UUID = "4c4c4544-0048-5410-8038-b4c04f585833"
#: As the other byte order writes the first three fields.
SWAPPED = "44454c4c-4800-1054-8038-b4c04f585833"


@walking("serial", ["4HT81X3", " 4ht81x3 "])
@walking("uuid", [UUID, UUID.upper(), SWAPPED])
def test_notations_are_one(serial, uuid):
    assert machine_ids.of(serial, uuid) == {"serial:4ht81x3", f"uuid:{UUID}", f"uuid:{SWAPPED}"}


#: Values that identify no machine.
SERIALS = ("To be filled by O.E.M.", "Default string", "System Serial Number", "Not Specified", "None", "N/A",
           "0000000000", "XXXXXXXXXX", "0123456789", "123456789012", "", "   ", "abc", "-----", "x" * 65, "a\nbcdef",
           None, 7, ["a"])
UUIDS = ("00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff", "Not Settable", "", None, 7,
         "03000200-0400-0500-0006-000700080009")


def test_values_that_identify_no_machine():
    found = [(serial, uuid) for serial in SERIALS for uuid in UUIDS if machine_ids.of(serial, uuid) != set()]
    assert found == []


@walking("vendor, data", [
    ({"serial_number": "4HT81X3", "uuid": UUID}, None),
    ({"serial_number": "4HT81X3"}, [["cpu", "x"], ["system", "product", "uuid", UUID], 7]),
])
def test_a_report(vendor, data):
    assert machine_ids.of_report({"system_vendor": vendor}, {"data": data}) == machine_ids.of("4HT81X3", UUID)


@walking("inventory", [{}, {"system_vendor": None}, {"system_vendor": {"serial_number": None}}])
def test_a_report_without_them(inventory):
    assert machine_ids.of_report(inventory, {"data": {"x": 1}}) == set()


def test_they_fit_the_column():
    assert max(map(len, machine_ids.of("s9x" * 19, UUID))) == machine_ids.MAX_LENGTH
