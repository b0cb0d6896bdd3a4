"""Deploy templates and their steps. A template always has steps; every change of them changes its revision."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from ironic_rules.db import clock, identity
from ironic_rules.db.errors import duplicates
from ironic_rules.db.paging import Page, check_sort_key, marker_row, paginate
from ironic_rules.db.projection import Row, columns_of, rows_of
from ironic_rules.db.tables import deploy_template_steps, deploy_templates
from ironic_rules.exceptions import (
    Changed,
    NotFound,
    deploy_template_already_exists,
    deploy_template_changed,
    deploy_template_not_found,
    duplicate_deploy_template_name,
)
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.steps import DEPLOY_TEMPLATE, STEP_FIELDS, DeployTemplate, Step

_STEPS = deploy_template_steps.c
_OWN = tuple(deploy_templates.c.keys())
# One query for a template and its steps, so that both are of the same state.
_WITH_STEPS = (
    sa.select(deploy_templates, *(_STEPS[name] for name in STEP_FIELDS))
    .select_from(deploy_templates.join(deploy_template_steps))
    .order_by(deploy_templates.c.id, _STEPS.position))


def get(conn: sa.Connection, ident: str) -> DeployTemplate:
    """Return the template with the UUID or name ``ident``.

    :raises deploy_template_not_found: 404
    """
    return _one(conn, identity.is_called(deploy_templates, ident), ident)


def for_traits(conn: sa.Connection, traits: Collection[str]) -> list[DeployTemplate]:
    """Return the templates that are named after one of ``traits``, with their steps, in the order of their names."""
    if not traits:
        return []
    return sorted(_templates(conn, deploy_templates.c.name.in_(sorted(traits))), key=lambda template: template.name)


def list_templates(conn: sa.Connection, page: Page, columns: Iterable[str] | None = None, *,
                   raw_json: bool = False) -> list[Row]:
    """Return at most ``page.limit`` templates without their steps (``steps_of`` has them).

    :param columns: names of the columns of the rows; None: all columns
    :param raw_json: leave JSON columns as text
    :raises MarkerNotFound: 404;  Invalid: 400, the sort key is invalid
    """
    check_sort_key(page, DEPLOY_TEMPLATE.sort_keys)
    query = sa.select(*columns_of(deploy_templates, columns, raw_json=raw_json))
    return rows_of(conn, paginate(query, deploy_templates, page, marker_row(conn, deploy_templates, page)))


def steps_of(conn: sa.Connection, template_ids: Collection[int]) -> dict[int, list[tuple[str, str, str, int]]]:
    """Return the steps of each of ``template_ids`` in their order, in one query.

    :returns: interface, name, the JSON text of the arguments, priority; an empty list for a template that was deleted
    """
    steps: dict[int, list[tuple[str, str, str, int]]] = {template_id: [] for template_id in template_ids}
    if steps:
        columns = columns_of(deploy_template_steps, ("deploy_template_id", *STEP_FIELDS), raw_json=True)
        query = sa.select(*columns).where(_STEPS.deploy_template_id.in_(list(steps)))
        for template_id, *step in conn.execute(query.order_by(_STEPS.deploy_template_id, _STEPS.position)).all():
            steps[template_id].append(tuple(step))
    return steps


def create(conn: sa.Connection, values: Mapping[str, Any], steps: Sequence[Step]) -> DeployTemplate:
    """Store a new template and return it; ``uuid``, ``created_at`` and ``extra`` have defaults.

    :raises deploy_template_already_exists, duplicate_deploy_template_name: 409
    """
    row = {"created_at": clock.now(), **values, "uuid": identity.assigned(values)}
    with _taken(row):
        inserted = conn.execute(sa.insert(deploy_templates).values(row)).inserted_primary_key
    template_id: int = inserted[0]  # type: ignore[index]
    _insert_steps(conn, template_id, steps)
    return _one(conn, deploy_templates.c.id == template_id, row["uuid"])


def update(conn: sa.Connection, template: DeployTemplate, values: Mapping[str, object],
           steps: Sequence[Step] | None = None) -> DeployTemplate:
    """Write ``values``, and ``steps`` in place of the old ones if given; return the template.

    :param template: as it was read; nothing is written if it has changed since
    :raises deploy_template_not_found: 404
    :raises deploy_template_changed, duplicate_deploy_template_name: 409
    """
    own = deploy_templates.c
    statement = sa.update(deploy_templates).where(own.id == template.id, own.revision == template.revision)
    with _taken(values):
        updated = conn.execute(statement.values(
            {**values, "revision": template.revision + 1, "updated_at": clock.now()})).rowcount
    if not updated:
        raise _lost(conn, template)
    if steps is not None:
        conn.execute(sa.delete(deploy_template_steps).where(_STEPS.deploy_template_id == template.id))
        _insert_steps(conn, template.id, steps)
    return _one(conn, own.id == template.id, template.uuid)


def destroy(conn: sa.Connection, template: DeployTemplate, *, only_unchanged: bool = False) -> None:
    """Delete a template and its steps.

    :param only_unchanged: only if it has not changed since it was read
    :raises deploy_template_not_found: 404
    :raises deploy_template_changed: 409
    """
    statement = sa.delete(deploy_templates).where(deploy_templates.c.id == template.id)
    if only_unchanged:
        statement = statement.where(deploy_templates.c.revision == template.revision)
    if not conn.execute(statement).rowcount:
        raise _lost(conn, template)


def _one(conn: sa.Connection, condition: sa.ColumnElement[bool], ident: str) -> DeployTemplate:
    templates = _templates(conn, condition)
    if not templates:
        raise deploy_template_not_found(template=ident)
    return templates[0]


def _templates(conn: sa.Connection, condition: sa.ColumnElement[bool]) -> list[DeployTemplate]:
    own: dict[int, JSONObject] = {}
    steps: dict[int, list[Step]] = {}
    for row in conn.execute(_WITH_STEPS.where(condition)).all():
        if row.id not in own:
            own[row.id] = dict(zip(_OWN, row, strict=False))
        steps.setdefault(row.id, []).append(Step(*row[len(_OWN):]))
    return [DeployTemplate(**values, steps=tuple(steps[template_id])) for template_id, values in own.items()]


def _insert_steps(conn: sa.Connection, template_id: int, steps: Sequence[Step]) -> None:
    conn.execute(sa.insert(deploy_template_steps), [
        {"deploy_template_id": template_id, "position": position, **step.to_wire()}
        for position, step in enumerate(steps)])


def _lost(conn: sa.Connection, template: DeployTemplate) -> NotFound | Changed:
    """Return the error for a template that was changed or deleted since it was read."""
    query = sa.select(deploy_templates.c.id).where(deploy_templates.c.id == template.id)
    if conn.scalar(query) is None:
        return deploy_template_not_found(template=template.uuid)
    return deploy_template_changed(template=template.uuid)


def _taken(values: Mapping[str, object]) -> Any:
    return duplicates(
        uuid=lambda value: deploy_template_already_exists(uuid=values.get("uuid")),
        name=lambda value: duplicate_deploy_template_name(name=values.get("name")))
