from __future__ import annotations

from ironic_rules.pxe_filter import hostsdir, plan
from tests.walking import walking

#: The client identifier of an InfiniBand port, as the agent reports it; the last eight octets are its GUID.
GUID = "ff:00:00:00:00:00:02:00:00:02:c9:00:00:02:c9:03:00:19:10:51"


@walking("text", [GUID, GUID.upper(), GUID.replace(":", "-"), GUID.replace(":", "")])
def test_octets_in_any_notation_become_a_key(text: str) -> None:
    assert plan.key_of(text) == f"id:{GUID}"
    assert plan.octets(f"id:{GUID}") == bytes.fromhex(GUID.replace(":", ""))


@walking("bad", [
    "", "ff", "f", "fff", "ff:0", "ff:00\n", "ff:00,ignore", "*", "ff::00", "rack-7", 7, None, "ff:" * 300,
    "01:52:54:00:00:00:01", "00:03:00:01:52:54:00:00:00:01"])
def test_what_is_not_in_hexadecimal_or_is_made_of_an_address_is_refused(bad: object) -> None:
    refused: set[str] = set()

    assert list(plan.keys([(bad, 1)], refused)) == []
    assert refused == {f"id:{bad}"}


@walking("files", [0, 1024])
def test_keys_have_files_that_can_exist(files: int) -> None:
    layout = plan.Layout(files)
    keys = [f"id:{GUID[:-2]}{number:02x}" for number in range(64)] + ["id:" + ":".join(["00"] * 255)]

    names = {layout.file_of(key) for key in keys}
    assert len(names) > 32
    assert all(hostsdir.is_ours(name) for name in names)
