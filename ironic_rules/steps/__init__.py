"""Steps of nodes: interfaces declare them, templates request them, and a procedure such as a deployment runs them.

An interface declares its steps (``declaration``), with the JSON schemas of their arguments. A node's conductor knows
what the interfaces of the node offer; other processes read what conductors register (``offers``). Steps that templates
and requests specify are checked (``checks``) and merged with those that run by default (``merge``). A procedure runs
them in that order: its progress is kept in the node (``progress``), and each pass executes one step (``execution``).
``preview`` reports in advance what a deployment would run.

Nothing here accesses the database, configuration or hardware: the caller passes what is needed of them.
"""
