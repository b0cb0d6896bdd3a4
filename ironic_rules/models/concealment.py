"""Parts of an inspection that must not be shown: secrets by their keys, and places that rules wrote with hidden values.

Nothing is hidden because it equals a secret: a machine could report guesses, and a user who sees which one is hidden
would know the secret. The rules and the place of a value decide whether it is hidden, never the value.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from ironic_rules.models import pointer, secrets
from ironic_rules.models.json_values import JSON, JSONObject
from ironic_rules.models.secrets import MASK

#: Keys from the name of the data (``node``, ``plugin_data``, ``ports`` with an address, …) on.
Place = tuple[str, ...]

_WITHOUT_PARTS = frozenset({int, float, bool, type(None), datetime.datetime})
_TRAITS = ("node", "traits")


class Concealment:
    """The places of an inspection that must not be shown, and the rules nothing of which may be.

    :ivar secretive: the UUIDs of the rules that have read a secret, or a place that must not be shown
    """

    def __init__(self) -> None:
        self.secretive: set[str] = set()
        self._places: set[Place] = set()
        self._sources: set[Place] = set()
        self._traits: set[str] = set()

    @property
    def has_places(self) -> bool:
        """Whether there is any place that must not be shown."""
        return bool(self._places or self._traits)

    @property
    def has_sources(self) -> bool:
        """Whether there is any place of which rules must not show what they read."""
        return bool(self._places or self._traits or self._sources)

    def seal(self, place: Place, value: JSON = None) -> None:
        """Note a place that must not be shown.

        The items of a list move: a place within one is that of the list. A trait, which has no place, is its value:
        everybody sees which traits a node has.

        :param value: what was written there
        """
        if place[:2] == _TRAITS:
            self._traits.update(item for item in (value if isinstance(value, (list, tuple)) else [value])
                                if isinstance(item, str))
            return
        length = next((at for at, key in enumerate(place) if at > 1 and (key == "-" or key.isdecimal())), len(place))
        self._places.add(place[:length])

    def add_sources(self, places: Iterable[Place]) -> None:
        """Note places that may have what must not be shown: of rules that read them, nothing is shown."""
        self._sources.update(places)

    def is_read(self, path: Place) -> bool:
        """Return whether a template with this path reads what must not be shown, or a part of that.

        :param path: of a template, where ``ports`` is followed by an index; empty: it reads everything
        """
        if not self.has_sources:
            return False
        if not path:
            return True
        if path[0] == "data":  # the inventory and the plug-in data in another form
            path = ("plugin_data",)
        if self._traits and path[:2] == _TRAITS[:len(path)]:
            return True
        return any(_overlap(place, path) for places in (self._places, self._sources) for place in places)

    def is_harmless(self, patches: Iterable[Iterable[JSONObject]]) -> bool:
        """Return whether patches certainly have nothing to hide, as most of them.

        This takes a fraction of the time that hiding takes. False says nothing.
        """
        if self.has_places:
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
        return "://" not in "\n".join(texts)

    def hide(self, value: JSON, place: Place = ()) -> Any:
        """Return JSON-like data with ``******`` for what must not be shown.

        :param place: where the data are; without it, only secrets are hidden, by their keys
        """
        if place and value is not None and self.has_places and self._is_sealed(place, value):
            return MASK
        if isinstance(value, str):
            return secrets.mask_text(value)
        if isinstance(value, Mapping):
            return {
                secrets.mask_text(key) if isinstance(key, str) else key:
                MASK if item is not None and secrets.is_secret_key(key)
                else self.hide(item, (*place, str(key)) if place else ())
                for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.hide(item, (*place, str(index)) if place else ()) for index, item in enumerate(value)]
        return value

    def _is_sealed(self, place: Place, value: JSON) -> bool:
        return any(place[:length] in self._places for length in range(1, len(place) + 1)) or (
            place[:2] == _TRAITS and isinstance(value, str) and value in self._traits)

    def hide_patch(self, operations: list[JSONObject], place: Place) -> list[JSONObject]:
        """Return a patch with masked values.

        :param place: where the patched document is
        """
        return [self._hidden_operation(operation, place) for operation in operations]

    def _hidden_operation(self, operation: JSONObject, place: Place) -> JSONObject:
        shown = {"op": operation["op"], "path": secrets.mask_text(operation["path"])}
        if "value" in operation:
            value = operation["value"]
            if value is not None and secrets.is_secret_path(operation["path"]):
                shown["value"] = MASK
            else:
                shown["value"] = self.hide(value, (*place, *pointer.parse(operation["path"])))
        return shown


def _overlap(place: Place, path: Place) -> bool:
    """Return whether one of a place and the path of a template is within the other one."""
    if place[0] == path[0] == "ports":
        # One has the address of a port, the other one its index.
        place, path = (place[0], *place[2:]), (path[0], *path[2:])
    common = min(len(place), len(path))
    return place[:common] == path[:common]
