"""Conclusions from the events of a folder, in orders that the kernel rarely reports them in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ironic_rules.pxe_filter.hostsdir import Watch
from tests.walking import walking

CLOSED, OPENED, MOVED = 0x10, 0x20, 0x80


class Given(Watch):
    """The events are given, otherwise it is the real one."""

    def __init__(self) -> None:
        super().__init__()
        self.given: list[tuple[int, str]] = []

    def _events(self) -> Iterator[tuple[int, str]]:
        events, self.given = self.given, []
        yield from events


@walking("events, unread, doubtful", [
    ([MOVED, OPENED, CLOSED], False, False),
    ([MOVED, OPENED], True, False),
    ([MOVED], True, False),
    # The old one was open; the kernel also reports that it is closed.
    ([MOVED, CLOSED], True, False),
    # dnsmasq was told of the rename first.
    ([OPENED, CLOSED, MOVED], True, True),
    ([OPENED, MOVED, CLOSED], True, True),
    ([OPENED, CLOSED, MOVED, OPENED, CLOSED], False, True)])
def test_whether_a_file_was_read(events: list[int], unread: bool, doubtful: bool) -> None:
    watch = Given()
    watch.begin()
    watch.given = [(event, "macs-0001") for event in events]

    watch.look()

    assert ("macs-0001" in watch.unread) is unread
    assert ("macs-0001" in watch.doubtful) is doubtful


def test_what_was_read_before_a_rename_does_not_make_it_doubtful() -> None:
    watch = Given()
    watch.given = [(OPENED, "macs-0001"), (CLOSED, "macs-0001")]
    watch.begin()
    watch.given = [(MOVED, "macs-0001")]

    watch.look()

    assert watch.unread == {"macs-0001"}
    assert watch.doubtful == set()


def test_the_kernel_reports_a_rename_and_a_reading(tmp_path: Path) -> None:
    watch = Watch()
    watch.open(str(tmp_path))
    try:
        (tmp_path / ".new").write_text("")
        (tmp_path / ".new").rename(tmp_path / "macs-0001")
        watch.look()
        assert watch.unread == {"macs-0001"}
        (tmp_path / "macs-0001").read_text()
        watch.look()
        assert (watch.unread, watch.take_reads()) == (set(), {"macs-0001": 1})
    finally:
        watch.close()
