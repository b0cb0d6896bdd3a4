"""Tests of `ironic_rules.client`."""
