"""Entity tags and preconditions (RFC 9110, sections 8.8.3 and 13.1), for any resource.

A method of a controller that has the parameter ``conditions`` gets the preconditions of the request (``expose``). One
that changes something checks them in the transaction that writes, against the row that it changes::

    with conditions.guard():
        ... conditions.check(etags.tag(row.uuid, row.revision)) ...
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ironic_rules.exceptions import Changed, Invalid, PreconditionFailed

MAX_LENGTH = 8192
MAX_TAGS = 100
_DIGEST_BYTES = 16
# Neither quotes nor white space inside the quotes; a backslash is an ordinary character. Bytes from 128 are allowed.
_TAG = re.compile(r'(?P<weak>W/)?(?P<opaque>"[\x21\x23-\x7e\x80-\xff]*+")')
_BETWEEN = re.compile(r"[ \t]*+")


class AnyTag:
    """The meaning of ``*``: any tag, provided that the resource exists."""


ANY: Final = AnyTag()


@dataclass(frozen=True, slots=True)
class Tag:
    """One entity tag of a header; ``opaque`` includes the quotes."""

    opaque: str
    weak: bool = False


Tags = AnyTag | tuple[Tag, ...]


def tag(*parts: object) -> str:
    """Return a strong entity tag, with its quotes, that differs when any of ``parts`` does and does not reveal them.

    :param parts: bytes, or objects that ``str`` distinguishes
    """
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for part in parts:
        content = part if isinstance(part, bytes) else str(part).encode()
        digest.update(len(content).to_bytes(8))
        digest.update(content)
    return f'"{digest.hexdigest()}"'


@dataclass(frozen=True, slots=True)
class Preconditions:
    """The preconditions of a request on the current tag; None for a header that it does not have."""

    if_match: Tags | None = None
    if_none_match: Tags | None = None

    @property
    def given(self) -> bool:
        """True if there are any."""
        return self.if_match is not None or self.if_none_match is not None

    def check(self, current: str | None) -> None:
        """Check the preconditions of a request that changes something.

        :param current: the tag of the resource to be changed; None if it exists and has no tag, such as a collection
        :raises PreconditionFailed: 412
        """
        self.check_match(current)
        if self.if_none_match is not None and _any_weakly(self.if_none_match, current):
            raise PreconditionFailed(header="If-None-Match")

    def check_absent(self) -> None:
        """Check the preconditions of a request that creates a resource.

        :raises PreconditionFailed: 412, ``If-Match`` requires one
        """
        if self.if_match is not None:
            raise PreconditionFailed(header="If-Match")

    def check_match(self, current: str | None) -> None:
        """Check ``If-Match`` of a request that only reads.

        :raises PreconditionFailed: 412
        """
        if self.if_match is not None and not _any_strongly(self.if_match, current):
            raise PreconditionFailed(header="If-Match")

    def has(self, current: str) -> bool:
        """Return whether the client already has the current state, by ``If-None-Match``: the reply is 304."""
        return self.if_none_match is not None and _any_weakly(self.if_none_match, current)

    @contextlib.contextmanager
    def guard(self) -> Iterator[None]:
        """Turn a lost race into 412 if the request named the state that it wants to change.

        :raises PreconditionFailed: 412
        """
        try:
            yield
        except Changed as error:
            # The other request has changed the tag, so the one in this request no longer matches; "*" still does.
            if self.if_match is None or self.if_match is ANY:
                raise
            raise PreconditionFailed(header="If-Match") from error


def read(environ: Mapping[str, Any]) -> Preconditions:
    """Return the preconditions of a WSGI request.

    :raises Invalid: 400, a header is malformed
    """
    return Preconditions(*(
        None if (text := environ.get(key)) is None else parse(text, name)
        for name, key in (("If-Match", "HTTP_IF_MATCH"), ("If-None-Match", "HTTP_IF_NONE_MATCH"))))


def refuse(environ: Mapping[str, Any]) -> None:
    """Check that a WSGI request has no precondition but ``If-Match: *``, which holds for whatever exists.

    For changes where nothing checks them: the tags of such a resource, if it has any, are only for reading.

    :raises Invalid: 400
    """
    for name, key, accepted in (("If-Match", "HTTP_IF_MATCH", "*"), ("If-None-Match", "HTTP_IF_NONE_MATCH", None)):
        if (text := environ.get(key)) is not None and text.strip(" \t") != accepted:
            raise Invalid(f"{name}: this resource has no preconditions for {environ['REQUEST_METHOD']}. Nothing was "
                          f"changed; the same request without {name} is not conditional.")


def parse(text: str, name: str = "If-Match") -> Tags:
    """Return the entity tags in the value of a header: ``ANY``, or one or more of them.

    :param text: each character stands for one byte; several lines of the header are joined by commas
    :param name: of the header, for errors
    :raises Invalid: 400, with the column; too long, or too many tags
    """
    if len(text) > MAX_LENGTH:
        raise Invalid(f"{name}: longer than {MAX_LENGTH} characters.")
    if text.strip(" \t") == "*":
        return ANY
    tags: list[Tag] = []
    place, is_separated = _skip(text, 0), True
    while place < len(text):
        if text[place] == ",":
            # Elements of a list may be empty (section 5.6.1).
            place, is_separated = _skip(text, place + 1), True
            continue
        match = _TAG.match(text, place) if is_separated else None
        if match is None:
            raise Invalid(f"{name}: column {place + 1}: expected \"...\" or W/\"...\", with commas between; or just *.")
        tags.append(Tag(match["opaque"], match["weak"] is not None))
        place, is_separated = _skip(text, match.end()), False
    if not 0 < len(tags) <= MAX_TAGS:
        raise Invalid(f"{name}: must have 1 to {MAX_TAGS} entity tags, or be *.")
    return tuple(tags)


def _skip(text: str, place: int) -> int:
    match = _BETWEEN.match(text, place)
    return match.end() if match else place


def _any_strongly(tags: Tags, current: str | None) -> bool:
    """Compare as If-Match does: weak tags never match."""
    if isinstance(tags, AnyTag):
        return True
    return any(not tag.weak and tag.opaque == current for tag in tags)


def _any_weakly(tags: Tags, current: str | None) -> bool:
    if isinstance(tags, AnyTag):
        return True
    return any(tag.opaque == current for tag in tags)
