"""The secrets that this process has had to do with, by value, for what it logs.

A BMC, or whatever else answers, may repeat what was sent to it, and libraries log that themselves. Values are for the
log only: what API users see never depends on whether one text equals a secret, or they could guess it.
"""

from __future__ import annotations

import base64
import json
import threading
import urllib.parse
from collections.abc import Iterable, Mapping
from typing import Any

import re2

from ironic_rules.models import secrets
from ironic_rules.models.secrets import MASK

#: Number of characters of the shortest text that is hidden: shorter ones are parts of too much else.
SHORTEST = 4
#: Number of characters from which a text is hidden within words, too: ``admin`` is also a part of ``administrator``.
WITHIN_WORDS = 8
#: Maximum number of characters of a secret: a longer one (a config drive) is not repeated as a whole.
_LONGEST = 1024
#: Maximum number of texts; then the oldest ones are forgotten, except those of the configuration.
_MOST = 10_000
#: Number of new texts that are searched for one by one before the expression of all is made again.
_MOST_NEW = 64
_MAX_MEMORY = 64 * 1024 * 1024


class KnownSecrets:
    """A bounded set of secret texts, and the search for them. Shared by threads.

    :param most: maximum number of texts, besides those of the configuration
    """

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._kept: frozenset[str] = frozenset()
        #: all others, the oldest first
        self._texts: dict[str, None] = {}
        #: those of them that the expression lacks
        self._new: tuple[str, ...] = ()
        self._pattern: Any = None

    def keep(self, values: Iterable[str]) -> None:
        """Set the secrets of the configuration, which are never forgotten."""
        with self._lock:
            self._kept = frozenset(
                form for value in values if SHORTEST <= len(value) <= _LONGEST for form in _forms(value))
            self._make()

    def add(self, value: object) -> None:
        """Note a secret."""
        if (not isinstance(value, str) or not SHORTEST <= len(value) <= _LONGEST or value == MASK
                or value in self._texts or value in self._kept):
            return
        forms = _forms(value)
        with self._lock:
            self._texts.update(dict.fromkeys(forms))
            while len(self._texts) > self._most:
                del self._texts[next(iter(self._texts))]
            if len(self._new) < _MOST_NEW + len(self._texts) // _MOST_NEW:
                self._new = (*self._new, *forms)
            else:
                self._make()

    def add_login(self, user: str, password: str) -> None:
        """Note a password, also as a header ``Authorization`` has it."""
        self.add(password)
        self.add(base64.b64encode(f"{user}:{password}".encode()).decode())

    def learn(self, *documents: Any) -> None:
        """Note each text that is a secret of JSON-like data by its key, and the passwords of URLs."""
        for document in documents:
            if isinstance(document, Mapping):
                found = secrets.secret_names(tuple(document))
                for name, value in document.items():
                    if name in found:
                        self.add(value)
                    else:
                        self.learn(value)
            elif isinstance(document, list):
                self.learn(*document)
            elif isinstance(document, str):
                for password in secrets.passwords_of_urls(document):
                    self.add(password)

    def hide(self, text: str) -> str:
        """Return a text with ``******`` for each secret in it, and for the passwords of URLs."""
        text = secrets.mask_text(text)
        # Made by another thread while this one reads: each is complete, and no secret is in neither.
        new, pattern = self._new, self._pattern
        if pattern is not None:
            text = _hidden(pattern, text)
        if any(known in text for known in new):
            text = _hidden(_expression(new), text)
        return text

    def _make(self) -> None:
        self._pattern = _expression((*self._kept, *self._texts))
        self._new = ()


def _forms(value: str) -> list[str]:
    """Return a secret as others write it: as it is, within JSON, Python's repr, and a URL."""
    quoted = urllib.parse.quote(value, safe="", errors="replace")
    return list(dict.fromkeys((value, json.dumps(value)[1:-1], repr(value)[1:-1], quoted)))


def _expression(texts: Iterable[str]) -> Any:
    # The longest first: one may begin with another one.
    found = sorted(map(_readable, texts), key=len, reverse=True)
    if not found:
        return None
    options = re2.Options()
    options.max_mem = _MAX_MEMORY
    options.log_errors = False
    return re2.compile("|".join(map(re2.escape, found)), options)


def _hidden(expression: Any, text: str) -> str:
    found: str = expression.sub(_masked, _readable(text))
    return found


def _masked(found: Any) -> str:
    text: str = found.group()
    if len(text) >= WITHIN_WORDS:
        return MASK
    around = found.string[max(0, found.start() - 1):found.start()] + found.string[found.end():found.end() + 1]
    return text if any(character.isalnum() or character == "_" for character in around) else MASK


def _readable(text: str) -> str:
    """Return a text without lone surrogates, which RE2 does not read."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


#: Those of this process.
KNOWN = KnownSecrets()
