"""What must not be shown of an inspection, wherever it appears: secrets by value, and what sensitive rules wrote.

``secrets.mask`` hides a secret under its own key. A rule can copy it to another one; its value is known here, and
hidden there, too.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Mapping
from typing import Any

import orjson
import re2

from ironic_rules.models import pointer, secrets
from ironic_rules.models.joint_writes import Written
from ironic_rules.models.json_values import JSONObject
from ironic_rules.models.secrets import MASK

#: Shorter texts are hidden only where they are the whole value: "a" is part of too many others.
_SHORTEST_PART = 4
#: Smaller numbers mean too many other things.
_SMALLEST_NUMBER = 1000
#: Maximum number of secrets that are searched for within other texts; all are where they are the whole value.
_MOST_PARTS = 2000
#: Maximum number of those that are looked for one by one: much faster than a search that nearly always finds nothing.
_FEW_PARTS = 20
#: Bytes of JSON that take less time to look at than to search.
_SMALL = 512
_WITHOUT_PARTS = frozenset({int, float, bool, type(None), datetime.datetime})
_MAX_MEMORY = 64 * 1024 * 1024
#: The password of a URL.
_OF_URL = re.compile(r"""://[^\s/?#:@"'<>]*:([^\s/?#"'<>]+)@""")


class Concealment:
    """The secret values of an inspection that are known so far, and the places that sensitive rules have written."""

    def __init__(self) -> None:
        self._texts: set[str] = set()
        self._numbers: set[int | float] = set()
        self._places: set[tuple[str, ...]] = set()
        self._parts: list[str] = []
        self._pattern: Any = None
        self._is_current = True

    def learn(self, value: Any) -> None:
        """Note each secret, by its key, in JSON-like data."""
        # An inventory has hundreds of values: only those that can have a secret are looked at more closely.
        waiting = [value]
        while waiting:
            value = waiting.pop()
            if value.__class__ is dict or isinstance(value, Mapping):
                if names := secrets.secret_names(tuple(value)):
                    for key in names:
                        self.add(value[key])
                    items: Any = [item for key, item in value.items() if key not in names]
                else:
                    items = value.values()
            elif isinstance(value, (list, tuple)):
                items = value
            elif isinstance(value, str):
                for found in _OF_URL.findall(value):
                    self.add(found)
                continue
            else:
                continue
            for item in items:
                if item.__class__ is str:
                    if "://" in item:
                        waiting.append(item)
                elif item.__class__ not in _WITHOUT_PARTS and item:
                    waiting.append(item)

    def learn_all(self, documents: Iterable[Any]) -> None:
        """Do as :meth:`learn` with large documents, which rarely have a secret."""
        for document in documents:
            if not secrets.has_none(document, _SMALL):
                self.learn(document)

    def add(self, value: Any) -> None:
        """Note a value all of whose parts are secret."""
        if isinstance(value, Mapping):
            for item in value.values():
                self.add(item)
        elif isinstance(value, (list, tuple, set)):
            for item in value:
                self.add(item)
        elif isinstance(value, str):
            if value and value != MASK and value not in self._texts:
                self._texts.add(value)
                self._is_current = False
        elif isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) >= _SMALLEST_NUMBER:
            self._numbers.add(value)
            self.add(str(value))

    def seal(self, place: tuple[str, ...], value: Any) -> None:
        """Note that a sensitive rule has written ``value`` at a place, whose first part is the name of the data."""
        self._places.add(place)
        self._add_long(value)

    def _add_long(self, value: Any) -> None:
        """Note the parts of a value that can be told from others."""
        if isinstance(value, Mapping):
            for item in value.values():
                self._add_long(item)
        elif isinstance(value, (list, tuple)):
            for item in value:
                self._add_long(item)
        elif not isinstance(value, str) or len(value) >= _SHORTEST_PART:
            self.add(value)

    def is_harmless(self, patches: Iterable[Iterable[JSONObject]], joint: Iterable[Written] = ()) -> bool:
        """Return whether patches certainly have nothing to learn from and nothing to hide, as most of them.

        This takes a fraction of the time that hiding takes. False says nothing.

        :param joint: more changes
        """
        if self._places or self._numbers or len(self._texts) > _FEW_PARTS:
            return False
        texts: list[str] = []
        for patch in patches:
            for operation in patch:
                value = operation.get("value")
                if value.__class__ is str:
                    texts.append(value)
                elif value.__class__ not in _WITHOUT_PARTS:
                    try:
                        encoded = orjson.dumps(value)
                    except orjson.JSONEncodeError:
                        return False
                    text = encoded.decode()
                    if "\\" in text or not (secrets.json_is_free(encoded) or secrets.json_has_none(text)):
                        return False
                    texts.append(text)
                if secrets.is_secret_path(operation["path"]):
                    return False
                texts.append(operation["path"])
        for written in joint:
            if written.joint.paths is None:
                return False
            texts.append(written.joint.paths)
            texts += [value for value in written.values if value.__class__ is str]
        text = "\n".join(texts)
        return "://" not in text and not any(secret in text for secret in self._texts)

    def hide(self, value: Any, place: tuple[str, ...] = ()) -> Any:
        """Return JSON-like data with ``******`` for what must not be shown.

        :param place: where the data are, if they are at a place that can be sealed
        """
        if place and self._places and value is not None and (
                place in self._places or _is_below(place, self._places)):
            return MASK
        if isinstance(value, str):
            return self._hidden(value)
        if isinstance(value, (dict, Mapping)):
            return {
                self._hidden(key) if isinstance(key, str) else key:
                MASK if item is not None and secrets.is_secret_key(key)
                else self.hide(item, (*place, str(key)) if place else ())
                for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.hide(item, (*place, str(index)) if place else ()) for index, item in enumerate(value)]
        return MASK if value.__class__ in (int, float) and value in self._numbers else value

    def hide_patch(self, operations: list[JSONObject], place: tuple[str, ...]) -> list[JSONObject]:
        """Return a patch with masked values.

        :param place: where the patched document is
        """
        return [self._hidden_operation(operation, place) for operation in operations]

    def _hidden_operation(self, operation: JSONObject, place: tuple[str, ...]) -> JSONObject:
        shown = {"op": operation["op"], "path": self._hidden(operation["path"])}
        if "value" in operation:
            value = operation["value"]
            is_secret = value is not None and secrets.is_secret_path(operation["path"])
            if is_secret:
                shown["value"] = MASK
            elif self._places:
                shown["value"] = self.hide(value, (*place, *pointer.parse(operation["path"])))
            else:
                shown["value"] = self.hide(value)
        return shown

    def _hidden(self, text: str) -> str:
        if "://" in text:
            text = secrets.mask_text(text)
        if not self._texts:
            return text
        if text in self._texts:
            return MASK
        if not self._is_current:
            parts = sorted((part for part in self._texts if len(part) >= _SHORTEST_PART), key=len, reverse=True)
            self._parts = parts[:_MOST_PARTS]
            self._pattern = None
            self._is_current = True
        if len(self._parts) <= _FEW_PARTS:
            for part in self._parts:
                if part in text:
                    break
            else:
                return text
        if self._pattern is None:
            self._pattern = _pattern(self._parts)
        if self._pattern is None:
            return text
        try:
            hidden: str = self._pattern.sub(MASK, text)
        except (UnicodeError, re2.error):
            # A lone surrogate, which RE2 does not read.
            return MASK
        return hidden


def _is_below(place: tuple[str, ...], places: set[tuple[str, ...]]) -> bool:
    return bool(places) and any(place[:length] in places for length in range(2, len(place)))


def _pattern(parts: list[str]) -> Any:
    storable = [re2.escape(part) for part in parts if not any("\ud800" <= character <= "\udfff" for character in part)]
    if not storable:
        return None
    options = re2.Options()
    options.max_mem = _MAX_MEMORY
    options.log_errors = False
    return re2.compile("|".join(storable), options)
