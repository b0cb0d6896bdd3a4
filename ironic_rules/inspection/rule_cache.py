"""The compiled rule set, as new as the database's."""

from __future__ import annotations

import threading
from typing import Any

import sqlalchemy as sa

from ironic_rules.db import inspection_rules
from ironic_rules.exceptions import InvalidRule, RuleFailed
from ironic_rules.rules import CompiledRule, RuleSet, compile


class RuleCache:
    """Compiles the stored rules when their revision has changed. One per process; safe to use from any thread.

    :param mask_secrets: ``[inspection_rules]mask_secrets``: always, never or sensitive
    """

    def __init__(self, mask_secrets: str = "always") -> None:
        self._mask_secrets = mask_secrets
        self._lock = threading.Lock()
        self._revision: int | None = None
        self._rules = RuleSet((), mask_secrets=mask_secrets)

    def current(self, conn: sa.Connection) -> RuleSet:
        """Return the rules as ``conn`` sees them: one small query while nothing has changed.

        :raises RuleFailed: a stored rule is not valid (any more), for example because a plug-in was removed. It would
            be wrong to inspect nodes without it.
        """
        # Read before the rules: if they change in between, the next call notices.
        revision = inspection_rules.revision(conn)
        with self._lock:
            if revision != self._revision:
                self._rules = RuleSet(map(_compiled, inspection_rules.all_rules(conn)), mask_secrets=self._mask_secrets)
                self._revision = revision
            return self._rules


def _compiled(row: sa.Row[Any]) -> CompiledRule:
    rule = {name: value for name, value in row._mapping.items() if value is not None}
    try:
        return compile(rule)
    except InvalidRule as exc:
        first = exc.problems[0]
        reason = "it is no longer valid" if row.sensitive else f"it is no longer valid: {first.text}"
        raise RuleFailed(rule=row.uuid, where=first.where or "/", reason=reason) from (None if row.sensitive else exc)
