"""Secrets that an API shows as ``******``: where they are, and where they are taken from."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

import sqlalchemy as sa

from ironic_rules.db.errors import refusals
from ironic_rules.exceptions import ConfigurationError
from ironic_rules.models import documents
from ironic_rules.models.documents import JSON, JSONObject
from ironic_rules.models.secrets import MASK
from ironic_rules.text import printable

Path = tuple[str, ...]
#: In a file of secrets, the values for all objects that are not named.
ALL = "*"


class Secrets(Protocol):
    """A place from which secrets are taken."""

    def value(self, kind: str, uuid: str, name: str | None, path: Path) -> JSON:
        """Return the secret at a path of an object, None if it is not known."""


def places(value: JSON, path: Path = ()) -> Iterator[Path]:
    """Yield the path of each text with a mask, under whatever key: which are secret is the other cloud's decision."""
    if isinstance(value, str):
        if MASK in value:
            yield path
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from places(item, (*path, str(key)))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from places(item, (*path, str(index)))


def remove(document: JSONObject, path: Path) -> None:
    """Remove the value at a path from a document."""
    documents.unshare(document, path[:-1])
    documents.remove(document, path)


def put(document: JSONObject, path: Path, value: JSON) -> None:
    """Write a value at a path of a document."""
    documents.unshare(document, path[:-1])
    documents.put(document, path, value)


def at(document: JSON, path: Path) -> JSON:
    """Return the value at a path of a document; None: it has none."""
    with contextlib.suppress(documents.PointerError):
        return documents.get(document, path)
    return None


class SecretsFile:
    """Secrets by UUID or name of the object, or ``*``, and by JSON pointer: ``{"*": {"/driver_info/x": "y"}}``."""

    def __init__(self, document: object, name: str) -> None:
        """Check the document.

        :param name: of the file, for errors
        :raises ConfigurationError: it has another form
        """
        self._found: dict[str, dict[Path, JSON]] = {}
        if not isinstance(document, dict):
            raise ConfigurationError(f"{name} must have an object with the secrets of each object by its UUID or name")
        for ident, values in document.items():
            if not isinstance(values, dict):
                raise ConfigurationError(f"{name}: /{printable(ident, 64)} must be an object with the secrets by their "
                                         "JSON pointers")
            for pointer, value in values.items():
                try:
                    self._found.setdefault(str(ident), {})[documents.parse_pointer(str(pointer))] = value
                except documents.PointerError as exc:
                    raise ConfigurationError(f"{name}: /{printable(ident, 64)}: {exc}") from exc

    def value(self, kind: str, uuid: str, name: str | None, path: Path) -> JSON:
        """Return the secret of the object, else the one of all objects."""
        for ident in (uuid, name, ALL):
            if ident is not None and path in self._found.get(ident, {}):
                return self._found[ident][path]
        return None


class AskedSecrets:
    """Secrets that a person types: one value for each path, for all objects."""

    def __init__(self, ask: Callable[[str], str]) -> None:
        self._ask = ask
        self._given: dict[tuple[str, Path], str] = {}

    def value(self, kind: str, uuid: str, name: str | None, path: Path) -> JSON:
        """Return the answer for the path; None if there is none."""
        if (kind, path) not in self._given:
            self._given[kind, path] = self._ask(
                f"{documents.format_pointer(path)} of each {kind.replace('_', ' ')} that hides it, such as "
                f"{printable(name or uuid, 64)} (empty: none): ")
        return self._given[kind, path] or None


class IronicDatabase:
    """The database of the other cloud, of which nothing but secrets is read, and nothing is written.

    :param url: as of SQLAlchemy
    :raises ConfigurationError: it cannot be reached, or is not that of an Ironic
    """

    #: By kind: the table, and the columns with documents.
    _COLUMNS: Mapping[str, tuple[str, tuple[str, ...]]] = {
        "node": ("nodes", ("driver_info", "instance_info")),
        "volume_target": ("volume_targets", ("properties",)),
        "inspection_rule": ("inspection_rules", ("conditions", "actions")),
    }
    #: By kind: the tables of the objects and of their steps, the reference to the object, and the order of the steps.
    _STEPS: Mapping[str, tuple[str, str, str, Sequence[str]]] = {
        "deploy_template": ("deploy_templates", "deploy_template_steps", "deploy_template_id", ("position", "id")),
        "runbook": ("runbooks", "runbook_steps", "runbook_id", ("position", "id")),
    }

    def __init__(self, url: str) -> None:
        try:
            parsed = sa.make_url(url)
            if parsed.get_backend_name() == "sqlite":
                parsed = parsed.set(database=f"file:{parsed.database}", query={"mode": "ro", "uri": "true"})
            self._engine = sa.create_engine(parsed, poolclass=sa.NullPool)
            with self._reading() as conn:
                self._tables = set(sa.inspect(conn).get_table_names())
        except (sa.exc.SQLAlchemyError, ImportError) as exc:
            raise ConfigurationError(f"--database: {printable(str(exc).partition(chr(10))[0], 512)}") from exc
        if "nodes" not in self._tables:
            raise ConfigurationError("--database: there is no table nodes, so this is not the database of an Ironic")
        self._known: dict[str, dict[str, JSONObject]] = {}

    def value(self, kind: str, uuid: str, name: str | None, path: Path) -> JSON:
        """Return the value that the database has there; one that is hidden there, too, is None."""
        if kind not in self._known:
            with refusals(), self._reading() as conn:
                self._known[kind] = self._documents(conn, kind)
        value = at(self._known[kind].get(uuid), path)
        return None if value == MASK else value

    @contextlib.contextmanager
    def _reading(self) -> Iterator[sa.Connection]:
        with self._engine.connect() as conn:
            if conn.dialect.name in ("mysql", "postgresql"):
                conn.exec_driver_sql("SET TRANSACTION READ ONLY")
            yield conn
            conn.rollback()

    def _documents(self, conn: sa.Connection, kind: str) -> dict[str, JSONObject]:
        if kind in self._COLUMNS and (table := self._COLUMNS[kind][0]) in self._tables:
            return self._columns(conn, table, self._COLUMNS[kind][1])
        if kind in self._STEPS:
            owners, steps, reference, order = self._STEPS[kind]
            if steps in self._tables:
                return self._steps(conn, owners, steps, reference, order)
            if owners in self._tables:
                return self._columns(conn, owners, ("steps",))
        return {}

    def _columns(self, conn: sa.Connection, table: str, names: Sequence[str]) -> dict[str, JSONObject]:
        shape = sa.table(table, sa.column("uuid"), *(sa.column(name) for name in names))
        return {row.uuid: {name: _loaded(getattr(row, name)) for name in names}
                for row in conn.execute(sa.select(shape))}

    def _steps(self, conn: sa.Connection, owners: str, steps: str, reference: str,
               order: Sequence[str]) -> dict[str, JSONObject]:
        present = {column["name"] for column in sa.inspect(conn).get_columns(steps)}
        first: sa.ColumnClause[int] = next(sa.column(name) for name in order if name in present)
        owner = sa.table(owners, sa.column("id"), sa.column("uuid"))
        step = sa.table(steps, sa.column(reference), sa.column("args"), first)
        query = sa.select(owner.c.uuid, step.c.args).select_from(
            owner.join(step, owner.c.id == step.c[reference])).order_by(owner.c.id, step.c[first.name])
        by_owner: dict[str, JSONObject] = {}
        for row in conn.execute(query):
            by_owner.setdefault(row.uuid, {"steps": []})["steps"].append({"args": _loaded(row.args)})
        return by_owner


def _loaded(value: JSON | bytes) -> JSON:
    if not isinstance(value, (str, bytes)):
        return value
    with contextlib.suppress(ValueError):
        return json.loads(value)  # type: ignore[no-any-return]
    return None
