"""``/v1/runbooks``, and cleaning and servicing by a runbook."""

from __future__ import annotations

from collections.abc import Callable

import sqlalchemy as sa

from ironic_rules import policy
from ironic_rules.api import filters, links, patch, schemas, versions
from ironic_rules.api.expose import RAW, expose
from ironic_rules.api.filters import QueryValues
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.api.v1 import deploy_steps, node_access
from ironic_rules.api.v1.served import Served
from ironic_rules.db import collection, node_sets
from ironic_rules.exceptions import Forbidden, Invalid, InvalidParameterValue, Problem, RunbookNotFound
from ironic_rules.models.documents import JSON, JSONObject
from ironic_rules.models.nodes import Node
from ironic_rules.models.resources import RUNBOOK, Runbook, runbook_fits, steps_to_run
from ironic_rules.models.steps import Step
from ironic_rules.models.traits import MAX_PER_NODE, is_trait
from ironic_rules.policies import templates


def _check_access(request: Request, conn: sa.Connection, row: Runbook, ident: str) -> None:
    if request.confinement is not None:
        request.confinement.check_runbook(row, RunbookNotFound(runbook=ident))


_RUNBOOKS = Served("runbooks", RUNBOOK, collection.RUNBOOKS, check_access=_check_access)
#: Field -> the policy that its changes need in addition to that of runbooks.
_FIELDS = {"public": templates.RUNBOOK_UPDATE_PUBLIC, "owner": templates.RUNBOOK_UPDATE_OWNER}
_LIST = filters.Listing.of(RUNBOOK, checked=False)
_ONE = filters.Query(fields=filters.names)
#: Target of ``states/provision`` -> the argument with the steps.
_STEPS_OF = {"clean": "clean_steps", "service": "service_steps"}


class RunbookTraitsController(Resource):
    """``/v1/runbooks/{runbook}/traits``: traits of nodes that may use it, in addition to its name."""

    @expose(since=versions.RUNBOOKS, policy=templates.RUNBOOK_GET)
    def get_all(self, request: Request, runbook: str) -> JSONObject:
        """Return ``{"traits": [names, sorted]}``.

        :raises RunbookNotFound: 404
        """
        with request.db.reader() as conn:
            return {"traits": _RUNBOOKS.find(request, conn, _ident(runbook)).traits}

    @expose(since=versions.RUNBOOKS, policy=templates.RUNBOOK_UPDATE, body=RAW, status=204)
    def put(self, request: Request, runbook: str, trait: str | None = None, *, body: JSON) -> None:
        """Add one trait (no body), or replace all by those of the body (``{"traits": [names]}``).

        :raises InvalidParameterValue: 400, a name that is not a trait, or more than 50;  RunbookNotFound: 404
        """
        if trait is None:
            names = set(schemas.TRAITS.load(body)["traits"])
            _write_traits(request, runbook, lambda old: names)
            return
        if body:
            raise Invalid("This request takes no body.")
        _check_trait(trait)
        _write_traits(request, runbook, lambda old: old | {trait})
        request.reply.headers.append(("Location", links.url(request.base, "runbooks", runbook, "traits", trait)))

    @expose(since=versions.RUNBOOKS, policy=templates.RUNBOOK_UPDATE, status=204)
    def delete(self, request: Request, runbook: str, trait: str | None = None) -> None:
        """Remove one trait, or all; as in Ironic, one that the runbook does not have is no error.

        :raises RunbookNotFound: 404;  InvalidParameterValue: 400, a name that is not a trait
        """
        if trait is not None:
            _check_trait(trait)
        _write_traits(request, runbook, lambda old: set() if trait is None else old - {trait})


class RunbooksController(Resource):
    """``/v1/runbooks``, since API 1.92; the ident is a UUID or a name, which is a trait."""

    below_item = {"traits": RunbookTraitsController()}

    @expose(since=versions.RUNBOOKS, policy=templates.RUNBOOK_LIST, query=_LIST)
    def get_all(self, request: Request, query: QueryValues) -> JSONObject:
        """List runbooks, with a few fields, those of ``fields``, or all (``detail``)."""
        filters: JSONObject = {}
        node_access.confine(request, filters)
        return _RUNBOOKS.list_page(request, query, filters)

    @expose(since=versions.RUNBOOKS, policy=templates.RUNBOOK_GET, query=_ONE)
    def get_one(self, request: Request, runbook: str, query: QueryValues) -> JSONObject:
        """Return one runbook.

        :raises RunbookNotFound: 404
        """
        return _RUNBOOKS.get_one(request, _ident(runbook), query)

    @expose(since=versions.RUNBOOKS, policy=templates.RUNBOOK_CREATE, body=schemas.RUNBOOK_CREATE, status=201)
    def post(self, request: Request, body: JSONObject) -> JSONObject:
        """Create a runbook. A runbook of a project's member belongs to the project, unless it is public.

        :raises Invalid: 400, with every problem;  runbook_already_exists, duplicate_runbook_name: 409
        """
        values = _RUNBOOKS.given(request, body)
        owner: str | None
        if (confinement := request.confinement) is not None:
            owner = confinement.owner(values.get("owner"))
        else:
            owner = values.get("owner", request.context.project_id)
        if values.get("public"):
            _authorize(request, templates.RUNBOOK_UPDATE_PUBLIC)
        else:
            values["owner"] = owner
        _check(request, values)
        return _RUNBOOKS.show_new(request, request.db.write(lambda conn: collection.RUNBOOKS.create(conn, values)))

    @expose(since=versions.RUNBOOKS, policy=templates.RUNBOOK_UPDATE, body=patch.BODY)
    def patch(self, request: Request, runbook: str, body: list[JSONObject]) -> JSONObject:
        """Change a runbook by a JSON patch (RFC 6902). One that becomes public loses its owner.

        :raises RunbookNotFound: 404;  Invalid: 400;  duplicate_runbook_name: 409
        """
        operations = _RUNBOOKS.operations(request, body)
        ident = _ident(runbook)

        def change(conn: sa.Connection) -> Runbook:
            row = _RUNBOOKS.find(request, conn, ident, for_update=True)
            for field, name in _FIELDS.items():
                if any(operation.op != "test" and field in (operation.path[0], *operation.source[:1])
                       for operation in operations):
                    _authorize(request, name)
            changes = _RUNBOOKS.changes(row, operations, schemas.RUNBOOK_PATCHED)
            if changes.get("public") and "owner" not in changes:
                changes["owner"] = None
            _check(request, {"public": row.public, "owner": row.owner, **changes})
            changed: Runbook = _RUNBOOKS.update(conn, row, changes)
            return changed

        return _RUNBOOKS.show(request, request.db.write(change))

    @expose(since=versions.RUNBOOKS, policy=templates.RUNBOOK_DELETE, status=204)
    def delete(self, request: Request, runbook: str) -> None:
        """Delete a runbook.

        :raises RunbookNotFound: 404
        """
        ident = _ident(runbook)
        request.db.write(lambda conn: collection.RUNBOOKS.destroy(
            conn, _RUNBOOKS.find(request, conn, ident, for_update=True).id))


def arguments(request: Request, node: Node, verb: str, arguments: JSONObject) -> JSONObject:
    """Return the arguments of a request for a provision state, with the steps in the place of its ``runbook``.

    :param arguments: the arguments, with ``runbook``
    :raises Invalid: 400, there is no such runbook, it may not be used on the node, or more says which steps run
    :raises NotAcceptable: 406;  Forbidden: 403
    """
    if request.version < versions.RUNBOOKS:
        raise versions.too_new('"runbook"', versions.RUNBOOKS)
    if request.context.project_id is None:
        _authorize(request, templates.RUNBOOK_USE)
    if verb not in _STEPS_OF:
        raise Invalid(problems=[Problem("/runbook", f"can only be used with target {' or '.join(_STEPS_OF)}")])
    problems = [Problem(f"/{name}", "cannot be given together with runbook, which has it")
                for name in (*_STEPS_OF.values(), "disable_ramdisk") if name in arguments]
    if problems:
        raise Invalid(problems=problems)
    with request.db.reader() as conn:
        try:
            runbook: Runbook = collection.RUNBOOKS.get(conn, arguments["runbook"])
        except RunbookNotFound as error:
            raise Invalid(problems=[Problem("/runbook", str(error))]) from error
        _check_use(request, runbook, arguments["runbook"])
        if not runbook_fits(runbook, node_sets.list_traits(conn, [node.id])[node.id]):
            raise Invalid(problems=[Problem("/runbook", (
                f"runbook {runbook.uuid} may not be used on node {node.uuid}: the node has neither the trait "
                f"{runbook.name} nor another trait of the runbook"))])
    others = {name: value for name, value in arguments.items() if name != "runbook"}
    if runbook.disable_ramdisk:
        others["disable_ramdisk"] = True
    return {**others, _STEPS_OF[verb]: steps_to_run(runbook)}


def _authorize(request: Request, name: str, runbook: Runbook | None = None) -> None:
    owner = None if runbook is None else runbook.owner
    policy.authorize(request.conf, name, request.context, {} if owner is None else {"runbook.owner": owner})


def _check_use(request: Request, runbook: Runbook, ident: str) -> None:
    """Check that the caller may use a runbook: everybody may use one that is public.

    :raises Invalid: 400, the caller may not see it, as if it did not exist;  Forbidden: 403
    """
    if runbook.public:
        return
    try:
        _authorize(request, templates.RUNBOOK_GET, runbook)
    except Forbidden:
        missing = RunbookNotFound(runbook=ident)
        raise Invalid(problems=[Problem("/runbook", str(missing))]) from missing
    _authorize(request, templates.RUNBOOK_USE, runbook)


def _ident(runbook: str) -> str:
    return node_access.check_ident(runbook, "runbook")


def _check_trait(trait: str) -> None:
    if not is_trait(trait):
        raise InvalidParameterValue(problems=[Problem("trait", "must be a standard trait (os-traits), or CUSTOM_ "
                                                               "followed by A-Z, 0-9 and _")])


def _check(request: Request, values: JSONObject) -> None:
    """Check what the schema does not: steps, and that a public runbook has no owner.

    :raises Invalid: 400, with every problem
    """
    if values.get("public") and values.get("owner") is not None:
        raise Invalid(problems=[Problem("/owner", "must be null: a public runbook has no owner")])
    # Arguments are not checked: an interface accepts them depending on the node, and on cleaning or servicing.
    deploy_steps.check_steps(request,
                             [Step(step["interface"], step["step"], step["args"], 1)
                              for step in values.get("steps", ())])


def _write_traits(request: Request, runbook: str, change: Callable[[set[str]], set[str]]) -> None:
    ident = _ident(runbook)

    def write(conn: sa.Connection) -> None:
        row = _RUNBOOKS.find(request, conn, ident, for_update=True)
        new = sorted(change(set(row.traits)))
        if len(new) > MAX_PER_NODE:
            raise InvalidParameterValue(f"A runbook has at most {MAX_PER_NODE} traits.")
        if new != row.traits:
            collection.RUNBOOKS.update(conn, row.id, {"traits": new})

    request.db.write(write)
