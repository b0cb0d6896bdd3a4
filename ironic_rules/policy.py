"""The enforcer: oslo.policy with this service's defaults and the operator's policy file."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from oslo_config import cfg
from oslo_log import log as logging

from ironic_rules import conf as service_conf
from ironic_rules import policies, policy_files
from ironic_rules.context import RequestContext
from ironic_rules.exceptions import ConfigurationError, Forbidden, forbidden_to_roles
from ironic_rules.text import enumeration, printable

LOG = logging.getLogger(__name__)

#: Maximum number of rules without effect that are logged.
_MAX_WARNINGS = 50

_lock = threading.Lock()
_enforcers: dict[int, _Enforcers] = {}


class _Enforcers:
    """The enforcers of one configuration: a new one replaces the last when the policy files have changed.

    oslo.policy's own way to read files again would empty its rules first, and not fill them if the new file is wrong.

    :raises ConfigurationError: as :func:`load`
    """

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        from oslo_policy import policy

        policy.Enforcer(conf)  # registers the library's options
        self.conf = conf
        self._reading = threading.Lock()
        self._had_file = False
        self._read()

    def current(self) -> Any:
        """Return the enforcer for the files as they are, or as they were before they became unusable."""
        # While one request reads the files, others continue with the last enforcer.
        if policy_files.stamp(self.conf) != self._stamp and self._reading.acquire(blocking=False):
            try:
                self._read()
                LOG.info("The policy files have changed, and were read again")
            except ConfigurationError as exc:
                LOG.error("The policy files have changed and cannot be used; the rules of before remain in effect: %s",
                          exc)
            finally:
                self._reading.release()
        return self._enforcer

    def _read(self) -> None:
        # Before the files: one that is being written is read once more.
        self._stamp = policy_files.stamp(self.conf)
        # One that disappears may be in the middle of being replaced; without its rules, what it closes would be open.
        self._enforcer, warnings = load(self.conf, required=self._had_file)
        self._had_file = policy_files.main_file(self.conf) is not None
        for line in warnings[:_MAX_WARNINGS]:
            LOG.warning("%s", line)
        if len(warnings) > _MAX_WARNINGS:
            LOG.warning("... and %d more; ironic-rules-status upgrade check lists all", len(warnings) - _MAX_WARNINGS)


def _make(conf: cfg.ConfigOpts) -> Any:
    """Return an enforcer that has the defaults."""
    from oslo_policy import policy

    enforcer = policy.Enforcer(conf)
    enforcer.register_defaults(policies.list_rules())
    return enforcer


def load(conf: cfg.ConfigOpts, *, required: bool = False) -> tuple[Any, list[str]]:
    """Return an ``oslo_policy.policy.Enforcer`` with the rules of the policy files, and lines about those without use.

    :param required: as of :func:`policy_files.read`
    :raises ConfigurationError: the files cannot be used
    """
    from oslo_policy import policy

    enforcer = _make(conf)
    overrides = policy_files.read(conf, required=required)
    rules = {name: default.check for name, default in enforcer.registered_rules.items()}
    rules |= policy.Rules.from_dict(overrides.checks)
    policy_files.refuse(overrides, rules)
    enforcer.set_rules(rules)  # after which it reads no files
    return enforcer, policy_files.warnings(overrides, rules, enforcer.registered_rules, enforcer.default_rule)


def enforcer(conf: cfg.ConfigOpts) -> Any:
    """Return the ``oslo_policy.policy.Enforcer`` for ``conf``; the library is loaded, and files are read, on first use.

    :raises ConfigurationError: on first use only: the files cannot be used
    """
    with _lock:
        entry = _enforcers.get(id(conf))
        if entry is None or entry.conf is not conf:
            _enforcers[id(conf)] = entry = _Enforcers(conf)
    return entry.current()


def get_enforcer() -> Any:
    """Return an enforcer for the commands of oslo.policy, which pass no configuration; it reads files by itself."""
    conf = cfg.ConfigOpts()
    service_conf.register_opts(conf)
    conf([], project="ironic-rules")
    return _make(conf)


def is_enforced(conf: cfg.ConfigOpts) -> bool:
    """Return whether users have roles; otherwise everyone who is authenticated is an administrator."""
    return conf.auth_strategy == "keystone" or (
        conf.auth_strategy == "http_basic" and bool(conf.http_basic_auth_group_file))


def forbidden(conf: cfg.ConfigOpts, name: str, context: RequestContext) -> Forbidden:
    """Return the error for a caller who does not pass a policy: with the roles, where these are in a file here."""
    if conf.auth_strategy != "http_basic":
        return Forbidden(policy=name)
    return forbidden_to_roles(policy=name, user=printable(context.user_id or "", 64),
                              roles=enumeration(sorted(context.roles)))


def allows(conf: cfg.ConfigOpts, name: str, context: RequestContext, of: Mapping[str, str] | None = None) -> bool:
    """Return whether ``context`` passes the policy ``name``; arguments as those of :func:`authorize`."""
    try:
        authorize(conf, name, context, of)
    except Forbidden:
        return False
    return True


def authorize(conf: cfg.ConfigOpts, name: str, context: RequestContext, of: Mapping[str, str] | None = None) -> None:
    """Check that ``context`` passes the policy ``name``.

    If everyone who is authenticated is an administrator, nothing is enforced and no policy file is read.

    :param of: whose the object is: ``node.owner``, ``node.lessee`` or ``runbook.owner`` -> id of a project
    :raises Forbidden: 403, as :func:`forbidden`
    """
    if not is_enforced(conf):
        return
    target = dict(of or {})
    if conf.rbac_service_role_elevated_access:
        # A check that needs a value which is not there is false.
        target["config.service_project_name"] = conf.rbac_service_project_name
    if not enforcer(conf).enforce(name, target, context.to_policy_values()):
        raise forbidden(conf, name, context)
