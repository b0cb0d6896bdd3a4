"""WSGI middleware around pecan, outermost first as ``api.app`` stacks it. Plain WSGI: it costs microseconds."""
