"""Authentication: the context of a request, and the middleware that checks credentials.

============  ============================================================================================
noauth        every client is an administrator
http_basic    the users in ``[DEFAULT]http_basic_auth_user_file`` (htpasswd, bcrypt) are administrators
keystone      roles and project from the token, checked by keystonemiddleware
============  ============================================================================================

Routes that are declared public need no credentials; an unknown path needs them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from oslo_config import cfg
from oslo_log import log as logging

from ironic_rules import policy
from ironic_rules.api.own_names import is_loopback
from ironic_rules.conf import sources, validation
from ironic_rules.context import RequestContext
from ironic_rules.exceptions import ConfigurationError
from ironic_rules.policy import ADMIN_STRATEGIES
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
        from ironic_rules.api.middleware.basic_auth import BasicAuth
        checked: Any = BasicAuth(app, conf.http_basic_auth_user_file, conf.api.threads,
                                 conf.http_basic_max_checks)
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
    given = sources.given(conf).get("keystone_authtoken", {})
    for name in ("cafile", "certfile", "keyfile"):
        if name in given and given[name].value and not os.access(given[name].value, os.R_OK):
            raise ConfigurationError(f"[keystone_authtoken]{name}: {printable(given[name].value)} cannot be read: "
                                     "correct the path, or give the file to the user of this process.")
    return checked


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


def context(environ: WSGIEnvironment, strategy: str) -> RequestContext:
    """Return the context of a request whose credentials were checked."""
    request_id = environ.get("openstack.request_id")
    if strategy in ADMIN_STRATEGIES:
        return RequestContext(is_admin=True, roles=["admin"], request_id=request_id, system_scope="all",
                              user_id=environ.get("REMOTE_USER"))
    if environ.get("ironic_rules.public"):
        return RequestContext(is_public_api=True, request_id=request_id)
    return RequestContext.from_environ(environ, request_id=request_id)
