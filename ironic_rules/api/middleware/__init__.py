"""WSGI middleware around pecan, in the order that ``api.app`` sets. Plain WSGI, because that is fast."""
