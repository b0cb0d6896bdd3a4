"""The data that rules read: the roots of templates, created on first access, and the functions that read them.

Roots are not masked as a whole. A template's getter knows its keys and masks a secret one itself; only a dict, list or
URL at the end of its path is copied without secrets, and the copy is cached until its root changes.

:func:`path_getter` is the only one that reads data; that of a template converts and joins what it returns.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ironic_rules.models import secrets
from ironic_rules.models.documents import JSONObject
from ironic_rules.rules import template
from ironic_rules.rules.errors import Absent, CannotEvaluate, MissingPath, OperandError

MODES = ("always", "never", "sensitive")
#: The root of facts, each of which is found when it is read: in the inventory, and in the data of ``_UNDER_FACT``.
FACT = "fact"
#: The root of the facts that the inspection before has left.
PREVIOUS_FACT = "previous_fact"
_UNDER_FACT = frozenset({"node", "plugin_data"})


class UnknownRoot(Exception):
    """No context has the root, so that what is below it is missing."""


class View(dict[str, Any]):
    """Roots by name, unmasked; reading a key creates it. ``item`` is set by loops, ``match`` by conditions.

    :param sources: a function per root that returns its current plain data
    :param masked: whether secrets are read as ``******``; for getters, see ``getters.path_getter``
    :param made: the set to which the names of created roots are added
    """

    __slots__ = ("_made", "_shown", "_sources", "masked", "stable", "volatile")

    def __init__(self, sources: Mapping[str, Callable[[], Any]], masked: bool, masks: set[str]) -> None:
        super().__init__()
        self.masked = masked
        self._sources = sources
        self._made = masks
        self._shown: dict[str, JSONObject] = {}
        #: the outcomes of checks, of which rules can change only the volatile ones
        self.stable: dict[Any, bool] = {}
        self.volatile: dict[Any, bool] = {}

    def __missing__(self, root: str) -> Any:
        if (source := self._sources.get(root)) is None:
            raise UnknownRoot(root)
        value = self[root] = source()
        self._made.add(root)
        if root == FACT:
            self._made |= _UNDER_FACT
        return value

    def shown(self, root: str, path: str, value: Any) -> Any:
        """Return a dict, list or URL as rules may see it.

        :param path: where ``value`` was found below ``root``
        """
        if not self.masked:
            return value
        masked = self._shown.setdefault(root, {})
        if path not in masked:
            masked[path] = secrets.mask(value)
        return masked[path]

    def forget(self, root: str) -> None:
        """Create ``root`` again when it is read next."""
        self.pop(root, None)
        self._shown.pop(root, None)
        self.volatile.clear()


#: A function that returns a value of the data.
Getter = Callable[[View], Any]


class Views:
    """The two views of one inspection, and the choice of the view for a rule.

    :param mode: ``[inspection_rules]mask_secrets``: always, never, or sensitive (only sensitive rules see secrets)
    """

    __slots__ = ("_masked", "_mode", "_open", "made", "told", "written")

    def __init__(self, sources: Mapping[str, Callable[[], Any]], mode: str) -> None:
        #: roots that were read since their last change
        self.made: set[str] = set()
        #: the size of what actions have written so far, in characters
        self.written = 0
        #: the size of the messages
        self.told = 0
        self._masked = View(sources, True, self.made)
        self._open = View(sources, False, self.made)
        self._mode = mode

    def of(self, sensitive: bool) -> View:
        """Return the view for a rule."""
        if self._mode == "never" or (self._mode == "sensitive" and sensitive):
            return self._open
        return self._masked

    def forget(self, roots: Iterable[str]) -> None:
        """Create these roots again when they are read next: an action has changed their data."""
        changed = set(roots)
        if FACT in self.made and not changed.isdisjoint(_UNDER_FACT):
            changed.add(FACT)
        for root in changed:
            self._masked.forget(root)
            self._open.forget(root)
            self.made.discard(root)


#: Types without parts, in which nothing can be secret. A text may be a URL with a password.
_SCALARS = frozenset({int, float, bool, type(None)})
_LISTS = frozenset({list, tuple})
#: The roots whose data are not masked again: they come from the rule itself, or from another getter.
_LOCAL = frozenset({"item", template.ROOT_GROUPS})


# Thousands of rules read the same few paths: a shared function for each of them remains in the processor's cache.
@functools.lru_cache(maxsize=4096)
def path_getter(used: template.Field, strict: bool, missing: type[MissingPath] = MissingPath) -> Getter:
    """Return a function that traverses plain mappings and lists; a missing path is None, or an error if strict.

    With a masked view it returns what it would find in a masked copy of the root.

    :param missing: the error
    """
    root, text, is_local = used.root, used.text, used.root in _LOCAL
    steps = tuple((step, int(step) if step.isdecimal() and len(step) < 10 else None,
                   not is_local and secrets.is_secret_key(step)) for step in used.steps)

    def get(view: View) -> Any:
        try:
            value = view[root]
            for key, index, is_secret in steps:
                value = value[key if index is None or value.__class__ not in _LISTS else index]
                # The steps after a secret then find nothing, because a text has no parts.
                if is_secret and view.masked and value is not None:
                    value = secrets.MASK
        except UnknownRoot:
            # A condition with it is never true, and neither is its inverse.
            raise missing(text) from None
        except (IndexError, KeyError, TypeError):
            if strict:
                raise missing(text) from None
            return None
        if value.__class__ is str:
            return value if "://" not in value or is_local else view.shown(root, text, value)
        return value if value.__class__ in _SCALARS or is_local else view.shown(root, text, value)

    return get


@functools.lru_cache(maxsize=4096)
def template_getter(parts: tuple[str | template.Field, ...], strict: bool, limit: int, absent: bool = False) -> Getter:
    """Return a function that fills in a template: the value of a single field, otherwise a text.

    A missing value and null have no text: MissingPath. A single such field is None, or MissingPath if strict. A text
    has at most ``limit`` characters before and after conversions and in all; another one cannot be evaluated.

    :param parts: those of a template, of which at least one is a field
    :param absent: a single field whose path is missing raises Absent; null is None
    """
    if len(parts) == 1 and isinstance(parts[0], template.Field):
        return _converted(parts[0], strict, limit, absent=absent)
    #: text before each field, its getter and its own text; and the text after the last one
    pieces: list[tuple[str, Getter, str]] = []
    before = ""
    for part in parts:
        if isinstance(part, str):
            before = part
        else:
            pieces.append((before, _converted(part, True, limit), part.text))
            before = ""
    after = before

    def render(view: View) -> str:
        result = ""
        for before, get, text in pieces:
            value = get(view)
            if value is None:
                raise MissingPath(text)
            result += f"{before}{value!s}"
        result += after
        if len(result) > limit:
            _check_length(result, limit)
        return result

    return render


@functools.lru_cache(maxsize=4096)
def message_getter(parts: tuple[str | template.Field, ...], limit: int) -> Getter:
    """Return a function that fills in a message as far as possible; it always returns a text.

    ``<missing node.name>`` is in the place of a missing value or null, ``<unusable ...>`` in that of one that cannot be
    converted. A text of more than ``limit`` characters is cut.
    """
    pieces = [part if isinstance(part, str) else (_converted(part, True, limit), part.text[1:-1]) for part in parts]

    def render(view: View) -> str:
        result = ""
        for piece in pieces:
            result += piece if isinstance(piece, str) else _told(view, *piece)
            if len(result) > limit:
                return result[:limit]
        return result

    return render


def _told(view: View, get: Getter, text: str) -> str:
    try:
        value = get(view)
    except MissingPath:
        value = None
    except CannotEvaluate:
        return f"<unusable {text}>"
    return f"<missing {text}>" if value is None else str(value)


def _converted(used: template.Field, strict: bool, limit: int, *, absent: bool = False) -> Getter:
    """Return a function that applies the field's conversions to the value at its path, if there are any.

    Null is like a missing value for a conversion; for a group of a regular expression, it means no part in the match.
    """
    absent = absent and used.root in template.NAMES
    get, text = path_getter(used, True, Absent) if absent else path_getter(used, strict), used.text
    if used.is_plain and used.root != template.ROOT_GROUPS:
        return get
    convert = template.conversion_chain(used.conversions) if used.conversions else None

    def converted(view: View) -> Any:
        value = get(view)
        if value is None:
            if strict:
                raise MissingPath(text)
            return None
        if used.is_plain:
            return value
        _check_length(value, limit)
        try:
            if convert is not None:
                value = convert(value)
            if used.form or used.spec:
                value = template.formatted(value, used.form, used.spec)
        except OperandError as exc:
            raise OperandError(f"{text}: the value {exc}") from None
        _check_length(value, limit)
        return value

    return converted


def _check_length(value: object, limit: int) -> None:
    if value.__class__ is str and len(value) > limit:
        raise CannotEvaluate(f"the text is longer than {limit} characters")
