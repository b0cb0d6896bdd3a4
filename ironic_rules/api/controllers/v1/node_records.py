"""What the controllers of a node's records have in common: its history, and its inspections."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

import sqlalchemy as sa

from ironic_rules.api import pagination
from ironic_rules.api.controllers.v1 import node_access
from ironic_rules.api.filters import QueryValues
from ironic_rules.api.request import Request
from ironic_rules.db.paging import Page
from ironic_rules.exceptions import NotFound
from ironic_rules.models.documents import JSONObject


class _Record(Protocol):
    @property
    def id(self) -> int: ...
    @property
    def uuid(self) -> str: ...


R = TypeVar("R", bound=_Record)


def listed(request: Request, node: str, query: QueryValues, name: str,
           list_for: Callable[[sa.Connection, int, Page], Sequence[R]],
           view: Callable[[str, R], JSONObject]) -> JSONObject:
    """Return a page of the records of a node.

    :param name: of the collection
    :param list_for: reads a page of the records of the node with that id
    :param view: returns a record of the node with that UUID
    :raises NodeNotFound: 404
    """
    page = pagination.page(request, query)
    with request.db.reader() as conn:
        row = node_access.find(request, conn, node)
        records = list_for(conn, row.id, page)
    return pagination.collection(request, name, records, page,
                                 lambda shown: [view(row.uuid, record) for record in shown])


def one(request: Request, node: str, ident: str, kind: str, get: Callable[[sa.Connection, int, str], R],
        view: Callable[[str, R], JSONObject]) -> JSONObject:
    """Return one record of a node.

    :param kind: what ``ident`` is of, in words
    :param get: reads the record of the node with that id, and raises NotFound
    :raises NodeNotFound: 404;  NotFound: that of ``get``, with the node's UUID
    """
    with request.db.reader() as conn:
        row = node_access.find(request, conn, node)
        try:
            record = get(conn, row.id, node_access.check_ident(ident, kind))
        except NotFound as error:
            raise type(error)(**{**error.facts, "node": row.uuid}) from error
    return view(row.uuid, record)
