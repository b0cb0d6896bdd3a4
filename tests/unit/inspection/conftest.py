"""A database per test: SQLite, since lookups and the rule cache use nothing that differs between databases."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from oslo_config import cfg

from ironic_rules.conf import database as database_options
from ironic_rules.db import inspection_rules, legacy_rules
from ironic_rules.db.session import Database
from ironic_rules.db.tables import metadata, revisions


@contextlib.contextmanager
def opened(file: Path) -> Iterator[Database]:
    """Yield a database in a file."""
    conf = cfg.ConfigOpts()
    database_options.register_opts(conf)
    conf.set_default("connection", f"sqlite:///{file}", group="database")
    conf([], default_config_files=[], default_config_dirs=[])
    database = Database(conf)
    try:
        yield database
    finally:
        database.dispose()


@pytest.fixture(scope="session")
def empty_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create all tables once: copies of a file take less time."""
    file = tmp_path_factory.mktemp("db") / "empty.sqlite"
    with opened(file) as database:
        metadata.create_all(database.engine)
        with database.writer() as conn:
            for rules in (inspection_rules, legacy_rules):
                conn.execute(sa.insert(revisions).values(name=rules.RULE_SET, revision=0))
    return file


@pytest.fixture
def db(tmp_path: Path, empty_file: Path) -> Iterator[Database]:
    with opened(shutil.copy(empty_file, tmp_path / "test.sqlite")) as database:
        yield database
