"""Lists, replies and patches of the resources that are rows of one table, for their controllers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from ironic_rules.api import links, pagination, patch, schema, versions
from ironic_rules.api.filters import QueryValues
from ironic_rules.api.request import Request
from ironic_rules.api.views.rows import Views
from ironic_rules.db.collection import Collection
from ironic_rules.exceptions import Invalid, Problem
from ironic_rules.models.documents import JSON, JSONObject
from ironic_rules.models.fields import Fields


class Served:
    """A collection of the API: where it is, its fields, and its rows."""

    def __init__(self, path: str, table: Fields, rows: Collection, *, sub_resources: Sequence[str] = (),
                 summary: bool = True, detail_since: int = versions.DETAIL,
                 check_access: Callable[[Request, sa.Connection, Any, str], None] | None = None) -> None:
        """Describe the collection.

        :param path: below ``/v1/``; its last part is the key of the list in replies
        :param sub_resources: fields that are links below a resource
        :param summary: whether lists show a few fields only, unless more are requested
        :param detail_since: the first version with ``detail``
        :param check_access: refuses a row, for the ident that the request has; None: the policy of the route suffices
        """
        self._check_access = check_access
        self.path, self.table, self.rows = path, table, rows
        self._views = Views(table, path, sub_resources)
        self._default = table.summary if summary else None
        self._detail_since = detail_since

    def list_page(self, request: Request, query: QueryValues, filters: Mapping[str, object], *,
                  detail: bool | None = None) -> JSONObject:
        """Return a page of the collection.

        :param filters: the filters, checked and resolved
        :param detail: True: all fields, for the ``detail`` URLs; None: according to ``query``
        :raises Invalid: 400;  NotAcceptable: 406;  MarkerNotFound: 404
        """
        minor = request.version
        fields = pagination.shown_fields(request, query, detail, self.table, self._default, self._detail_since)
        versions.refuse_filters(self.table, query, minor)
        versions.refuse_fields(self.table, [query.get("sort_key", "id")], minor)
        page = pagination.page(request, query)
        columns = self._views.view(minor, fields).columns
        with request.db.reader() as conn:
            rows = self.rows.list_rows(conn, filters, page, columns, raw_json=True)
        return pagination.collection(request, self.path.rpartition("/")[2], rows, page,
                                     lambda shown: self._views.render(shown, minor, fields, request.base))

    def get_one(self, request: Request, ident: str, query: QueryValues) -> JSONObject:
        """Return the resource that a URL names, with the fields that the query names.

        :raises NotFound: 404;  Invalid: 400;  NotAcceptable: 406
        """
        fields = pagination.requested_fields(request, query, self.table)
        with request.db.reader() as conn:
            return self.show(request, self.find(request, conn, ident), fields)

    def find(self, request: Request, conn: sa.Connection, ident: str, *, for_update: bool = False) -> Any:
        """Return the row that a URL names.

        :param for_update: lock the row until the transaction ends
        :raises NotFound: 404, also if the caller may not see it;  Forbidden: 403
        """
        row = self.rows.get(conn, ident, for_update=for_update)
        if self._check_access is not None:
            self._check_access(request, conn, row, ident)
        return row

    def show(self, request: Request, row: object, fields: tuple[str, ...] | None = None) -> JSONObject:
        """Return a row as JSON."""
        return self._views.render([row], request.version, fields, request.base)[0]

    def show_new(self, request: Request, row: Any) -> JSONObject:
        """Return a row that was just created as JSON, and set the header ``Location``."""
        request.reply.headers.append(("Location", links.url(request.base, *self.path.split("/"), row.uuid)))
        return self.show(request, row)

    def given(self, request: Request, body: Mapping[str, JSON]) -> JSONObject:
        """Return the values of a resource that a POST creates: null means the default.

        :raises NotAcceptable: 406, a field that the version does not support;  Invalid: 400, a hidden secret
        """
        values = {name: value for name, value in body.items() if value is not None}
        versions.refuse_fields(self.table, values, request.version)
        patch.refuse_masks(values)
        return values

    def operations(self, request: Request, body: list[JSONObject]) -> list[patch.PatchOperation]:
        """Return the operations of a PATCH.

        :raises Invalid: 400, also for one that reads what replies hide;  NotAcceptable: 406
        """
        operations = patch.operations(body)
        versions.refuse_fields(self.table, {operation.path[0] for operation in operations}, request.version)
        secret = self.table.secret
        problems = [
            Problem(f"/{index}/op", f"{operation.op} cannot read fields that may hold secrets")
            for index, operation in enumerate(operations)
            if (operation.op == "test" and operation.path[0] in secret) or secret.intersection(operation.source[:1])]
        if problems:
            raise Invalid(problems=problems)
        return operations

    def changes(self, row: object, operations: list[patch.PatchOperation], patched: schema.Object) -> JSONObject:
        """Return the fields that a PATCH changes, with their new values.

        :param patched: the schema of every field that may be patched
        :raises Invalid: 400
        """
        document = {name: getattr(row, name) for name in patched.fields}
        defaults = self.table.defaults()
        result = patch.apply(document, operations, defaults=defaults, required=self.table.required)
        patch.refuse_masks(result, document)
        values = patched.load({name: result[name] for name in patch.touched(operations)})
        values = {name: defaults.get(name) if value is None else value for name, value in values.items()}
        return {name: value for name, value in values.items() if patch.differs(getattr(row, name), value)}

    def update(self, conn: sa.Connection, row: Any, changes: Mapping[str, Any]) -> Any:
        """Write changes, if there are any; return the row."""
        return self.rows.update(conn, row.id, changes) if changes else row
