"""``sample-json``: one JSON file with all verdicts, in a package that is independent of ironic-rules."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from oslo_config import cfg

from ironic_rules.exceptions import ConfigurationError
from ironic_rules.pxe_filter.plan import Layout
from ironic_rules.pxe_filter.settings import TargetSettings
from ironic_rules.pxe_filter.targets.base import Batch, Found, InForce, Outcome, Target

_OPTS = [cfg.StrOpt("sample_json_file", help="The file that the target sample-json writes.")]


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return the options by group, for the entry point ``oslo.config.opts``."""
    return [("pxe_filter", _OPTS)]


class JsonTarget(Target):
    """Writes ``{"unknown": false, "52:54:00:00:00:01": true}`` for a DHCP server that reads it at each request."""

    opts = _OPTS

    def __init__(self, path: str) -> None:
        self.name = path
        self._path = Path(path)
        self._groups: dict[str, dict[str, bool]] = {}
        self._unknown = False
        self._written: str | None = None

    @classmethod
    def make(cls, settings: TargetSettings, layout: Layout) -> Sequence[Target]:
        if not settings.options.sample_json_file:
            raise ConfigurationError("[pxe_filter]sample_json_file is not set.")
        return [cls(settings.options.sample_json_file)]

    def open(self) -> Sequence[str]:
        return self.peek()[0]

    def peek(self) -> tuple[Sequence[str], str]:
        text = self._read()
        return self._addresses(text), "in effect" if text else "not in effect: there is no file"

    def close(self) -> None:
        pass  # the file is open only while it is written

    def apply(self, batch: Batch) -> Outcome:
        self._groups |= {name: dict(verdicts) for name, verdicts in batch.groups.items()}
        if batch.allows_unknown is not None:
            self._unknown = batch.allows_unknown
        verdicts = {"unknown": self._unknown}
        for group in self._groups.values():
            verdicts |= group
        text = json.dumps(verdicts)
        new = Path(f"{self._path}.new")
        try:
            new.write_text(text)
            os.replace(new, self._path)
        except OSError as exc:
            return Outcome(frozenset(batch.groups), batch.allows_unknown is not None, exc, 0)
        self._written = text
        return Outcome(frozenset(), False, None, 1)

    def changed_by_others(self) -> Iterator[Found]:
        text = self._read()
        if text != self._written:
            yield Found(self.name, frozenset(self._groups), self._addresses(text), unknown=True)

    def in_force(self) -> InForce:
        return InForce(0)

    def _read(self) -> str | None:
        with contextlib.suppress(FileNotFoundError):
            return self._path.read_text()
        return None

    @staticmethod
    def _addresses(text: str | None) -> list[str]:
        try:
            return [address for address in json.loads(text or "{}") if address != "unknown"]
        except (ValueError, TypeError):
            return []  # not what was written here
