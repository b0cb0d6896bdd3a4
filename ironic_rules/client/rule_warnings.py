"""Warnings about rules, which the service accepts with them, on the standard error output."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ironic_rules.client import upstream


def show(reply: Mapping[str, Any], located: Callable[[str], str] = str) -> None:
    """Print the warnings of a reply of the service.

    :param located: returns the text for a JSON pointer into what was sent
    """
    for warning in reply.get("warnings") or ():
        nearest = f" (nearest: {warning['nearest']})" if warning.get("nearest") else ""
        parts = ("warning", located(warning["pointer"]), warning["text"] + nearest)
        print(": ".join(filter(None, parts)), file=sys.stderr)


class _Rules(upstream.RuleManager):  # type: ignore[misc]
    """Creates and changes rules as python-ironicclient does, and prints the warnings that it does not know of."""

    def create(self, **fields: Any) -> Any:
        rule = super().create(**fields)
        show(rule.to_dict())
        return rule

    def update(self, *args: Any, **kwargs: Any) -> Any:
        rule = super().update(*args, **kwargs)
        show(rule.to_dict())
        return rule


@contextlib.contextmanager
def shown(app: Any) -> Iterator[None]:
    """Print the warnings of what python-ironicclient's commands do meanwhile."""
    client = app.client_manager.baremetal
    silent, client.inspection_rule = client.inspection_rule, _Rules(client.inspection_rule.api)
    try:
        yield
    finally:
        client.inspection_rule = silent
