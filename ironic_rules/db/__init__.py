"""The database: one module of functions per resource, on SQLAlchemy Core connections opened by ``db.session``."""
