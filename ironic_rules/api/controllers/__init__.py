"""One module per resource; each is a :class:`~ironic_rules.api.routes.Resource` with exposed methods."""
