"""What a violated constraint means: oslo.db's errors become the service's.

Nobody looks before inserting, the constraint decides. Once it has spoken, PostgreSQL refuses every further statement of
the transaction, so the facts for the message are those that the caller already has, and the transaction is over.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from oslo_db import exception as db_exc

from ironic_rules.exceptions import IronicRulesError

#: Makes the error for a violation, from the offending value where the database tells it (SQLite does not).
MakeError = Callable[[str | None], IronicRulesError]


@contextlib.contextmanager
def duplicates(**by_column: MakeError) -> Iterator[None]:
    """Raise ``by_column[column]`` for a duplicate value of that column; ``other`` stands for any other column.

    SQLite names the columns, MariaDB and PostgreSQL the key, from whose name (``uniq_nodes0name``) oslo.db takes them.
    """
    try:
        yield
    except db_exc.DBDuplicateEntry as error:
        make = next((by_column[column] for column in error.columns if column in by_column), by_column.get("other"))
        if make is None:
            raise
        raise make(error.value) from error


@contextlib.contextmanager
def references(make: Callable[[str | None], IronicRulesError]) -> Iterator[None]:
    """Raise ``make(column)`` for a row that refers to a missing one, or that others refer to.

    ``column`` is the referring column, None where the database does not tell (SQLite, which lets one query further).
    """
    try:
        yield
    except db_exc.DBReferenceError as error:
        raise make(error.key) from error
