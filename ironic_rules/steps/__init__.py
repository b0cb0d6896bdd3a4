"""Steps of nodes: what interfaces declare, templates ask for, and a procedure such as a deployment runs.

An interface declares its steps (``declaration``), with the JSON schemas of their arguments (``arguments``). What the
interfaces of a node offer is known to its conductor, and to everybody by what conductors register (``offers``).
Templates and requests ask for steps (``templates``); these are checked (``checks``) and merged with those that run by
default (``merge``). A procedure runs them in that order: how far it is, is kept in the node (``progress``), and each
pass executes one step (``execution``). ``preview`` reports beforehand what a deployment would run.

Nothing here knows the database, configuration or hardware: who calls brings what is needed of them.
"""
