"""A database of one test: SQLite, since lookups and the rule cache use nothing that differs between databases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from oslo_config import cfg
from oslo_db import options as db_options

from ironic_rules.db import inspection_rules
from ironic_rules.db.session import Database
from ironic_rules.db.tables import metadata, revisions


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    conf = cfg.ConfigOpts()
    db_options.set_defaults(conf, connection=f"sqlite:///{tmp_path / 'test.sqlite'}")
    conf([], default_config_files=[], default_config_dirs=[])
    database = Database(conf)
    metadata.create_all(database.engine)
    with database.writer() as conn:
        conn.execute(sa.insert(revisions).values(name=inspection_rules.RULE_SET, revision=0))
    yield database
    database.dispose()
