"""``/v1/nodes/{node}/states`` and ``…/maintenance``: provision state, power, RAID, boot mode, console.

``boot_mode`` and ``secure_boot`` since API 1.76; ``raid`` since 1.12 sets the volumes that
``raid.create_configuration`` creates.
"""

from __future__ import annotations

import sqlalchemy as sa

from ironic_rules.api import links, patch, schemas, versions
from ironic_rules.api.expose import expose
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.api.v1 import node_access, node_hardware, node_replies, runbooks
from ironic_rules.db import nodes, outbox
from ironic_rules.exceptions import (
    Conflict,
    InvalidParameterValue,
    NodeLocked,
    NotFound,
    Problem,
    UnsupportedDriverExtension,
)
from ironic_rules.models import node_actions, states
from ironic_rules.models.documents import JSONObject
from ironic_rules.policies import nodes as policies


class BootModeController(Resource):
    """``/v1/nodes/{node}/states/boot_mode``."""

    @expose(since=versions.SET_BOOT_MODE, policy=policies.SET_BOOT_MODE, body=schemas.BOOT_MODE, status=202,
            hidden=True, policy_first=True)
    def put(self, request: Request, node: str, body: JSONObject) -> None:
        """Start changing the boot mode to ``target``; the node's ``boot_mode`` or ``last_error`` shows the result.

        :raises NodeNotFound: 404;  Invalid: 400, not supported;  NodeLocked: 409
        :raises no_valid_host, NoFreeWorker, RPCTimeout: 503
        """
        node_hardware.change_hardware(request, node, "set_boot_mode", mode=body["target"])
        _locate_states(request, node)


class SecureBootController(Resource):
    """``/v1/nodes/{node}/states/secure_boot``."""

    @expose(since=versions.SET_BOOT_MODE, policy=policies.SET_SECURE_BOOT, body=schemas.SECURE_BOOT, status=202,
            hidden=True, policy_first=True)
    def put(self, request: Request, node: str, body: JSONObject) -> None:
        """Start switching secure boot on or off; the node's ``secure_boot`` or ``last_error`` shows the result.

        :raises NodeNotFound: 404;  UnsupportedDriverExtension: 400;  NodeLocked: 409
        :raises no_valid_host, NoFreeWorker, RPCTimeout: 503
        """
        node_hardware.change_hardware(request, node, "set_secure_boot", is_on=body["target"])
        _locate_states(request, node)


def _locate_states(request: Request, node: str) -> None:
    request.reply.headers.append(("Location", links.url(request.base, "nodes", node, "states")))


class RAIDController(Resource):
    """The target RAID configuration of a node."""

    @expose(since=versions.RAID, policy=policies.SET_RAID, body=schemas.RAID_CONFIG, status=204,
            unacceptable=True)
    def put(self, request: Request, node: str, body: JSONObject) -> None:
        """Set ``target_raid_config`` to the body, ``{"logical_disks": […]}``; ``{}`` removes it.

        Nothing is done with the node's disks: a step does that.

        :raises NodeNotFound: 404;  NotFound: 404, the node's RAID interface cannot create volumes
        :raises InvalidParameterValue: 400;  NodeLocked: 409;  no_valid_host, NoFreeWorker, RPCTimeout: 503
        """
        try:
            node_hardware.change_hardware(request, node, "set_target_raid_config", config=body)
        except UnsupportedDriverExtension as error:
            # As in Ironic: clients take 404 for "this node has no RAID".
            raise NotFound(str(error)) from error


class ConsoleController(Resource):
    """The console of a node."""

    @expose(policy=policies.GET_CONSOLE)
    def get_all(self, request: Request, node: str) -> JSONObject:
        """Return ``{"console_enabled": bool, "console_info": how to reach it}``; null while it is not started.

        :raises NodeNotFound: 404;  UnsupportedDriverExtension: 400;  no_valid_host, RPCTimeout: 503
        """
        with request.db.reader() as conn:
            enabled = node_access.find(request, conn, node).console_enabled
        return {"console_enabled": enabled,
                "console_info": node_hardware.read_hardware(request, node, "get_console") if enabled else None}

    @expose(policy=policies.SET_CONSOLE, body=schemas.CONSOLE, status=202)
    def put(self, request: Request, node: str, body: JSONObject) -> None:
        """Start or stop the console; the node's ``console_enabled`` or ``last_error`` shows the result.

        :raises NodeNotFound: 404;  UnsupportedDriverExtension: 400;  NodeLocked: 409
        :raises no_valid_host, NoFreeWorker, RPCTimeout: 503
        """
        node_hardware.change_hardware(request, node, "set_console", enabled=body["enabled"])
        request.reply.headers.append(("Location", links.url(request.base, "nodes", node, "states", "console")))


#: Argument of ``states/provision`` -> (targets that accept it, first minor version).
_ARGUMENTS: dict[str, tuple[frozenset[str], int]] = {
    "configdrive": (frozenset({"active", "rebuild"}), 1),
    "deploy_steps": (frozenset({"active", "rebuild"}), 69),
    "clean_steps": (frozenset({"clean"}), 15),
    "service_steps": (frozenset({"service"}), 87),
    "rescue_password": (frozenset({"rescue"}), 38),
    "disable_ramdisk": (frozenset({"clean", "service"}), 70),
}
#: Target -> argument that it requires.
_REQUIRED = {"clean": "clean_steps", "service": "service_steps", "rescue": "rescue_password"}


class ProvisionController(Resource):
    """``/v1/nodes/{node}/states/provision``."""

    @expose(policy=policies.SET_PROVISION_STATE, body=schemas.PROVISION, status=202)
    def put(self, request: Request, node: str, body: JSONObject) -> None:
        """Start the transition that ``target`` names; the reply has no body, the node's states show the progress.

        A repetition within ten minutes, with the same header ``Idempotency-Key``, changes nothing.

        :raises invalid_state: 400, not possible in the node's state;  Invalid: 400, in maintenance, or bad arguments
        :raises NotAcceptable: 406, a target or argument that the version does not support
        :raises NodeLocked: 409;  node_protected: 403;  NoFreeWorker, RPCTimeout: 503
        """
        arguments = {name: value for name, value in body.items() if value is not None}
        target = arguments.pop("target")
        _require(request, target, states.VERB_VERSIONS[target])
        verb = states.VERB_ALIASES.get(target, target)
        mark = request.mark("provision", body)
        with request.db.reader() as conn:
            row = node_access.find(request, conn, node)
            if request.was_accepted(conn, row.id, mark):
                _locate_states(request, node)
                return
        if "runbook" in arguments:
            arguments = runbooks.arguments(request, row, verb, arguments)
        states.after_verb(row, verb, requested=target)
        if verb == "abort" and row.provision_state == states.INSPECTWAIT:
            _require(request, target, versions.INSPECT_ABORT)
        _check_arguments(request, verb, arguments)
        request.context.mark = mark
        request.rpc.change_provision_state(
            request.context, row.uuid, verb, group=row.conductor_group, **arguments)
        _locate_states(request, node)


class PowerController(Resource):
    """``/v1/nodes/{node}/states/power``."""

    @expose(policy=policies.SET_POWER_STATE, body=schemas.POWER, status=202)
    def put(self, request: Request, node: str, body: JSONObject) -> None:
        """Start changing the power state to ``target``, within ``timeout`` seconds.

        A repetition within ten minutes, with the same header ``Idempotency-Key``, changes nothing.

        :raises NotAcceptable: 406, soft targets and timeouts need 1.27
        :raises Conflict: 409, the node is being cleaned;  NodeLocked: 409;  NoFreeWorker, RPCTimeout: 503
        """
        target, timeout = body["target"], body.get("timeout")
        if target in (states.SOFT_REBOOT, states.SOFT_POWER_OFF) or timeout is not None:
            _require(request, "timeout" if timeout is not None else target, versions.SOFT_POWER)
        mark = request.mark("power", body)
        with request.db.reader() as conn:
            row = node_access.find(request, conn, node)
            if request.was_accepted(conn, row.id, mark):
                _locate_states(request, node)
                return
        if row.reservation is not None:
            raise NodeLocked(node=row.uuid, host=row.reservation)
        if row.provision_state == states.CLEANWAIT:
            raise Conflict(f'The power state of node {row.uuid} cannot be changed while it is in state '
                           f'"{row.provision_state}".')
        request.context.mark = mark
        request.rpc.change_power_state(
            request.context, row.uuid, target, timeout=timeout, group=row.conductor_group)
        _locate_states(request, node)


class StatesController(Resource):
    """``/v1/nodes/{node}/states``."""

    below = {"provision": ProvisionController(), "power": PowerController(), "boot_mode": BootModeController(),
             "secure_boot": SecureBootController(), "raid": RAIDController(), "console": ConsoleController()}

    not_allowed_below = ("PUT",)

    @expose(policy=policies.GET_STATES)
    def get_all(self, request: Request, node: str) -> JSONObject:
        """Return the states of a node.

        :raises NodeNotFound: 404
        """
        with request.db.reader() as conn:
            return node_replies.show_states(request, node_access.find(request, conn, node))


def _require(request: Request, name: str, minor: int) -> None:
    if request.version < minor:
        raise versions.too_new(f'"{name}"', minor)


def _check_arguments(request: Request, verb: str, arguments: JSONObject) -> None:
    problems = []
    for name in arguments:
        targets, since = _ARGUMENTS[name]
        _require(request, name, since)
        if verb not in targets:
            problems.append(Problem(f"/{name}", f"can only be used with target {' or '.join(sorted(targets))}"))
    disallowed = frozenset(request.conf.api.disallow_deploy_steps)
    for name in ("deploy_steps", "clean_steps", "service_steps"):
        for index, step in enumerate(arguments.get(name, ())):
            if (step_name := f"{step['interface']}.{step['step']}") in disallowed:
                problems.append(Problem(f"/{name}/{index}/step",
                                        f"the step {step_name} is not allowed ([api]disallow_deploy_steps)"))
    needed = _REQUIRED.get(verb)
    if needed is not None and not arguments.get(needed):
        problems.append(Problem(f"/{needed}", f"is required with target {verb}"))
    if problems:
        raise InvalidParameterValue(problems=problems)
    patch.refuse_masks(arguments)
    if "configdrive" in arguments:
        if verb == "rebuild":
            _require(request, "configdrive", versions.REBUILD_CONFIGDRIVE)
        if isinstance(arguments["configdrive"], dict):
            _require(request, "configdrive", versions.CONFIGDRIVE_OBJECT)


class MaintenanceController(Resource):
    """The maintenance mode of a node."""

    @expose(policy=policies.SET_MAINTENANCE, body=schemas.MAINTENANCE, status=202)
    def put(self, request: Request, node: str, body: JSONObject | None) -> None:
        """Put the node into maintenance, with an optional ``reason``.

        :raises NodeNotFound: 404;  NodeLocked: 409
        """
        _set(request, node, node_actions.maintenance(True, (body or {}).get("reason")))

    @expose(policy=policies.CLEAR_MAINTENANCE, status=202)
    def delete(self, request: Request, node: str) -> None:
        """Take the node out of maintenance; its fault and the reason are cleared.

        :raises NodeNotFound: 404;  NodeLocked: 409
        """
        _set(request, node, node_actions.maintenance(False))


def _set(request: Request, node: str, values: JSONObject) -> None:
    def write(conn: sa.Connection) -> None:
        row = node_access.hold(request, conn, node)
        outbox.note_maintenance(conn, nodes.update(conn, row.id, values), row)

    request.db.write(write)
