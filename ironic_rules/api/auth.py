"""Who asks: the context of a request, and the middleware that checks credentials.

============  ============================================================================================
noauth        every request is an administrator's
http_basic    an administrator with a line in ``[DEFAULT]http_basic_auth_user_file`` (htpasswd, bcrypt)
keystone      roles and project from the token, checked by keystonemiddleware
============  ============================================================================================

Routes that are declared public pass without credentials; an unknown path does not.
"""

from __future__ import annotations

import ipaddress
from typing import Any

from oslo_config import cfg
from oslo_log import log as logging

from ironic_rules.context import RequestContext
from ironic_rules.policy import ADMIN_STRATEGIES

LOG = logging.getLogger(__name__)


def middleware(app: Any, conf: cfg.ConfigOpts) -> Any:
    """Return ``app`` behind the credentials check that ``[DEFAULT]auth_strategy`` asks for.

    The libraries are imported here because most installations need none of them.

    :raises ConfigurationError: the file of users cannot be read
    """
    if conf.auth_strategy == "noauth":
        return app
    if conf.auth_strategy == "http_basic":
        from ironic_rules.api.middleware.basic_auth import BasicAuth
        checked: Any = BasicAuth(app, conf.http_basic_auth_user_file)
    else:
        from keystonemiddleware import auth_token
        checked = auth_token.AuthProtocol(app, {"oslo_config_config": conf})

    def authenticate(environ: dict[str, Any], start_response: Any) -> Any:
        controller = environ["ironic_rules.found"].controller
        public = controller is not None and controller.route.public
        environ["ironic_rules.public"] = public
        return (app if public else checked)(environ, start_response)

    return authenticate


def warn_if_open(conf: cfg.ConfigOpts) -> str:
    """Warn in the log if whoever reaches ``[api]host_ip`` from another machine is an administrator.

    :returns: the warning, for who does not see the log; empty if there is none
    """
    host = conf.api.host_ip
    if conf.auth_strategy != "noauth" or _is_loopback(host):
        return ""
    text = (f"[DEFAULT]auth_strategy is noauth and the API listens on {host}: whoever reaches its port, from any "
            "machine, is an administrator. Choose http_basic or keystone, or let [api]host_ip be 127.0.0.1.")
    LOG.warning("%s", text)
    return text


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def context(environ: dict[str, Any], strategy: str) -> RequestContext:
    """Return the context of a request whose credentials were checked."""
    request_id = environ.get("openstack.request_id")
    if strategy in ADMIN_STRATEGIES:
        return RequestContext(is_admin=True, roles=["admin"], request_id=request_id, system_scope="all",
                              user_id=environ.get("REMOTE_USER"))
    if environ.get("ironic_rules.public"):
        return RequestContext(is_public_api=True, request_id=request_id)
    return RequestContext.from_environ(environ, request_id=request_id)
