"""What a ramdisk that this service boots is told on its kernel command line."""

from __future__ import annotations

import re
from collections.abc import Mapping

from oslo_config import cfg

from ironic_rules.exceptions import InvalidParameterValue

_CALLBACK = "/v1/continue_inspection"
# These end up in boot scripts: what could end a line or a quoted word there must never come so far.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_VALUE = re.compile(r"[A-Za-z0-9_.,:;/?&%@+~=\[\]-]*")


def inspection_parameters(conf: cfg.ConfigOpts) -> dict[str, str]:
    """Return the kernel parameters of an inspection: name to value; a flag has an empty value.

    :raises InvalidParameterValue: the API's address is not configured, or ``extra_kernel_params`` is malformed
    """
    root = (conf.inspector.callback_endpoint_override or conf.api.public_endpoint or "").rstrip("/")
    if not root:
        raise InvalidParameterValue("A managed boot has to tell the ramdisk where the API is: set "
                                    "[inspector]callback_endpoint_override or [api]public_endpoint.")
    parameters = {"ipa-inspection-callback-url": root + _CALLBACK, "ipa-api-url": root}
    for word in conf.inspector.extra_kernel_params.split():
        name, _, value = word.partition("=")
        parameters[name] = value
    check(parameters)
    return parameters


def check(parameters: Mapping[str, str]) -> None:
    """Refuse what could be read as something else than a kernel parameter, in whatever carries it to the ramdisk.

    :raises InvalidParameterValue: a name or a value has characters that a boot script can not carry
    """
    for name, value in parameters.items():
        if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
            raise InvalidParameterValue(f"The kernel parameter '{name}' of the configuration has characters that "
                                        "a boot script can not carry.")


def command_line(parameters: Mapping[str, str]) -> str:
    """Return ``parameters`` as they stand on a kernel command line."""
    return " ".join(f"{name}={value}" if value else name for name, value in parameters.items())
