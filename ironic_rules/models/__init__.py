"""Values of the domain and what can be said about them: no configuration, database, RPC or clock."""
