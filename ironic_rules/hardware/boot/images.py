"""URLs of kernels, ramdisks and ISO images, from ``driver_info`` or the configuration."""

from __future__ import annotations

import re

from oslo_config import cfg

from ironic_rules.exceptions import InvalidParameterValue
from ironic_rules.models.task import Task

# They are written to boot scripts: no white space, quotes, backslashes, and nothing that starts an expansion ($, {).
_URL = re.compile(r"(?:https?|tftp|ftp|nfs)://[A-Za-z0-9.\[\]:_-]+(?:/[A-Za-z0-9._~:/?&%@+=,-]*)?")
MAX_LENGTH = 2048


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
    if not isinstance(value, str) or len(value) > MAX_LENGTH or not _URL.fullmatch(value):
        raise InvalidParameterValue(f"{where} must be a URL without white space, quotes and other characters that have "
                                    "a meaning in boot scripts.")
    return value
