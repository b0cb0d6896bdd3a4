"""Authentication and authorization: the context of a request, and the nodes that callers in a project may use.

============  ============================================================================================
noauth        every client is an administrator
http_basic    the users in ``[DEFAULT]http_basic_auth_user_file`` (htpasswd, bcrypt) are administrators, or have
              the roles of ``[DEFAULT]http_basic_auth_group_file``
keystone      roles and project from the token, checked by keystonemiddleware
============  ============================================================================================

Routes that are declared public need no credentials; an unknown path needs them.

``expose`` checks the policy of a route without a node first: a caller who passes it is not confined. A caller in a
project who does not pass is confined: lists have the project as a filter, and each node or runbook that the request
names is checked when it has been read, before anything else is done with it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from oslo_config import cfg
from oslo_log import log as logging

from ironic_rules import policies, policy
from ironic_rules.api.other_sites import is_loopback
from ironic_rules.conf import sources, validation
from ironic_rules.context import RequestContext
from ironic_rules.exceptions import ConfigurationError, Forbidden, NotFound, identity_service_unverified
from ironic_rules.models.documents import JSONObject
from ironic_rules.policies import nodes, templates
from ironic_rules.text import enumeration, printable

LOG = logging.getLogger(__name__)
_ANY_NAME = ("By DNS rebinding, so is every web page in a browser of such a client: set [api]allowed_hosts to the "
             "names and addresses that clients use.")


def middleware(app: WSGIApplication, conf: cfg.ConfigOpts) -> WSGIApplication:
    """Return ``app`` behind the authentication middleware that ``[DEFAULT]auth_strategy`` selects.

    The libraries are imported here because most installations need none of them.

    :raises ConfigurationError: the user file, the policy files or the identity service cannot be used
    """
    if conf.auth_strategy == "noauth":
        return app
    if conf.auth_strategy == "http_basic":
        from ironic_rules.api.basic_auth import BasicAuth
        if policy.is_enforced(conf):
            policy.enforcer(conf)
        checked: Any = BasicAuth(app, conf.http_basic_auth_user_file, conf.api.threads,
                                 conf.http_basic_max_checks, groups=conf.http_basic_auth_group_file)
    else:
        policy.enforcer(conf)
        checked = _keystone(app, conf)

    def authenticate(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        controller = environ["ironic_rules.found"].controller
        public = controller is not None and controller.route.public
        environ["ironic_rules.public"] = public
        return (app if public else checked)(environ, start_response)

    return authenticate


def _keystone(app: WSGIApplication, conf: cfg.ConfigOpts) -> WSGIApplication:
    """Return ``app`` behind keystonemiddleware.

    :raises ConfigurationError: ``[keystone_authtoken]`` does not have what the identity service needs
    """
    from keystoneauth1 import exceptions as keystone_errors
    from keystonemiddleware import auth_token

    try:
        checked = auth_token.AuthProtocol(app, {"oslo_config_config": conf})
    except cfg.NoSuchOptError as exc:
        raise ConfigurationError(validation.unresolved(conf, "keystone_authtoken", exc)) from exc
    except keystone_errors.NoMatchingPlugin as exc:
        raise ConfigurationError(f"[keystone_authtoken]auth_type: {printable(exc)}; as a rule, password or "
                                 "v3applicationcredential is required.") from exc
    except keystone_errors.MissingRequiredOptions as exc:
        missing = enumeration([option.dest for option in exc.options])
        raise ConfigurationError(f"[keystone_authtoken]auth_type: with this plug-in, these options of the group are "
                                 f"required: {missing}.") from exc
    # The middleware has registered its options. Without a plug-in it starts nevertheless.
    options = conf.keystone_authtoken if "keystone_authtoken" in conf else None
    if options is not None and not (options.auth_type or options.auth_section):
        raise ConfigurationError("[keystone_authtoken]auth_type is not set: with auth_strategy = keystone, no token "
                                 "could be checked. Set it and the options of that plug-in, or another auth_strategy.")
    settings = sources.given(conf).get("keystone_authtoken", {})
    for name in ("cafile", "certfile", "keyfile"):
        if name in settings and settings[name].value and not os.access(settings[name].value, os.R_OK):
            raise ConfigurationError(f"[keystone_authtoken]{name}: {printable(settings[name].value)} cannot be read: "
                                     "correct the path, or give the file to the user of this process.")

    def ask(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        try:
            return checked(environ, start_response)  # type: ignore[no-any-return]
        except keystone_errors.SSLError as exc:  # the middleware replies 503 itself to all other failures to connect
            LOG.error("The certificate of the identity service is not accepted: [keystone_authtoken]cafile must have "
                      "its authority: %s", printable(exc))
            raise identity_service_unverified() from None

    return ask


def warn_if_open(conf: cfg.ConfigOpts) -> str:
    """Log a warning if any client that can reach ``[api]host_ip`` from another machine is an administrator.

    :returns: the warning, to be shown where the log is not seen; empty if there is none
    """
    host = conf.api.host_ip
    if conf.auth_strategy != "noauth" or is_loopback(host):
        return ""
    text = (f"[DEFAULT]auth_strategy is noauth and the API listens on {host}: every client that can reach its port, "
            "from any machine, is an administrator. Use http_basic or keystone, or set [api]host_ip to 127.0.0.1.")
    if not conf.api.allowed_hosts:
        text += f" {_ANY_NAME}"
    LOG.warning("%s", text)
    return text


def warn_if_open_to_pages(conf: cfg.ConfigOpts) -> None:
    """Log a warning if web pages can use the service by DNS rebinding, where its address is not known."""
    if conf.auth_strategy == "noauth" and not conf.api.allowed_hosts:
        LOG.warning("[DEFAULT]auth_strategy is noauth: every client that can reach the API is an administrator. %s",
                    _ANY_NAME)


def context(environ: WSGIEnvironment, conf: cfg.ConfigOpts) -> RequestContext:
    """Return the context of a request whose credentials were checked."""
    request_id = environ.get("openstack.request_id")
    if not policy.is_enforced(conf):
        return RequestContext(is_admin=True, roles=["admin"], request_id=request_id, system_scope="all",
                              user_id=environ.get("REMOTE_USER"))
    if environ.get("ironic_rules.public"):
        return RequestContext(is_public_api=True, request_id=request_id)
    if conf.auth_strategy == "http_basic":
        roles: list[str] = environ["ironic_rules.roles"]
        return RequestContext(is_admin="admin" in roles, roles=roles, request_id=request_id, system_scope="all",
                              user_id=environ["REMOTE_USER"])
    return RequestContext.from_environ(environ, request_id=request_id)


#: Text in replies in the place of a value that the caller may not see.
HIDDEN = "** hidden: requires {policy} **"
_POLICIES = policies.by_name()
#: Field with the text of the error if a conductor has put the node into maintenance, for its fault.
_REASON = "maintenance_reason"
_MAY_BE_HIDDEN = {*nodes.GET_FIELD, _REASON}


def of_request(conf: cfg.ConfigOpts, name: str, context: RequestContext) -> Confinement | None:
    """Check the policy of a route; return what the request is confined to, None: nothing.

    :raises Forbidden: 403
    """
    entry = _POLICIES[name]
    try:
        policy.authorize(conf, entry.everywhere or name, context)
    except Forbidden:
        if not entry.of or not context.project_id:
            raise policy.forbidden(conf, name, context) from None
    else:
        return None
    own = entry.own or name
    if entry.of == "project":
        policy.authorize(conf, own, context)
    return Confinement(conf, context, own)


def target(row: object) -> dict[str, str]:
    """Return what policies compare with the caller's project. None would be equal to the project of a token without."""
    return {f"node.{name}": value for name in ("owner", "lessee") if (value := getattr(row, name)) is not None}


class Confinement:
    """The confinement of a request: the project of its caller, and the policy that each node must pass.

    :ivar is_decided: whether anything was checked, or a list filtered. A reply without is withheld by ``expose``
    """

    def __init__(self, conf: cfg.ConfigOpts, context: RequestContext, name: str) -> None:
        self._conf, self._context, self._policy = conf, context, name
        self.project = str(context.project_id)
        self.is_decided = False
        #: owner and lessee -> the fields to hide: a page can have a thousand nodes, but of few projects
        self._hidden: dict[tuple[str | None, str | None], list[str]] = {}

    def check_node(self, row: object, missing: NotFound, names: tuple[str, ...] = ()) -> None:
        """Check the policies ``names`` (none: that of the route) for a node.

        :raises NotFound: 404, ``missing``: the caller may not see the node
        :raises Forbidden: 403
        """
        self.is_decided = True
        self._check(nodes.GET, target(row), missing)
        for name in names or (self._policy,):
            policy.authorize(self._conf, name, self._context, target(row))

    def check_runbook(self, row: Any, missing: NotFound) -> None:
        """Check the policy of the route for a runbook; errors as those of :meth:`check_node`."""
        self.is_decided = True
        facts = {} if row.owner is None else {"runbook.owner": row.owner}
        if not row.public:
            self._check(templates.RUNBOOK_GET, facts, missing)
        elif self._policy == templates.RUNBOOK_GET:
            return
        policy.authorize(self._conf, self._policy, self._context, facts)

    def confine(self, filters: JSONObject) -> None:
        """Add the filter ``project`` to those of a list.

        :raises Forbidden: 403, the request names another project, or a group of failures, which tells errors
        """
        self.is_decided = True
        if filters.setdefault("project", self.project) != self.project or "failure" in filters:
            raise Forbidden(policy=_POLICIES[self._policy].everywhere or self._policy)

    def owner(self, requested: str | None) -> str:
        """Return the owner of a new object: the caller's project.

        :raises Forbidden: 403, the request names another one
        """
        self.is_decided = True
        if requested not in (None, self.project):
            raise Forbidden(policy=_POLICIES[self._policy].everywhere or nodes.CREATE)
        return self.project

    def hide(self, row: Any, shown: JSONObject) -> None:
        """Hide the fields of a node that the caller may not see."""
        if not _MAY_BE_HIDDEN & shown.keys():
            return
        whose = (row.owner, row.lessee)
        if whose not in self._hidden:
            self._hidden[whose] = [name for name, rule in nodes.GET_FIELD.items()
                                   if not policy.allows(self._conf, rule, self._context, target(row))]
        for name in self._hidden[whose]:
            if name in shown:
                text = HIDDEN.format(policy=nodes.GET_FIELD[name])
                shown[name] = {"content": text} if name in ("driver_info", "driver_internal_info") else text
        if "last_error" in self._hidden[whose] and row.fault is not None and shown.get(_REASON) is not None:
            shown[_REASON] = HIDDEN.format(policy=nodes.GET_FIELD["last_error"])

    def _check(self, name: str, of: Mapping[str, str], missing: NotFound) -> None:
        if not policy.allows(self._conf, name, self._context, of):
            raise missing
