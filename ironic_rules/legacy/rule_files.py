"""Legacy rules as texts: what their users have in files, and what ironic-inspector's API replies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ironic_rules.models import json_text
from ironic_rules.rules import strict_yaml


class BadRuleFile(ValueError):
    """A text has no rules. The message says why, and quotes nothing."""


@dataclass(frozen=True, slots=True)
class GivenRule:
    """A rule as its author has written it.

    :ivar place: where it is in the text: ``document 2, /rules/0``; empty if the text is that rule
    """

    place: str
    body: Any

    @property
    def name(self) -> str:
        """What a reader knows the rule by: its description, else its UUID; empty without both."""
        named = self.body if isinstance(self.body, dict) else {}
        return next((str(named[key]) for key in ("description", "uuid") if named.get(key)), "")


def parse(text: str) -> list[GivenRule]:
    """Return the rules of a text.

    :param text: JSON, or YAML with one or more documents; each a rule, a list of rules, or a reply of ``GET
        /v1/rules``, ``{"rules": [...]}``
    :raises BadRuleFile: it is neither, or has no rules
    """
    try:
        documents = [json_text.parse(text, strict_yaml.MAX_DEPTH)]
    except ValueError:
        try:
            documents = strict_yaml.load_all(text)
        except strict_yaml.BadYaml as exc:
            raise BadRuleFile(f"neither JSON nor YAML: {exc}") from None
    found = [rule for number, document in enumerate(documents, 1)
             for rule in _of_document(document, f"document {number}" if len(documents) > 1 else "")]
    if not found:
        raise BadRuleFile("it contains no rules")
    return found


def _of_document(document: Any, place: str) -> Iterator[GivenRule]:
    if document is None:
        return
    pointer = ""
    if isinstance(document, dict) and isinstance(document.get("rules"), list):
        document, pointer = document["rules"], "/rules"
    if isinstance(document, list):
        for index, rule in enumerate(document):
            yield GivenRule(", ".join(filter(None, (place, f"{pointer}/{index}"))), rule)
    elif isinstance(document, dict):
        yield GivenRule(place, document)
    else:
        raise BadRuleFile("a rule is an object")
