"""Which values are secret, determined by their key, and how they are hidden.

A key is secret if ``oslo_utils.strutils.mask_dict_password`` masks it (``*password*``, ``*token*``, ``*secret*``,
``*private_key*``, ``configdrive``, ...), if it is one of the BMC keys that oslo does not know, or ``image_url``, which
may be a temporary URL: anyone who has it can read the image.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Any

from oslo_utils import strutils

MASK = "******"
_MORE = re.compile(r"auth_token|agent_secret_token|ipmi_hex_kg_key|snmp_.*_key|.*private_key|configdrive|image_url",
                   re.DOTALL)


def is_secret_key(name: object) -> bool:
    """Return whether a value under the key ``name`` is a secret."""
    return isinstance(name, str) and _is_secret(name)


# Inventories repeat the same few hundred keys; oslo's search over its word list costs 5 us for each of them.
@functools.lru_cache(maxsize=4096)
def _is_secret(name: str) -> bool:
    if _MORE.fullmatch(name.lower()) is not None:
        return True
    return strutils.mask_dict_password({name: 0}, secret=MASK)[name] == MASK


def mask(value: Any) -> Any:
    """Return a copy of JSON-like data in which every secret, at any depth, is replaced by ``******``.

    A secret that is null remains null: there is nothing to hide, and rules can see that it is not set.
    """
    if isinstance(value, Mapping):
        return {
            key: (MASK if item is not None and is_secret_key(key) else mask(item))
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [mask(item) for item in value]
    return value
