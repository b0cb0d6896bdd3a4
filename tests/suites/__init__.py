"""The functional suites of other projects' clients against a running service; ``tox -e clients`` runs them."""
