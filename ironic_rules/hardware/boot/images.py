"""URLs of kernels, ramdisks and ISO images, from ``driver_info``, the configuration, or ``instance_info``."""

from __future__ import annotations

import re
from typing import Any

from oslo_config import cfg

from ironic_rules.exceptions import InvalidParameterValue, Problem
from ironic_rules.models.task import Task

# They are written to boot scripts: no white space, quotes, backslashes, and nothing that starts an expansion ($, {).
_URL = re.compile(r"(?:https?|tftp|ftp|nfs)://[A-Za-z0-9.\[\]:_-]+(?:/[A-Za-z0-9._~:/?&%@+=,-]*)?")
MAX_LENGTH = 2048
_NO_URL = "must be a URL without white space, quotes and other characters that have a meaning in boot scripts"


def url(conf: cfg.ConfigOpts, task: Task, key: str) -> str:
    """Return the URL in ``driver_info``, else in ``[deploy]``, under ``key``.

    :raises InvalidParameterValue: there is none, or it has characters that are not allowed in a boot script
    """
    value = task.node.driver_info.get(key)
    where = f"driver_info/{key}"
    if value is None:
        value, where = conf.deploy[key], f"[deploy]{key}"
    if not value:
        raise InvalidParameterValue(f"Neither driver_info/{key} nor [deploy]{key} is set.")
    if not _is_url(value):
        raise InvalidParameterValue(f"{where} {_NO_URL}.")
    return str(value)


def of_instance(task: Task, key: str) -> str:
    """Return the URL in ``instance_info`` under ``key``.

    :raises InvalidParameterValue: there is none, or it has characters that are not allowed in a boot script
    """
    value = task.node.instance_info.get(key)
    if not _is_url(value):
        raise InvalidParameterValue(problems=[
            Problem(f"/instance_info/{key}", "is missing" if value is None else _NO_URL)])
    return str(value)


def refuse_with_iso(task: Task) -> None:
    """Refuse what an instance that boots an ISO image cannot have besides it.

    :raises InvalidParameterValue: with every key of ``instance_info``
    """
    if problems := [Problem(f"/instance_info/{key}", "cannot be used together with boot_iso")
                    for key in ("kernel", "ramdisk", "kernel_append_params") if task.node.instance_info.get(key)]:
        raise InvalidParameterValue(problems=problems)


def _is_url(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= MAX_LENGTH and _URL.fullmatch(value) is not None
