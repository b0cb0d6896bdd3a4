"""Sessions of PostgreSQL that wait without end for the rest of a message.

What a client sends for one statement is several messages, and large ones several packets. If the network loses the
client when only a part has arrived, the server waits for the rest: neither ``statement_timeout`` nor
``idle_in_transaction_session_timeout`` counts meanwhile, and the transaction keeps its locks. MariaDB counts that time
as idle.
"""

from __future__ import annotations

import sqlalchemy as sa

from ironic_rules.db.session import Database

# With a part of a batch, the state is still that between two statements, but its time-out does not count any more.
_END = sa.text("""
    SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
    WHERE datname = current_database() AND usename = current_user
    AND application_name = current_setting('application_name')
    AND state IN ('active', 'idle in transaction', 'idle in transaction (aborted)') AND wait_event = 'ClientRead'
    AND state_change < clock_timestamp() - make_interval(secs => :silent_s)""")


def end(db: Database, silent_s: float) -> int:
    """End the sessions, of any process of this service, in such a state for ``silent_s`` seconds; return how many.

    Those of the service have its ``application_name``: migrations, and users of the same role, are left alone.

    :param silent_s: 0: none
    """
    if db.dialect != "postgresql" or not silent_s:
        return 0
    with db.reader() as conn:
        return int(conn.scalar(_END, {"silent_s": silent_s}) or 0)
