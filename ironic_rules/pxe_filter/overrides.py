"""Files with single changes of several groups, whose lines override those of the groups' own files.

dnsmasq takes some milliseconds for each file that it reads, because it then looks at every line in its memory; the
lines of the file itself hardly count. So when many groups change at once, their changed addresses are written into one
file (among 100,000 lines, 3 ms for a file of 100 lines, and 1 ms for one of 30).

A line with a tag is found before all lines without one, whatever the order in which dnsmasq has read them, and the tag
after ``!`` is never set. What dnsmasq has read remains in its memory until it reloads. So until then each change of
such an address needs another line like that, and the address is in one of these files.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence, Set

from ironic_rules.pxe_filter import plan
from ironic_rules.pxe_filter.hostsdir import Hostsdir

_TAG = "tag:!ironic-pxe-filter"


class Overrides:
    """The override lines in one folder, and in the memory of its dnsmasq.

    :param layout: assigns addresses to groups
    """

    def __init__(self, folder: Hostsdir, layout: plan.Layout) -> None:
        self._folder = folder
        self._layout = layout
        #: by group: address -> whether its line allows it; None: unknown, because others have written it
        self._verdicts: dict[str, dict[str, bool | None]] = {}
        #: addresses of each file, and the file of each address
        self._files: dict[str, set[str]] = {}
        self._file_of: dict[str, str] = {}
        self._next = 0
        #: names of files that are removed if dnsmasq reloads
        self._removed: set[str] = set()

    @property
    def lines(self) -> int:
        """Number of lines in the files."""
        return len(self._file_of)

    @property
    def denied(self) -> int:
        """Number of addresses whose lines do not allow them."""
        return sum(allowed is not True for group in self._verdicts.values() for allowed in group.values())

    @property
    def names(self) -> Set[str]:
        """Names of the files, now and later."""
        return self._files.keys()

    def doubt(self, name: str, addresses: Iterable[str]) -> set[str]:
        """Take note that others, or a filter before, have written a file; return the groups that must be written.

        :param addresses: that are in it, or were
        :raises OSError: some of them are also in another file, which cannot be removed
        """
        self._next = max(self._next, int(name.rpartition("-")[2], 16) + 1)
        mine = {*addresses, *self._files.get(name, ())}
        for other in {self._file_of[mac] for mac in mine if mac in self._file_of} - {name}:
            self._folder.remove(other)
            gone = self._files.pop(other)
            mine |= gone
            for mac in gone:
                del self._file_of[mac]
                self._verdicts[self._layout.file_of(mac)][mac] = None
        self._files[name] = mine
        for mac in mine:
            self._file_of[mac] = name
            self._verdicts.setdefault(self._layout.file_of(mac), {})[mac] = None
        return {self._layout.file_of(mac) for mac in mine}

    def contradicting(self, name: str, pairs: Sequence[tuple[str, bool]], *,
                      deny_others: bool = False) -> list[tuple[str, bool]]:
        """Return those addresses of a group that have an override line with another verdict.

        :param deny_others: addresses that are not in the group any more are denied; otherwise they do not matter
        """
        known = self._verdicts.get(name)
        if not known:
            return []
        wanted = dict.fromkeys(known, False) | dict(pairs) if deny_others else dict(pairs)
        return [(mac, allowed) for mac, allowed in wanted.items() if known.get(mac, allowed) is not allowed]

    def write(self, changes: Iterable[tuple[str, bool]]) -> int:
        """Write lines for these addresses, unless they have equal ones; return the number of files written.

        :raises OSError: the disk refuses; addresses that are not written count as unknown, and have to be written again
        """
        new = {mac: allowed for mac, allowed in changes
               if self._verdicts.get(self._layout.file_of(mac), {}).get(mac) is not allowed}
        if not new:
            return 0
        before: dict[str, set[str]] = {}
        for mac in new:
            self._verdicts.setdefault(self._layout.file_of(mac), {})[mac] = None
            if mac in self._file_of:
                before.setdefault(self._file_of[mac], set()).add(mac)
        written = 0
        # First, so that a dnsmasq that starts meanwhile never finds two lines for an address.
        for name, moved in before.items():
            written += self._keep(name, self._files[name] - moved)
            for mac in moved:
                del self._file_of[mac]
        name = f"changes-{self._next:08x}"
        self._folder.write(name, "".join([_line(mac, allowed) for mac, allowed in new.items()]))
        self._next += 1
        self._files[name] = set(new)
        for mac, allowed in new.items():
            self._file_of[mac] = name
            self._verdicts[self._layout.file_of(mac)][mac] = allowed
        return written + 1

    def _keep(self, name: str, addresses: set[str]) -> bool:
        """Write a file again, with only these addresses."""
        known = [(mac, allowed) for mac in sorted(addresses)
                 if (allowed := self._verdicts[self._layout.file_of(mac)][mac]) is not None]
        if known:
            changed = self._folder.write(name, "".join([_line(mac, allowed) for mac, allowed in known]))
            self._files[name] = addresses
            return changed
        self._folder.remove(name)
        del self._files[name]
        for mac in addresses:
            del self._file_of[mac]
        return True

    def remove(self) -> None:
        """Remove the files, before dnsmasq reloads. The files of all groups say the same; ``restore`` is possible."""
        for name in self._files:
            with contextlib.suppress(OSError):  # what cannot be removed is read again, and remains an override
                self._folder.remove(name)
                self._removed.add(name)

    def forget(self) -> None:
        """Forget what ``remove`` has removed: dnsmasq reloads."""
        for name in self._removed:
            for mac in self._files.pop(name):
                del self._file_of[mac], self._verdicts[self._layout.file_of(mac)][mac]
        self._removed = set()

    def restore(self) -> None:
        """Write the files again that ``remove`` has removed, because dnsmasq did not reload."""
        for name in self._removed:
            with contextlib.suppress(OSError):  # dnsmasq has the lines; they are missing only if it is restarted
                self._keep(name, self._files[name])
        self._removed = set()


def _line(mac: str, allowed: bool) -> str:
    return f"{mac},{_TAG}\n" if allowed else f"{mac},{_TAG},ignore\n"
