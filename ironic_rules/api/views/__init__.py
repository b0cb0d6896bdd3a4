"""Rows -> JSON, one module per resource."""
