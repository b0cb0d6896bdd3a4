"""URLs of kernels, ramdisks and ISO images, from ``driver_info``, the configuration, or ``instance_info``."""

from __future__ import annotations

import re
from typing import Any

from oslo_config import cfg

from ironic_rules.exceptions import InvalidParameterValue, Problem
from ironic_rules.hardware import destinations
from ironic_rules.models import urls
from ironic_rules.models.documents import JSON
from ironic_rules.models.task import Task

SCHEMES = (*urls.HTTP, "tftp", "ftp", "nfs")
# They are written to boot scripts: no white space, quotes, backslashes, and nothing that starts an expansion ($, {).
_PATH = re.compile(r"(?:/[A-Za-z0-9._~:/?&%@+=,-]*)?")
MAX_LENGTH = 2048
_NO_URL = "must be a URL without white space, quotes and other characters that have a meaning in boot scripts"


def url(conf: cfg.ConfigOpts, task: Task, key: str) -> str:
    """Return the URL in ``driver_info``, else in ``[deploy]``, under ``key``.

    :raises InvalidParameterValue: there is none, it has characters that are not allowed in a boot script, or that in
        ``driver_info`` leads into a denied network
    """
    value = task.node.driver_info.get(key)
    if value is not None:
        return _checked(conf, value, f"/driver_info/{key}")
    if not conf.deploy[key]:
        raise InvalidParameterValue(f"Neither driver_info/{key} nor [deploy]{key} is set.")
    # The operator's own URL may lead anywhere.
    if (found := _parsed(conf.deploy[key])) is None:
        raise InvalidParameterValue(f"[deploy]{key} {_NO_URL}.")
    return found


def of_instance(conf: cfg.ConfigOpts, task: Task, key: str) -> str:
    """Return the URL in ``instance_info`` under ``key``.

    :raises InvalidParameterValue: there is none, it has characters that are not allowed in a boot script, or it leads
        into a denied network
    """
    value, where = task.node.instance_info.get(key), f"/instance_info/{key}"
    if value is None:
        raise InvalidParameterValue(problems=[Problem(where, "is missing")])
    return _checked(conf, value, where)


def refuse_with_iso(task: Task) -> None:
    """Refuse what an instance that boots an ISO image cannot have besides it.

    :raises InvalidParameterValue: with every key of ``instance_info``
    """
    if problems := [Problem(f"/instance_info/{key}", "cannot be used together with boot_iso")
                    for key in ("kernel", "ramdisk", "kernel_append_params") if task.node.instance_info.get(key)]:
        raise InvalidParameterValue(problems=problems)


def _checked(conf: cfg.ConfigOpts, value: JSON, where: str) -> str:
    found = _parsed(value)
    if found is None:
        raise InvalidParameterValue(problems=[Problem(where, _NO_URL)])
    destinations.check(conf, {where: found}, SCHEMES)
    return found


def _parsed(value: Any) -> str | None:
    """Return the URL with its scheme and host in their usual form; None if it does not belong in a boot script."""
    try:
        url = urls.parse(value, SCHEMES)
    except ValueError:
        return None
    return str(url) if url.user is None and _PATH.fullmatch(url.rest) and len(value) <= MAX_LENGTH else None
