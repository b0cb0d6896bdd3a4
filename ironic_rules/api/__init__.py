"""The REST API: pecan around methods that know no SQL and no rules, only shapes, policies, repositories and RPC."""
