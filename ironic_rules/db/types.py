"""Column types and collations with the same behaviour on SQLite, MariaDB and PostgreSQL."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import orjson
import sqlalchemy as sa
from sqlalchemy import DateTime, Text, types
from sqlalchemy.dialects import mysql
from sqlalchemy.engine import Dialect

from ironic_rules.exceptions import ConfigurationError

#: Text of any size.
LONG_TEXT = Text().with_variant(mysql.LONGTEXT(), "mysql")


class Json(types.TypeDecorator[Any]):
    """A JSON value as text (LONGTEXT on MariaDB). None is stored as NULL, never as the text ``null``."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> types.TypeEngine[Any]:
        if dialect.name == "mysql":
            return dialect.type_descriptor(mysql.LONGTEXT())
        return dialect.type_descriptor(Text())

    def process_bind_param(self, value: object, dialect: Dialect) -> str | None:
        return None if value is None else orjson.dumps(value).decode()

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:
        return None if value is None else orjson.loads(value)


class UTCDateTime(types.TypeDecorator[datetime.datetime]):
    """A time to the microsecond; aware (UTC) in Python, naive UTC in the database."""

    impl = DateTime
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> types.TypeEngine[Any]:
        if dialect.name == "mysql":
            return dialect.type_descriptor(mysql.DATETIME(fsp=6))
        return dialect.type_descriptor(DateTime())

    def process_bind_param(self, value: datetime.datetime | None, dialect: Dialect) -> datetime.datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a naive datetime was to be stored")
        return value.astimezone(datetime.UTC).replace(tzinfo=None)

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], datetime.datetime | None]:
        # In place of process_result_value(): one call per value instead of three, for lists of a thousand rows.
        if dialect.name == "sqlite":
            # Its times are texts. It is slower to parse them without the offset and add that.
            parse = datetime.datetime.fromisoformat
            return lambda value: None if value is None else parse(f"{value}+00:00")
        read = self.impl_instance.dialect_impl(dialect).result_processor(dialect, coltype)

        def process(value: Any) -> datetime.datetime | None:
            if value is None:
                return None
            moment = value if read is None else read(value)
            return None if moment is None else moment.replace(tzinfo=datetime.UTC)

        return process


#: The collation of our tables on MariaDB (since 10.2), and on MySQL (since 8.0.17). The common ``utf8mb4_bin`` pads
#: texts with blanks, so that "Lab" and "Lab " are equal.
MARIADB_COLLATION = "utf8mb4_nopad_bin"
MYSQL_COLLATION = "utf8mb4_0900_bin"


def collation_of_server(connection: sa.Connection) -> str:
    """Return the collation that the tables have on this server; MARIADB on other databases, which do not use it.

    :raises ConfigurationError: the server has none of them
    """
    if connection.dialect.name != "mysql":
        return MARIADB_COLLATION
    query = sa.text("SELECT COLLATION_NAME FROM information_schema.COLLATIONS "
                    "WHERE COLLATION_NAME IN (:mariadb, :mysql)")
    collations = set(connection.scalars(query, {"mariadb": MARIADB_COLLATION, "mysql": MYSQL_COLLATION}))
    for name in (MARIADB_COLLATION, MYSQL_COLLATION):
        if name in collations:
            return name
    raise ConfigurationError(
        f"The database server has neither the collation {MARIADB_COLLATION} nor {MYSQL_COLLATION}: MariaDB 10.6 or "
        "later, or MySQL 8.0.17 or later, is required.")
