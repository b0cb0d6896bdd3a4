"""The page of all messages by id, ``/ui/messages.html``: where the ids in the texts of the web page lead.

``messages.yaml`` has what to do, for messages whose text does not say it, in reStructuredText; the documentation has
the same messages.
"""

from __future__ import annotations

import html
import re
from importlib import resources
from typing import NamedTuple

import yaml

from ironic_rules import exceptions

_HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Messages - ironic-rules</title>
<link rel="icon" href="icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="style.css">
</head>
<body>
<main>
<h1>Messages</h1>
<p>Words in braces are values, such as the name of a node.</p>
"""
_END = "</main>\n</body>\n</html>\n"
#: Parts of reStructuredText that remedies have: literals, and links to pages and sections of the documentation.
_INLINE = re.compile(r"``(?P<literal>.+?)``|:(?:doc|ref):`/?(?P<link>[^`]+)`")


class Message(NamedTuple):
    """A message of the service.

    :ivar status: of replies with this text; None: no reply has it
    :ivar remedy: what to do, in reStructuredText; "" if the text says it
    """

    text: str
    status: int | None
    remedy: str


def messages() -> dict[str, Message]:
    """Return each message by its id, in the order of the ids."""
    remedies = yaml.safe_load((resources.files(__package__) / "messages.yaml").read_text(encoding="utf-8"))
    texts = {error.message_id: (error.message, error.code) for error in exceptions.http_errors().values()}
    texts |= {item.message_id: (item.text, item.error.code) for item in vars(exceptions).values()
              if isinstance(item, exceptions.Wording)}
    # The reply to an error with 500 has a general text; only that has IR-0500.
    general = exceptions.IronicRulesError.message_id
    return {name: Message(text.strip(), None if code == 500 and name != general else code, remedies.get(name, ""))
            for name, (text, code) in sorted(texts.items())}


def page() -> bytes:
    """Return the page as HTML; each message has its id as anchor."""
    parts = [_HEAD]
    for name, message in messages().items():
        status = "" if message.status is None else f"<p>HTTP status {message.status}</p>\n"
        remedy = f"<p>{_marked_up(message.remedy)}</p>\n" if message.remedy else ""
        parts.append(f'<section id="{name}">\n<h2>{name}</h2>\n<p><code>{html.escape(message.text)}</code></p>\n'
                     f"{status}{remedy}</section>\n")
    return "".join([*parts, _END]).encode()


def _marked_up(remedy: str) -> str:
    def shown(markup: re.Match[str]) -> str:
        return f"<code>{markup['literal']}</code>" if markup["literal"] else f"“{markup['link']}” in the documentation"

    return _INLINE.sub(shown, html.escape(remedy, quote=False))
