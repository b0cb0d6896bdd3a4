"""By what repetitions of requests and reports are recognised.

Of a request, the client chooses it: the header ``Idempotency-Key``. A report is its own mark, by a keyed digest: who
can read the database cannot find out what a ramdisk has sent by trying.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from typing import Any

import orjson

from ironic_rules.api.request import Request
from ironic_rules.context import Mark
from ironic_rules.db import accepted_requests
from ironic_rules.db.session import Database
from ironic_rules.exceptions import Conflict, Invalid
from ironic_rules.models.documents import JSONObject

HEADER = "Idempotency-Key"
_VARIABLE = "HTTP_IDEMPOTENCY_KEY"
_FORM = re.compile(r"[!-~]{1,255}")
_REPORTS = "reports"


def of_request(request: Request, what: str, body: JSONObject) -> Mark:
    """Return the mark of a request that changes a node. Without the header, only this very message has it.

    :param what: names what ``body`` is about
    :raises Invalid: 400, the header has no valid key
    """
    key = request.environ.get(_VARIABLE)
    if key is None:
        key = f"{uuid.uuid4()} of the message"  # no client's key has blanks
    elif _FORM.fullmatch(key) is None:
        raise Invalid(f"The header {HEADER} must consist of 1 to 255 printable ASCII characters without blanks.")
    content = b" ".join((what.encode(), orjson.dumps(body, option=orjson.OPT_SORT_KEYS)))
    return Mark(_digest(key.encode()), _digest(content))


def was_accepted(conn: Any, request: Request, node_id: int, mark: Mark) -> bool:
    """Return whether a request with this mark was accepted in the last minutes.

    :raises Conflict: 409, another request was accepted with the same key
    """
    if _VARIABLE not in request.environ:
        return False
    first = accepted_requests.find(conn, mark.digest, node_id)
    if first is not None and first.content != mark.content:
        raise Conflict(f"The {HEADER} was used for another request on this node.")
    return first is not None


class ReportDigests:
    """Makes the digests of reports."""

    def __init__(self, db: Database) -> None:
        self._key = accepted_requests.digest_key(db, _REPORTS)

    def of(self, node_uuid: str | None, body: bytes) -> str:
        """Return the digest of a report: of all of its body, and of the node that it names in its query."""
        digest = hashlib.blake2b(key=self._key, digest_size=32)
        digest.update((node_uuid or "").encode() + b"\0")
        digest.update(body)
        return digest.hexdigest()


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=32).hexdigest()
