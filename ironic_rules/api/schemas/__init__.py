"""Schemas of request bodies, one module per resource, built at import."""
