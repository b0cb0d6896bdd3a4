"""Data types of the domain and functions on them, without configuration, database, RPC or clock."""
