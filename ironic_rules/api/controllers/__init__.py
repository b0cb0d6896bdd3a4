"""One module per resource; each is a :class:`~ironic_rules.api.resource.Resource` with exposed methods."""
