"""How MariaDB and MySQL compare texts: byte by byte, with the blanks at their end."""

from __future__ import annotations

import sqlalchemy as sa

from ironic_rules.exceptions import ConfigurationError

#: The collation of our tables on MariaDB (since 10.2), and on MySQL (since 8.0.17). The common ``utf8mb4_bin`` pads
#: texts with blanks, so that "Lab" and "Lab " are equal.
MARIADB = "utf8mb4_nopad_bin"
MYSQL = "utf8mb4_0900_bin"


def of_server(connection: sa.Connection) -> str:
    """Return the collation that the tables have on this server; MARIADB on other databases, which do not use it.

    :raises ConfigurationError: the server has none of them
    """
    if connection.dialect.name != "mysql":
        return MARIADB
    query = sa.text("SELECT COLLATION_NAME FROM information_schema.COLLATIONS "
                    "WHERE COLLATION_NAME IN (:mariadb, :mysql)")
    found = set(connection.scalars(query, {"mariadb": MARIADB, "mysql": MYSQL}))
    for name in (MARIADB, MYSQL):
        if name in found:
            return name
    raise ConfigurationError(f"The database server has neither the collation {MARIADB} nor {MYSQL}: MariaDB 10.6 or "
                             "later, or MySQL 8.0.17 or later, is required.")
