"""The interface of a target. Packages provide others in the entry point group ``ironic_rules.pxe_filter.targets``.

The filter decides (``plan``), collects what has changed and requests reloads (``writer``); a target knows how one DHCP
server is told. Addresses come in groups, each with a name; a group is given as a whole. A target that
``takes_changes`` is given single addresses instead when many groups change at once.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, NamedTuple

from oslo_config import cfg

from ironic_rules.pxe_filter.plan import Layout
from ironic_rules.pxe_filter.settings import TargetSettings

#: Entry point group of targets.
GROUP = "ironic_rules.pxe_filter.targets"


class Batch(NamedTuple):
    """A batch of changes that a target is to write.

    :param groups: name of the group -> (address, whether it is allowed), ascending; an empty list: no address is left
    :param allows_unknown: whether addresses that are in no group are allowed; None: this has not changed. False comes
        also when a group with a denial has failed while they are allowed: if possible, write it even on a full disk
    :param changes: (address, whether it is allowed) of addresses whose groups are not given, although they have changed
    """

    groups: Mapping[str, Sequence[tuple[str, bool]]]
    allows_unknown: bool | None
    changes: Sequence[tuple[str, bool]] = ()


class Outcome(NamedTuple):
    """The result of a batch.

    :param failed: names of the groups that could not be written, also of addresses in ``changes``
    :param unknown_failed: whether ``allows_unknown`` could not be written
    :param problem: the first error, None if there was none
    :param written: number of files or rows that were changed
    """

    failed: frozenset[str]
    unknown_failed: bool
    problem: Exception | None
    written: int


class Found(NamedTuple):
    """Changes by others.

    :param what: for the log
    :param groups: names of the groups that must be written again
    :param addresses: addresses that are written there, which the filter may not know
    :param unknown: whether ``allows_unknown`` must be written again
    """

    what: str
    groups: frozenset[str]
    addresses: Sequence[str]
    unknown: bool = False


class InForce(NamedTuple):
    """The progress of the server: the changes that it has taken over.

    :param waiting: number of files (or batches) that were written and that the server has not read; None: unknown
    :param reason: why not everything is in effect, or why that is unknown; empty if everything is
    """

    waiting: int | None
    reason: str = ""


class Target(abc.ABC):
    """One DHCP server, or several that share what is written. Methods are called by one thread at a time."""

    #: for the log and the metrics, such as the path of a folder
    name: str
    #: options of ``[pxe_filter]`` and ``[pxe_filter:NAME]`` that the package adds; registered before ``make``
    opts: ClassVar[Sequence[cfg.Opt]] = ()
    #: true if an address without a port must still be written until the server reloads
    lingers = False
    #: maximum number of groups in a batch
    slice_size = 16

    @classmethod
    @abc.abstractmethod
    def make(cls, settings: TargetSettings, layout: Layout) -> Sequence[Target]:
        """Return the targets that are configured.

        :param settings: of this target; ``options`` has all options of ``[pxe_filter]``, or of ``[pxe_filter:NAME]``
        :param layout: says which group an address belongs to
        :raises ConfigurationError: an option is missing or not usable
        """

    @abc.abstractmethod
    def open(self) -> Iterable[str]:
        """Take the target into use; return the addresses that a filter has written there before.

        :raises ConfigurationError: it cannot be used, or another filter uses it
        :raises OSError: it is unavailable, and opening it is retried
        """

    @abc.abstractmethod
    def peek(self) -> tuple[Sequence[str], str]:
        """Return the addresses and the state without taking the target into use, for ``--status``.

        :returns: the addresses that ``open`` would return, and a sentence about what is in effect
        """

    @abc.abstractmethod
    def close(self) -> None:
        """Stop using it; what is written remains in effect."""

    @abc.abstractmethod
    def apply(self, batch: Batch) -> Outcome:
        """Write a batch. Failed groups are given again, at the next synchronization at the latest.

        :returns: errors, too; with one that is raised instead, nothing of the batch counts as written
        """

    @abc.abstractmethod
    def changed_by_others(self) -> Iterator[Found]:
        """Yield changes by others since the last write.

        :raises OSError: it cannot be read
        """

    @abc.abstractmethod
    def in_force(self) -> InForce:
        """Return how much of what was written the server has taken over."""

    @property
    def takes_changes(self) -> bool:
        """True if batches may have ``changes``, and ``settle`` the parameter ``interrupted``."""
        return False

    def settle(self, timeout_s: float, interrupted: Callable[[], bool] = lambda: False) -> float:
        """Wait until the server has taken over what was written; return the seconds that this took (0: unknown).

        :param interrupted: when it returns true, do not wait any longer
        """
        return 0.0

    def leftovers(self) -> frozenset[str]:
        """Return groups that earlier versions or other settings have left and that are to be removed now."""
        return frozenset()

    @property
    def surplus(self) -> int:
        """Number of superfluous lines in the server's memory, which a reload would free."""
        return 0

    @property
    def needed(self) -> int:
        """Number of lines that the server would have in memory after a reload."""
        return 0

    def can_reload(self) -> bool:
        """Return whether the server can be asked to reload now."""
        return False

    @property
    def must_reload(self) -> bool:
        """True if a reload is necessary as soon as possible, because it is unknown what the server has in memory."""
        return False

    def prepare_reload(self) -> frozenset[str]:
        """Prepare to write only what is needed after a reload; return the groups to write before it."""
        return frozenset()

    def reload(self) -> bool:
        """Make the server reload; return whether it was asked."""
        return False

    def undo_reload(self) -> frozenset[str]:
        """The reload that was prepared did not happen; return the groups to write again."""
        return frozenset()
