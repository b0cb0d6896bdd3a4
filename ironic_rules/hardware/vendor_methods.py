"""Vendor methods: what an interface of the kind ``vendor`` does on request (``/v1/nodes/{node}/vendor_passthru``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from ironic_rules.exceptions import InvalidParameterValue
from ironic_rules.models import documents
from ironic_rules.models.documents import JSON, JSONObject
from ironic_rules.steps import declaration
from ironic_rules.text import enumeration, printable

Method = TypeVar("Method", bound=Callable[..., Any])

_MARK = "_vendor_method"
HTTP_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
#: Without it, the schema of arguments is that of a method without any.
_NO_ARGUMENTS: Mapping[str, JSON] = {"type": "object", "additionalProperties": False, "properties": {}}


@dataclass(frozen=True, slots=True)
class VendorMethod:
    """The declaration of a method.

    :ivar schema: the JSON schema of its arguments, an object
    :ivar locks: it changes something, and runs under the node's lock
    """

    http_methods: tuple[str, ...]
    description: str
    schema: Mapping[str, JSON]
    locks: bool

    def to_wire(self) -> JSONObject:
        """Return the JSON object in the list of methods."""
        return {"http_methods": list(self.http_methods), "description": self.description, "async": False,
                "attach": False, "require_exclusive_lock": self.locks}


def vendor_method(*http_methods: str, description: str, schema: Mapping[str, Any] = _NO_ARGUMENTS,
                  locks: bool = True) -> Callable[[Method], Method]:
    """Declare that a method ``(self, task, **arguments)`` of a vendor interface can be requested; it returns JSON.

    :raises TypeError: the declaration is wrong; raised when its module is imported
    """
    if not http_methods or not set(http_methods) <= set(HTTP_METHODS):
        raise TypeError(f"the HTTP methods must be some of {', '.join(HTTP_METHODS)}")
    declaration.check_schema(schema)

    def declare(method: Method) -> Method:
        setattr(method, _MARK, VendorMethod(http_methods, description, schema, locks))
        return method

    return declare


def methods_of(cls: type) -> Mapping[str, VendorMethod]:
    """Return the vendor methods of an interface's class by their names."""
    return {name: declared for name in dir(cls) if (declared := getattr(getattr(cls, name), _MARK, None)) is not None}


def find(cls: type[Any], method: str, http_method: str, args: Mapping[str, JSON]) -> VendorMethod:
    """Return the vendor method that a request names, if it accepts the request's arguments.

    :raises InvalidParameterValue: there is none, or not with that HTTP method, or the arguments are wrong
    """
    methods = methods_of(cls)
    if method not in methods:
        valid = enumeration(sorted(methods)) if methods else "none"
        raise InvalidParameterValue(f"method: the node has no vendor method {printable(method)}. Valid: {valid}.")
    chosen = methods[method]
    if http_method not in chosen.http_methods:
        raise InvalidParameterValue(f"The vendor method {method} is for {' and '.join(chosen.http_methods)}, not for "
                                    f"{http_method}.")
    if wrong := declaration.argument_problems(chosen.schema, args):
        raise InvalidParameterValue("; ".join(f"{documents.format_pointer(place)}: {text}" if place else text
                                              for place, text in wrong))
    return chosen
