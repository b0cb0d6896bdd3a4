"""The REST API: pecan controllers that use schemas, policies, repositories and RPC, but no SQL and no rule engine."""
