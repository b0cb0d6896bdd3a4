"""Who asks: the context of a request, and the middleware that checks credentials.

============  ============================================================================================
noauth        every request is an administrator's
http_basic    an administrator with a line in ``[DEFAULT]http_basic_auth_user_file`` (htpasswd, bcrypt)
keystone      roles and project from the token, checked by keystonemiddleware
============  ============================================================================================

Routes that are declared public pass without credentials; an unknown path does not.
"""

from __future__ import annotations

from typing import Any

from oslo_config import cfg

from ironic_rules.context import RequestContext
from ironic_rules.policy import ADMIN_STRATEGIES


def middleware(app: Any, conf: cfg.ConfigOpts) -> Any:
    """Return ``app`` behind the credentials check that ``[DEFAULT]auth_strategy`` asks for.

    The libraries are imported here because most installations need none of them.
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


def context(environ: dict[str, Any], strategy: str) -> RequestContext:
    """Return the context of a request whose credentials were checked."""
    request_id = environ.get("openstack.request_id")
    if strategy in ADMIN_STRATEGIES:
        return RequestContext(is_admin=True, roles=["admin"], request_id=request_id, system_scope="all",
                              user_id=environ.get("REMOTE_USER"))
    if environ.get("ironic_rules.public"):
        return RequestContext(is_public_api=True, request_id=request_id)
    return RequestContext.from_environ(environ, request_id=request_id)
