"""Metrics: which there are, how they are counted, and how Prometheus reads them."""
