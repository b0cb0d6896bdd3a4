"""The enforcer: oslo.policy with this service's defaults and the operator's policy file."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from oslo_config import cfg

from ironic_rules import conf as service_conf
from ironic_rules import policies
from ironic_rules.context import RequestContext
from ironic_rules.exceptions import Forbidden

#: Values of ``auth_strategy`` with which every authenticated user is an administrator.
ADMIN_STRATEGIES = frozenset({"noauth", "http_basic"})

_lock = threading.Lock()
_enforcers: dict[int, tuple[cfg.ConfigOpts, Any]] = {}


def enforcer(conf: cfg.ConfigOpts) -> Any:
    """Return the ``oslo_policy.policy.Enforcer`` for ``conf``, created (and the library loaded) on first use."""
    from oslo_policy import policy

    with _lock:
        entry = _enforcers.get(id(conf))
        if entry is None or entry[0] is not conf:
            made = policy.Enforcer(conf)
            made.register_defaults(policies.list_rules())
            _enforcers[id(conf)] = entry = (conf, made)
    return entry[1]


def get_enforcer() -> Any:
    """Return an enforcer for the commands of oslo.policy, which pass no configuration."""
    conf = cfg.ConfigOpts()
    service_conf.register_opts(conf)
    conf([], project="ironic-rules")
    return enforcer(conf)


def allows(conf: cfg.ConfigOpts, name: str, context: RequestContext, of: Mapping[str, str] | None = None) -> bool:
    """Return whether ``context`` passes the policy ``name``; arguments as those of :func:`authorize`."""
    try:
        authorize(conf, name, context, of)
    except Forbidden:
        return False
    return True


def authorize(conf: cfg.ConfigOpts, name: str, context: RequestContext, of: Mapping[str, str] | None = None) -> None:
    """Check that ``context`` passes the policy ``name``.

    If every authenticated user is an administrator, nothing is enforced and no policy file is read.

    :param of: whose the object is: ``node.owner``, ``node.lessee`` or ``runbook.owner`` -> id of a project
    :raises Forbidden: 403, with the name of the policy only
    """
    if conf.auth_strategy in ADMIN_STRATEGIES:
        return
    target = dict(of or {})
    if conf.rbac_service_role_elevated_access:
        # A check that needs a value which is not there is false.
        target["config.service_project_name"] = conf.rbac_service_project_name
    if not enforcer(conf).enforce(name, target, context.to_policy_values()):
        raise Forbidden(policy=name)
