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

from ironic_rules.models import secrets
from ironic_rules.models.secrets import MASK

#: Number of characters of the shortest text that is hidden: shorter ones are parts of too much else.
SHORTEST = 4
#: Number of characters from which a text is hidden within words, too: ``admin`` is also a part of ``administrator``.
WITHIN_WORDS = 8
#: Maximum number of characters of a secret: a longer one (a config drive) is not repeated as a whole.
_LONGEST = 1024
#: Maximum numbers of secrets, and of their characters; then the oldest ones are forgotten, except those of the
#: configuration.
_MOST, _MOST_CHARACTERS = 10_000, 1_000_000
#: Part of the secrets that remains then: to forget some takes as long as to note all of them.
_REMAIN = 0.9
#: Number of characters of a piece: longer texts are searched for in pieces, so texts have few different lengths.
_PIECE = 64


class KnownSecrets:
    """A bounded set of secret texts, and the search for them. Shared by threads.

    :param most: maximum number of secrets, without those of the configuration
    """

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._kept: frozenset[str] = frozenset()
        #: secrets without those of the configuration, the oldest first
        self._values: dict[str, None] = {}
        self._characters = 0
        self._search = _Search(())

    def keep(self, values: Iterable[str]) -> None:
        """Set the secrets of the configuration, which are never forgotten."""
        with self._lock:
            self._kept = frozenset(value for value in values if SHORTEST <= len(value) <= _LONGEST)
            self._search = _Search((*self._kept, *self._values))

    def add(self, value: object) -> None:
        """Note a secret."""
        if (not isinstance(value, str) or not SHORTEST <= len(value) <= _LONGEST or value == MASK
                or value in self._values or value in self._kept):
            return
        with self._lock:
            if value in self._values:  # of another thread
                return
            self._values[value] = None
            self._characters += len(value)
            self._search.add(value)
            if len(self._values) > self._most or self._characters > _MOST_CHARACTERS:
                self._forget()

    def _forget(self) -> None:
        """Forget the oldest secrets. The caller has the lock."""
        for value in list(self._values):
            if len(self._values) <= self._most * _REMAIN and self._characters <= _MOST_CHARACTERS * _REMAIN:
                break
            del self._values[value]
            self._characters -= len(value)
        self._search = _Search((*self._kept, *self._values))

    def add_login(self, user: str, password: str) -> None:
        """Note a password, also as a header ``Authorization`` has it."""
        self.add(password)
        self.add(base64.b64encode(f"{user}:{password}".encode()).decode())

    def learn(self, *documents: Any) -> None:
        """Note each text that is a secret of JSON-like data by its key, and the passwords of URLs."""
        for document in documents:
            if isinstance(document, Mapping):
                secret_names = secrets.secret_names(tuple(document))
                for name, value in document.items():
                    if name in secret_names:
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
        return self._search.hidden(secrets.mask_text(text))


class _Search:
    """The search for many texts at once.

    Not an expression: one of some thousand texts takes hundreds of megabytes, and may be refused for its size. One
    thread at a time adds, while others search.
    """

    def __init__(self, values: Iterable[str]) -> None:
        self._texts: set[str] = set()
        #: the lengths of the texts that begin with the same characters, the longest first
        self._lengths: dict[str, tuple[int, ...]] = {}
        for value in values:
            self.add(value)

    def add(self, value: str) -> None:
        """Search for a secret from now on, in each of its forms."""
        for form in _forms(value):
            last = len(form) - _PIECE
            for start in [0] if last <= 0 else [*range(0, last, _PIECE), last]:
                text = form[start:start + _PIECE]
                self._texts.add(text)
                lengths = self._lengths.get(text[:SHORTEST], ())
                if len(text) not in lengths:
                    self._lengths[text[:SHORTEST]] = tuple(sorted((*lengths, len(text)), reverse=True))

    def hidden(self, text: str) -> str:
        """Return a text with ``******`` for what was added."""
        lengths = self._lengths
        starts = [at for at in range(len(text) - SHORTEST + 1) if text[at:at + SHORTEST] in lengths]
        if not starts:
            return text
        shown: list[str] = []
        end = 0
        for at in starts:
            secret_end = self._found(text, at)
            if secret_end is None:
                continue
            if at > end or not shown:
                shown += [text[end:at], MASK]
            end = max(end, secret_end)  # one may begin within another one
        return "".join([*shown, text[end:]])

    def _found(self, text: str, start: int) -> int | None:
        """Return where the longest text ends that begins at ``start``."""
        for length in self._lengths[text[start:start + SHORTEST]]:
            end = start + length
            if text[start:end] in self._texts and (length >= WITHIN_WORDS or not (
                    _is_in_word(text[start - 1:start]) or _is_in_word(text[end:end + 1]))):
                return end
        return None


def _is_in_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _forms(value: str) -> list[str]:
    """Return a secret as others write it: as it is, within JSON, Python's repr, and a URL."""
    quoted = urllib.parse.quote(value, safe="", errors="replace")
    return list(dict.fromkeys((value, json.dumps(value)[1:-1], repr(value)[1:-1], quoted)))


#: Secrets that this process knows.
KNOWN = KnownSecrets()
