"""Lines that override those of the groups' files, and what a dnsmasq has in its memory meanwhile."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ironic_rules.pxe_filter import hostsdir
from ironic_rules.pxe_filter.hostsdir import Hostsdir, addresses_in, is_ours
from ironic_rules.pxe_filter.plan import Layout
from ironic_rules.pxe_filter.targets.base import Batch, Outcome
from ironic_rules.pxe_filter.targets.hostsdir import HostsdirTarget, Overrides
from tests import matrices

MACS = [f"52:54:00:00:{number >> 4:02x}:{number & 15:x}0" for number in range(64)]
TAG = "tag:!ironic-pxe-filter"


class Memory:
    """A folder as a dnsmasq has read it. ``verdict`` follows the search order that dnsmasq(8) describes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen: dict[str, int] = {}
        self._lines: list[str] = []

    def start(self, chance: random.Random) -> None:
        """Forget everything, and read the files in any order."""
        self._lines, self._seen = [], {}
        self.follow(chance)

    def follow(self, chance: random.Random) -> None:
        """Read the files that were replaced."""
        names = [name for name in os.listdir(self._folder) if not name.startswith(".")]
        for name in chance.sample(names, len(names)):
            inode = (self._folder / name).stat().st_ino
            if self._seen.get(name) != inode:
                self._seen[name] = inode
                self._lines = (self._folder / name).read_text().splitlines() + self._lines

    def verdict(self, mac: str) -> bool | None:
        own = [line.split(",") for line in self._lines if line.partition(",")[0] == mac]
        found = [words for words in own if TAG in words] or own
        return "ignore" not in found[0] if found else None


class Site:
    """A target whose dnsmasq is a ``Memory``."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, *, allowed_only: bool = False) -> None:
        self.folder = folder
        self.chance = random.Random(4)
        self.memory = Memory(folder)
        self.process: str | None = "4711 1"
        self.layout = Layout(8)
        self.signals = True
        monkeypatch.setattr(hostsdir, "started", lambda _: self.process)
        monkeypatch.setattr(hostsdir, "reload", self._reload)
        self.target = self.open(allowed_only=allowed_only)

    def open(self, *, allowed_only: bool = False) -> HostsdirTarget:
        self.target = HostsdirTarget(str(self.folder), "pid", self.layout, allowed_only=allowed_only)
        self.found = list(self.target.open())
        return self.target

    def _reload(self, _: object) -> bool:
        if self.signals:
            self.memory.start(self.chance)
        return self.signals

    def groups(self, wanted: dict[str, bool], names: set[str] | None = None) -> Outcome:
        groups: dict[str, list[tuple[str, bool]]] = {}
        for mac, allowed in sorted(wanted.items()):
            groups.setdefault(self.layout.file_of(mac), []).append((mac, allowed))
        return self.apply(Batch({name: groups.get(name, []) for name in (groups if names is None else names)}, None))

    def changes(self, wanted: dict[str, bool]) -> Outcome:
        return self.apply(Batch({}, None, list(wanted.items())))

    def apply(self, batch: Batch) -> Outcome:
        outcome = self.target.apply(batch)
        self.memory.follow(self.chance)
        return outcome

    def reload(self, wanted: dict[str, bool]) -> bool:
        self.groups(wanted, set(self.target.prepare_reload()))
        return self.target.reload()

    @property
    def files(self) -> list[str]:
        return sorted(name for name in os.listdir(self.folder) if name.startswith("changes-"))

    def served(self) -> set[str]:
        return {mac for mac, allowed in self.seen().items() if allowed}

    def seen(self) -> dict[str, bool | None]:
        return {mac: self.memory.verdict(mac) for mac in MACS}


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    made = Site(tmp_path, monkeypatch)
    yield made
    made.target.close()


def test_changes_are_one_file_and_groups_follow_before_a_reload(site: Site) -> None:
    wanted = dict.fromkeys(MACS, False)
    site.groups(wanted)
    before = {name: (site.folder / name).read_text() for name in os.listdir(site.folder) if name.startswith("macs-")}
    wanted |= dict.fromkeys(MACS[:20], True)
    assert site.changes(dict.fromkeys(MACS[:20], True)) == Outcome(frozenset(), False, None, 1)

    [name] = site.files
    assert is_ours(name)
    assert addresses_in((site.folder / name).read_text()) == MACS[:20]
    assert {name: (site.folder / name).read_text() for name in before} == before
    assert site.seen() == wanted
    assert (site.target.needed, site.target.takes_changes) == (64, True)

    assert site.changes({MACS[0]: True}).written == 0
    assert site.target.leftovers() == {site.layout.file_of(mac) for mac in MACS[:20]}
    assert site.reload(wanted)
    assert site.files == []
    assert site.target.leftovers() == frozenset()
    assert site.seen() == wanted


def test_a_group_that_is_written_does_not_contradict_what_overrides_it(site: Site) -> None:
    wanted = dict.fromkeys(MACS, False)
    site.groups(wanted)
    site.changes({MACS[0]: True, MACS[1]: True})
    [first] = site.files
    wanted[MACS[1]] = True
    assert site.groups(wanted).problem is None
    assert site.seen() == wanted

    # Each address is in one file only, so that a dnsmasq that starts finds the same.
    assert (site.folder / first).read_text() == f"{MACS[1]},{TAG}\n"
    assert (site.folder / site.files[1]).read_text() == f"{MACS[0]},{TAG},ignore\n"
    for _ in range(10):
        site.memory.start(site.chance)
        assert site.seen() == wanted


def test_a_file_that_others_change_is_replaced(site: Site) -> None:
    wanted = dict.fromkeys(MACS, False)
    site.groups(wanted)
    site.changes({MACS[0]: True, MACS[1]: True})
    wanted |= {MACS[0]: True, MACS[1]: True}
    (site.folder / site.files[0]).write_text(f"{MACS[2]},{TAG}\n52:54:00:00:ff:ff,{TAG}\n")
    site.memory.start(site.chance)

    [found] = site.target.changed_by_others()
    assert "52:54:00:00:ff:ff" in found.addresses
    assert found.groups >= {site.layout.file_of(mac) for mac in (*MACS[:3], "52:54:00:00:ff:ff")}
    wanted["52:54:00:00:ff:ff"] = False
    site.groups(wanted, set(found.groups))
    assert site.seen() | {"52:54:00:00:ff:ff": site.memory.verdict("52:54:00:00:ff:ff")} == wanted
    assert list(site.target.changed_by_others()) == []


def test_a_reload_that_fails_leaves_everything(site: Site) -> None:
    wanted = dict.fromkeys(MACS, False)
    site.groups(wanted)
    site.changes({MACS[0]: True})
    wanted[MACS[0]] = True
    site.signals = False
    texts = [(site.folder / name).read_text() for name in site.files]
    assert not site.reload(wanted)
    assert [(site.folder / name).read_text() for name in site.files] == texts
    wanted[MACS[0]] = False
    site.groups(wanted)
    assert site.seen() == wanted


def test_a_filter_that_starts_takes_over_what_one_before_has_left(site: Site) -> None:
    wanted = dict.fromkeys(MACS, False)
    site.groups(wanted)
    site.changes(dict.fromkeys(MACS[:9], True))
    site.target.close()

    site.open()
    assert set(site.found) == set(MACS)
    site.groups(wanted)
    assert site.seen() == wanted
    assert site.target.must_reload
    assert site.reload(wanted)
    assert site.files == []
    assert site.seen() == wanted


def test_the_closed_policy_denies_what_the_open_one_has_left(site: Site) -> None:
    site.groups(dict.fromkeys(MACS, False))
    site.changes(dict.fromkeys(MACS[:9], True))
    site.target.close()

    # The ports of all but one address are gone since.
    site.open(allowed_only=True)
    site.groups({MACS[3]: True})
    assert site.seen() == dict.fromkeys(MACS, False) | {MACS[3]: True}
    site.memory.start(site.chance)
    assert [mac for mac, allowed in site.seen().items() if allowed] == [MACS[3]]


def test_the_closed_policy_denies_an_allowed_address_that_leaves(tmp_path: Path,
                                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site(tmp_path, monkeypatch, allowed_only=True)
    site.groups(dict.fromkeys(MACS, False))
    assert site.target.takes_changes
    site.changes(dict.fromkeys(MACS[:9], True))
    assert site.served() == set(MACS[:9])
    assert (site.target.needed, site.target.surplus) == (9, -9)  # nothing counts what is read, in this test

    site.groups(dict.fromkeys(MACS[1:], True) | dict.fromkeys(MACS[9:], False), {site.layout.file_of(MACS[0])})
    assert site.served() == set(MACS[1:9])
    assert site.reload(dict.fromkeys(MACS[1:9], True))
    assert site.served() == set(MACS[1:9])
    assert site.files == []
    site.target.close()


def test_a_disk_that_refuses_is_a_failure_of_the_groups(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = dict.fromkeys(MACS, False)
    site.groups(wanted)
    site.changes({MACS[0]: True, MACS[1]: True})
    write = Hostsdir.write

    def refuse(folder: Hostsdir, name: str, content: str) -> bool:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Hostsdir, "write", refuse)
    outcome = site.changes({MACS[0]: False, MACS[5]: True})
    assert isinstance(outcome.problem, OSError)
    assert outcome.failed == {site.layout.file_of(MACS[0]), site.layout.file_of(MACS[5])}
    monkeypatch.setattr(Hostsdir, "write", write)
    wanted |= {MACS[1]: True, MACS[5]: True}
    assert site.groups(wanted).problem is None
    assert site.seen() == wanted


@pytest.mark.parametrize("emptied", [True, False])
def test_a_disk_that_refuses_between_two_files_is_recovered_from(site: Site, monkeypatch: pytest.MonkeyPatch,
                                                                 emptied: bool) -> None:
    """Both files have an address that changes; one of them has no other, and is removed."""
    wanted = dict.fromkeys(MACS, False)
    site.groups(wanted)
    site.changes({MACS[0]: True})
    site.changes({MACS[1]: True, MACS[2]: True} if emptied else {MACS[1]: True})
    write, remove = Hostsdir.write, Hostsdir.remove
    done: list[str] = []

    def second(function: Callable[..., Any]) -> Callable[..., Any]:
        def called(folder: Hostsdir, name: str, *content: str) -> Any:
            done.append(name)
            if len(done) > 1:
                raise OSError(28, "No space left on device")
            return function(folder, name, *content)

        return called

    monkeypatch.setattr(Hostsdir, "write", second(write))
    monkeypatch.setattr(Hostsdir, "remove", second(remove))
    assert isinstance(site.changes({MACS[0]: False, MACS[1]: False}).problem, OSError)
    assert len(done) > 1
    monkeypatch.setattr(Hostsdir, "write", write)
    monkeypatch.setattr(Hostsdir, "remove", remove)
    wanted |= {MACS[2]: emptied}
    assert site.groups(wanted).problem is None
    assert site.seen() == wanted


def test_too_many_files_are_not_made(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ironic_rules.pxe_filter.targets.hostsdir._MAX_OVERRIDE_FILES", 2)
    site.groups(dict.fromkeys(MACS, False))
    for mac in MACS[:2]:
        assert site.target.takes_changes
        site.changes({mac: True})
    assert not site.target.takes_changes


def test_a_file_that_cannot_be_removed_remains_an_override(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Hostsdir(str(tmp_path))
    folder.open()
    overrides = Overrides(folder, Layout(8))
    overrides.write([(MACS[0], True)])
    overrides.write([(MACS[1], True)])
    remove, names = folder.remove, sorted(overrides.names)

    def refuse(name: str) -> None:
        if name == names[0]:
            raise OSError(30, "Read-only file system")
        remove(name)

    monkeypatch.setattr(folder, "remove", refuse)
    overrides.remove()
    overrides.forget()
    assert overrides.names == {names[0]}
    assert overrides.contradicting(Layout(8).file_of(MACS[0]), [(MACS[0], False)]) == [(MACS[0], False)]
    assert overrides.contradicting(Layout(8).file_of(MACS[1]), [(MACS[1], False)]) == []
    folder.close()


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("seed", matrices.walks(2))
def test_dnsmasq_has_what_is_wanted_after_any_sequence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int,
                                                       closed: bool) -> None:
    """Changes, groups, restarts of both, reloads that fail or not, and a disk that is full: in any order."""
    site = Site(tmp_path, monkeypatch, allowed_only=closed)
    chance = random.Random(seed)
    wanted: dict[str, bool] = dict.fromkeys(MACS, False)
    site.groups(wanted)

    def some() -> dict[str, bool]:
        return {mac: chance.random() < 0.5 for mac in chance.sample(MACS, chance.randrange(1, 30))}

    def change() -> None:
        new = some()
        wanted.update(new)
        site.changes(new)

    def change_on_a_full_disk() -> None:
        new, left = some(), chance.randrange(3)
        wanted.update(new)
        with pytest.MonkeyPatch.context() as patch:
            for function in (Hostsdir.write, Hostsdir.remove):
                def refused(folder: Hostsdir, name: str, *content: str, to: Any = function) -> Any:
                    nonlocal left
                    left -= 1
                    if left < 0:
                        raise OSError(28, "No space left on device")
                    return to(folder, name, *content)

                patch.setattr(Hostsdir, function.__name__, refused)
            failed = site.changes(new).failed
        assert site.groups(wanted, set(failed)).problem is None

    def write_groups() -> None:
        new = some()
        wanted.update(new)
        site.groups(wanted, {site.layout.file_of(mac) for mac in new})

    def restart_dnsmasq() -> None:
        site.process = f"4711 {chance.random()}"
        site.memory.start(chance)

    def restart_filter() -> None:
        site.target.close()
        site.open(allowed_only=closed)
        wanted.update(dict.fromkeys(site.found, False) | wanted)
        site.groups(wanted)

    def reload() -> None:
        site.signals = chance.random() < 0.7
        site.reload(wanted)
        site.memory.follow(chance)

    def consolidate() -> None:
        site.groups(wanted, set(site.target.leftovers()))

    def interfere() -> None:
        if site.files:
            file = site.folder / chance.choice(site.files)
            if chance.random() < 0.5:
                file.unlink()
            else:
                file.write_text("".join(f"{mac},{TAG}\n" for mac in chance.sample(MACS, 3)))
            site.memory.start(chance)
            for found in list(site.target.changed_by_others()):
                site.groups(wanted, set(found.groups))

    steps: list[Callable[[], None]] = [change, change, change, change_on_a_full_disk, write_groups, restart_dnsmasq,
                                       restart_filter, reload, consolidate, interfere]
    for _ in range(120):
        step = chance.choice(steps)
        step()
        assert site.served() == {mac for mac, allowed in wanted.items() if allowed}, step.__name__
        assert closed or site.seen() == wanted, step.__name__
    site.target.close()
