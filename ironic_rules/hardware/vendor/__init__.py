"""Vendor interfaces: what only one vendor's hardware can do."""
