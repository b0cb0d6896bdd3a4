"""The definition of an extra spec: its name, the values it takes, and whether it is still supported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

SUPPORTED = "supported"
DEPRECATED = "deprecated"
REMOVED = "removed"
STATUSES = (SUPPORTED, DEPRECATED, REMOVED)


@dataclass(frozen=True)
class ExtraSpecValidator:
    """An extra spec of flavors, or a property of images.

    It is checked when it is added to a registry, and not before: a package can define many, of which a bad one is
    reported and the others work.

    :param name: its key; ``{parameter}`` stands for what varies, all else is literal
    :param description: what it does, reStructuredText
    :param value: which values it takes: ``type`` (``int``, ``bool`` or ``str``), ``description``; of an integer ``min``
        and ``max``; of a text ``enum`` (a list) or ``pattern`` (a regular expression of RE2 that the whole value
        matches) or ``format`` (one of ``ironic_rules.extra_specs.values.FORMATS``); beside ``enum``, ``aliases``: other
        words for its values, in lower case. With it, even if it is empty, upper and lower case are the same.
    :param parameters: for each parameter of the name: ``name``, ``description``, and ``type`` (``int`` or ``str``) or
        ``pattern`` or ``enum`` (a collection of texts, or a function that returns one when it is first needed)
    :param deprecated: whether it works, but should not be used any more
    :param removed: the release without it, such as ``Nova 21.0.0``; empty if it works
    :param replaced_by: the name of what to use instead, if anything has taken its place
    :param advice: one sentence on what to do instead, where a name does not say it all
    :param drivers: the virt drivers that take it into account; empty for all. Documentation, not enforced.
    :param requires: the names of extra specs that it needs or qualifies. Documentation, not enforced.
    :param see_also: the image property that does the same, or the extra spec of an image property
    :param refinable: whether plug-ins can define names that this one matches, as it takes almost any
    """

    name: str
    description: str
    value: Mapping[str, Any]
    parameters: Sequence[Mapping[str, Any]] = ()
    deprecated: bool = False
    removed: str = ""
    replaced_by: str = ""
    advice: str = ""
    drivers: Sequence[str] = ()
    requires: Sequence[str] = ()
    see_also: str = ""
    refinable: bool = False

    @property
    def status(self) -> str:
        """One of ``STATUSES``."""
        return REMOVED if self.removed else DEPRECATED if self.deprecated else SUPPORTED

    @property
    def namespace(self) -> str:
        """What stands before the first colon of the name, without parameters; empty if there is none."""
        before, colon, _ = self.name.partition(":")
        return before.partition("{")[0] if colon else ""
