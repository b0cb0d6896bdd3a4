"""Secret values, and how they are hidden: for rules, replies, logs and messages alike.

A value is secret by its key: if ``oslo_utils.strutils.mask_dict_password`` masks it (``*password*``, ``*token*``,
``*secret*``, ``*private_key*``, ``configdrive``, ...), if it is one of the BMC keys that oslo does not know, or
``image_url``, which may be a temporary URL: anyone who has it can read the image; or if the key contains one of
``WORDS`` as whole words (``snmp_community``, not ``cpu_pinning``). In any text, the password of a URL is secret. In an
inspection, so are places that rules wrote with hidden values.

Nothing is hidden because it equals a secret: a machine could report guesses, and a user who sees which one is hidden
would know the secret. The rules and the place of a value decide whether it is hidden, never the value.
"""

from __future__ import annotations

import datetime
import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote

import orjson
import re2
from oslo_utils import strutils

from ironic_rules.exceptions import HAS_ID, SecretMasked
from ironic_rules.models import documents
from ironic_rules.models.documents import JSON, JSONObject
from ironic_rules.text import MAX_MESSAGE, printable

MASK = "******"
#: The words that make a key secret by default: ``[DEFAULT]secret_words``.
WORDS = ("community", "credential", "credentials", "api_key", "pin", "passphrase", "ssh_key")

_MORE = re.compile(r"auth_token|agent_secret_token|ipmi_hex_kg_key|snmp_.*_key|.*private_key|configdrive|image_url",
                   re.DOTALL)
#: The user and the password of a URL (RFC 3986, section 3.2.1); neither has a slash, unless it is encoded.
_URL = re.compile(r"""(://[^\s/?#:@"'<>]*:)[^\s/?#"'<>]+@""")
_OF_URL = re.compile(r"""://[^\s/?#:@"'<>]*:([^\s/?#"'<>]+)@""")
_MASKED_URL = re.compile(rf"""://[^\s/?#:@"'<>]*:{re.escape(MASK)}@""")
_LEAVES = (int, float, list, tuple, type(None))
#: Each key of a JSON text as orjson writes it, without blanks and here without escapes. Other strings match with an
#: empty group: they must be matched too, because a key is only recognized by where the strings before it end.
_KEYS = re.compile(r'"[^"\\]*"(?!:)|"([^"\\]*)":')


def _alternatives(words: Iterable[str]) -> str:
    return "|".join("[_-]".join(map(re.escape, re.split(r"[_-]", word.lower()))) for word in words)


def _pattern(words: Iterable[str]) -> re.Pattern[str]:
    alternatives = _alternatives(words)
    return re.compile(rf"(?:.*[_-])?(?:{alternatives})(?:[_-].*)?", re.DOTALL) if alternatives else re.compile(r"(?!)")


def _searched(words: Iterable[str]) -> Any:
    """Return the expression that finds something in each ASCII JSON text with a secret; None: there is none."""
    own_words = list(words)
    masked = getattr(strutils, "_SANITIZE_KEYS", None)  # what mask_dict_password looks for
    if not masked or any(re.fullmatch(r"[\w-]+", word, re.ASCII) is None for word in (*own_words, *masked)):
        return None
    options = re2.Options()
    options.case_sensitive = False
    options.never_capture = True
    options.log_errors = False
    return re2.compile("|".join([
        *map(re2.escape, masked), _MORE.pattern, *([f'["_-](?:{_alternatives(own_words)})["_-]'] if own_words else []),
        _URL.pattern]), options)


_words = _pattern(WORDS)
_search = _searched(WORDS)
#: Maximum number of characters of a key or path that is remembered: anyone may send some of a megabyte.
_LONGEST_KEY = 256
#: Maximum numbers of keys of an object, and of their characters, whose secret ones are remembered.
_MOST_NAMES, _MOST_CHARACTERS = 128, 2048


def configure(words: Iterable[str]) -> None:
    """Set the words that make a key secret in this process, instead of ``WORDS``; before any rule is compiled."""
    global _words, _search
    chosen = tuple(words)
    _words, _search = _pattern(chosen), _searched(chosen)
    _is_secret.cache_clear()
    _is_secret_path.cache_clear()
    _secret_names.cache_clear()


def is_secret_key(name: object) -> bool:
    """Return whether a value under the key ``name`` is a secret."""
    return isinstance(name, str) and (_is_secret(name) if len(name) <= _LONGEST_KEY else _is_secret.__wrapped__(name))


# Inventories repeat the same few hundred keys; oslo's search over its word list is slow.
@functools.lru_cache(maxsize=4096)
def _is_secret(name: str) -> bool:
    lower = name.lower()
    if _MORE.fullmatch(lower) is not None or _words.fullmatch(lower) is not None:
        return True
    return strutils.mask_dict_password({name: 0}, secret=MASK)[name] == MASK


def secret_names(names: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return those of the keys of an object under which values are secrets."""
    try:
        is_short = len(names) <= _MOST_NAMES and len("".join(names)) <= _MOST_CHARACTERS
    except TypeError:  # a key that is no text
        is_short = False
    return _secret_names(names) if is_short else tuple(filter(is_secret_key, names))


# The objects of an inventory have the same few dozen sets of keys: one look-up instead of one for each key.
@functools.lru_cache(maxsize=512)
def _secret_names(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(filter(is_secret_key, names))


def is_secret_path(path: str) -> bool:
    """Return whether a value at a JSON pointer is a secret, or a part of one."""
    return (_is_secret_path if len(path) <= _LONGEST_KEY else _is_secret_path.__wrapped__)(path)


# The same rules write to the same paths of all nodes.
@functools.lru_cache(maxsize=4096)
def _is_secret_path(path: str) -> bool:
    return any(map(is_secret_key, documents.parse_pointer(path)))


def mask(value: JSON) -> Any:
    """Return a copy of JSON-like data in which every secret, at any depth, is replaced by ``******``.

    A secret that is null remains null: there is nothing to hide, and rules can see that it is not set.
    """
    if isinstance(value, str):
        return mask_text(value) if "://" in value else value
    # Types that JSON is parsed to come first: isinstance() of an abstract class takes as long as the rest.
    if isinstance(value, dict) or (not isinstance(value, _LEAVES) and isinstance(value, Mapping)):
        return {
            key: (MASK if item is not None and is_secret_key(key) else mask(item))
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [mask(item) for item in value]
    return value


def mask_text(text: str) -> str:
    """Return a text, of any kind, with the passwords of URLs in it masked."""
    return _URL.sub(rf"\1{MASK}@", text) if "://" in text and "@" in text else text


def message(text: str) -> str:
    """Return a text as ``last_error``, histories and operations have it: one line without passwords of URLs.

    The id at its end remains if the text is longer than ``MAX_MESSAGE``.
    """
    ident = HAS_ID.search(text)
    text, ending = (text, "") if ident is None else (text[:ident.start()], ident[0])
    return printable(mask_text(text), MAX_MESSAGE) + ending


def passwords_of_urls(text: str) -> Iterator[str]:
    """Yield the passwords of the URLs in a text, also decoded."""
    for password in _OF_URL.findall(text) if "://" in text else ():
        yield password
        if "%" in password:
            yield unquote(password)


def json_has_none(text: str) -> bool:
    """Return whether a JSON text, as orjson writes it, has no secret for certain, without parsing it."""
    if "\\" in text or ("://" in text and "@" in text):
        return False
    return not any(map(is_secret_key, filter(None, _KEYS.findall(text))))


def has_none(value: JSON, small: int = 0) -> bool:
    """Return whether JSON-like data have no secret for certain: faster than looking at each part of an inventory.

    False says nothing.

    :param small: False for data of fewer bytes as JSON
    """
    try:
        text = orjson.dumps(value)
    except orjson.JSONEncodeError:
        return False
    return len(text) >= small and json_is_free(text)


def json_is_free(text: bytes) -> bool:
    """Return what :func:`has_none` does, of a JSON text as orjson writes it."""
    # Some other letters become ASCII in lower case.
    return _search is not None and text.isascii() and _search.search(text) is None


def masks_in(value: JSON, path: tuple[str, ...] = (), *, part: bool = False) -> Iterator[tuple[str, ...]]:
    """Yield the path of each mask in JSON-like data that is in the place of a secret.

    :param path: where the value is, or will be
    :param part: also of each text under a secret key that only contains a mask, as a template can produce it
    """
    if isinstance(value, str):
        if MASK in value and (
                ((value == MASK or part) and _is_below_secret(path)) or _MASKED_URL.search(value) is not None):
            yield path
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from masks_in(item, (*path, str(key)), part=part)
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from masks_in(item, (*path, str(index)), part=part)


def _is_below_secret(path: tuple[str, ...]) -> bool:
    """Return whether the last key of a path, before indexes of lists, is secret."""
    return is_secret_key(next((key for key in reversed(path) if key != "-" and not key.isdecimal()), None))


def new_masks(value: JSON, old: JSON = None, path: tuple[str, ...] = (), *, part: bool = False) -> list[str]:
    """Return the JSON pointers of what :func:`masks_in` finds in ``value`` and not at the same place in ``old``."""
    places = list(masks_in(value, path, part=part))
    old_places = set(masks_in(old, path, part=part)) if places else set()
    return [documents.format_pointer(place) for place in places if place not in old_places]


def refuse_masks(value: JSON, path: tuple[str, ...], old: JSON = None) -> None:
    """Check that a value which a rule stores has no mask in the place of a secret, but those that were there.

    :param path: where it will be stored
    :param old: what is stored there now
    :raises SecretMasked: with the JSON pointer
    """
    for where in new_masks(value, old, path, part=True):
        raise SecretMasked(path=where)


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
        """True if there is any place that must not be shown."""
        return bool(self._places or self._traits)

    @property
    def has_sources(self) -> bool:
        """True if there is any place of which rules must not show what they read."""
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
                    if "\\" in text or not (json_is_free(encoded) or json_has_none(text)):
                        return False
                    texts.append(text)
                if is_secret_path(operation["path"]):
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
            return mask_text(value)
        if isinstance(value, Mapping):
            return {
                mask_text(key) if isinstance(key, str) else key:
                MASK if item is not None and is_secret_key(key)
                else self.hide(item, (*place, str(key)) if place else ()) for key, item in value.items()}
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
        shown = {"op": operation["op"], "path": mask_text(operation["path"])}
        if "value" in operation:
            value = operation["value"]
            if value is not None and is_secret_path(operation["path"]):
                shown["value"] = MASK
            else:
                shown["value"] = self.hide(value, (*place, *documents.parse_pointer(operation["path"])))
        return shown


def _overlap(place: Place, path: Place) -> bool:
    """Return whether one of a place and the path of a template is within the other one."""
    if place[0] == path[0] == "ports":
        # One has the address of a port, the other one its index.
        place, path = (place[0], *place[2:]), (path[0], *path[2:])
    common = min(len(place), len(path))
    return place[:common] == path[:common]
