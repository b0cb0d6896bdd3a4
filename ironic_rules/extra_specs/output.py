"""Output of extra specs and image properties: JSON-like data, reStructuredText, and metadata definitions.

Users of the image service choose keys and values from its metadata definitions
(https://docs.openstack.org/glance/latest/user/metadefs-concepts.html); ``glance-manage db_load_metadefs`` loads them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from ironic_rules.extra_specs.registry import Registered, SpecRegistry
from ironic_rules.extra_specs.validators import DEPRECATED, REMOVED
from ironic_rules.models.documents import JSONObject

_VALUE_KEYS = ("min", "max", "enum", "pattern", "format")


def describe(registered: Registered) -> JSONObject:
    """Return the description of one extra spec or image property.

    Names of libraries that a parameter can be, such as the standard traits, are left out: ``enum`` of the parameter is
    true where there are some.
    """
    validator = registered.validator
    return {
        "name": validator.name,
        "namespace": validator.namespace,
        "description": text_of(validator.description),
        "status": validator.status,
        "removed": validator.removed or None,
        "replaced_by": validator.replaced_by or None,
        "advice": validator.advice or None,
        "value": value_of(registered),
        "parameters": [
            {"name": parameter.name, "description": text_of(parameter.description), "pattern": parameter.pattern,
             "enum": parameter.choices is not None}
            for parameter in registered.template.parameters],
        "drivers": [str(driver) for driver in validator.drivers],
        "requires": [str(name) for name in validator.requires],
        "see_also": validator.see_also or None,
        "origin": registered.origin or None,
    }


def value_of(registered: Registered) -> JSONObject:
    """Return the requirements of an extra spec's value: its type, its description, and its limits if it has any."""
    described = registered.validator.value
    value: JSONObject = {"type": described["type"].__name__, "description": text_of(described.get("description"))}
    for key in _VALUE_KEYS:
        if described.get(key) is not None:
            value[key] = list(described[key]) if key == "enum" else described[key]
    if described.get("aliases") is not None:
        value["aliases"] = dict(described["aliases"])
    return value


def matching(items: Iterable[Registered], namespace: str | None = None, type_: str | None = None,
             status: str | None = None, text: str | None = None) -> list[Registered]:
    """Return those of a namespace, with values of a type, with a status, with a text in their name or description.

    :param text: in upper or lower case
    """
    folded_text = text.casefold() if text else ""
    return [
        item for item in items
        if (namespace is None or item.validator.namespace == namespace)
        and (type_ is None or item.validator.value["type"].__name__ == type_)
        and (status is None or item.validator.status == status)
        and (not folded_text or folded_text in item.validator.name.casefold()
             or folded_text in item.validator.description.casefold())]


def text_of(text: object) -> str:
    """Return a description of a plug-in or of this package as one line."""
    return " ".join(str(text or "").split())


_RST_TYPES = {"int": "an integer", "bool": "a boolean", "str": "a text"}
_FORMATS = {
    "cpu-map": "a CPU map: CPUs and ranges, each with ``^`` to exclude it, such as ``0-3,^2``",
    "page-size": "``large``, ``small``, ``any``, or a number with or without a unit",
    "scheduler-operators": "a text, or an operator of the scheduler and what it compares with",
}


#: The roles with which other pages refer to definitions; their directives have the same names.
EXTRA_SPEC, IMAGE_PROPERTY = "extra-spec", "image-property"
_OTHER = {EXTRA_SPEC: IMAGE_PROPERTY, IMAGE_PROPERTY: EXTRA_SPEC}


def rst_page(items: Iterable[Registered], role: str = "") -> str:
    """Return the text of definitions, one after another, as a definition list.

    :param role: each definition is a directive of this name instead, and what it names is a reference
    """
    return "\n".join(line for item in items for line in [*_entry(item, role), ""])


def _named(name: str, role: str = "") -> str:
    return f":{role}:`{name}`" if role else f"``{name}``"


def _entry(item: Registered, role: str) -> Iterator[str]:
    validator = item.validator
    yield f".. {role}:: {validator.name}" if role else f"``{validator.name}``"
    if role:
        yield ""
    yield f"   {text_of(validator.description)}"
    yield ""
    yield f"   :Value: {_value(item)}"
    for parameter in item.template.parameters:
        described = text_of(parameter.description) if parameter.description else f"``{parameter.pattern}``"
        yield f"   :``{{{parameter.name}}}``: {described}"
    if validator.removed:
        yield f"   :Status: Removed in {validator.removed}.{_instead(item, role)}"
    elif validator.deprecated:
        yield f"   :Status: Deprecated.{_instead(item, role)}"
    if validator.drivers:
        yield f"   :Drivers: {', '.join(validator.drivers)}"
    if validator.requires:
        yield f"   :Together with: {', '.join(_named(name, role) for name in validator.requires)}"
    if validator.see_also:
        yield f"   :See also: {_named(validator.see_also, _OTHER.get(role, ''))}"
    if item.origin:
        yield f"   :Package: {item.origin}"


def _value(item: Registered) -> str:
    value = value_of(item)
    kind = _FORMATS.get(value.get("format", ""), _RST_TYPES[value["type"]])
    if "enum" in value:
        kind = f"one of {', '.join(f'``{choice}``' for choice in value['enum'])}"
    if "aliases" in value:
        aliases = ", ".join(f"``{alias}`` for ``{choice}``" for alias, choice in value["aliases"].items())
        kind += f", in upper or lower case{f'; also {aliases}' if aliases else ''}"
    bounds = [f"{words} {value[key]}" for key, words in (("min", "at least"), ("max", "at most")) if key in value]
    if bounds:
        kind += f", {' and '.join(bounds)}"
    if "pattern" in value:
        kind += f" that matches ``{value['pattern']}``"
    description = f" {text_of(value['description'])}" if value["description"] else ""
    return f"{kind[0].upper()}{kind[1:]}.{description}"


def _instead(item: Registered, role: str) -> str:
    validator = item.validator
    instead = f" Use {_named(validator.replaced_by, role)} instead." if validator.replaced_by else ""
    return f"{instead} {text_of(validator.advice)}" if validator.advice else instead


FLAVOR = "OS::Nova::Flavor"
IMAGE = "OS::Glance::Image"
VOLUME = "OS::Cinder::Volume"
_METADEF_TYPES = {int: "integer", bool: "boolean", str: "string"}
_PREFIXES = ("hw_", "img_", "os_", "trait:")
#: Maximum number of characters of a property's name and of its title in the catalog's database.
_MAX_NAME = 80


def namespaces(extra_specs: SpecRegistry, image_properties: SpecRegistry) -> dict[str, JSONObject]:
    """Return the catalog's namespaces by the names of their files: for flavors, and for images.

    Keys that were removed are left out, and names with parameters whose values cannot be listed.
    """
    by_file = {}
    for name, items in extra_specs.namespaces().items():
        by_file[f"flavor-{name or 'general'}.json"] = _namespace(
            f"Flavor::{name or 'general'}", "Flavors", f"{name}:" if name else "", items, [FLAVOR])
    by_prefix: dict[str, list[Registered]] = {}
    for item in image_properties:
        by_prefix.setdefault(prefix_of(item), []).append(item)
    for prefix, items in sorted(by_prefix.items()):
        name = prefix.rstrip(":_") or "general"
        by_file[f"image-{name}.json"] = _namespace(f"Image::{name}", "Images", prefix, items, [IMAGE, VOLUME])
    return {name: namespace for name, namespace in by_file.items() if namespace["properties"]}


def write_metadefs(folder: Path, namespaces_by_file: dict[str, JSONObject]) -> list[Path]:
    """Write namespaces to a folder, which is made where it is missing; return the files.

    :raises OSError: it cannot be written
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for name, namespace in namespaces_by_file.items():
        files.append(folder / name)
        files[-1].write_text(json.dumps(namespace, indent=4, ensure_ascii=False) + "\n", encoding="utf-8")
    return files


def prefix_of(item: Registered) -> str:
    """Return the known prefix of the names of image properties of one kind; empty if there is none."""
    return next((prefix for prefix in _PREFIXES if item.validator.name.startswith(prefix)), "")


def _namespace(name: str, of: str, prefix: str, items: Iterable[Registered], types: list[str]) -> JSONObject:
    properties = {}
    for item in items:
        if item.validator.status != REMOVED:
            for key in _keys(item):
                short = key.removeprefix(prefix)
                if len(short) <= _MAX_NAME:
                    properties[short] = _property(item, key)
    return {
        "namespace": f"OS::IronicRules::{name}",
        "display_name": f"{of}: {prefix or 'others'}",
        "description": f"Keys of {of.lower()} {f'that begin with {prefix}' if prefix else 'of no other namespace'}.",
        "visibility": "public",
        "protected": True,
        "resource_type_associations": [
            {"name": kind, **({"prefix": prefix} if prefix else {}),
             **({"properties_target": "image"} if kind == VOLUME else {})} for kind in types],
        "properties": properties,
        "objects": [],
    }


def _keys(item: Registered) -> Iterator[str]:
    """Yield the keys that a definition stands for, as far as they can be listed."""
    template = item.template
    if not template.parameters:
        yield item.validator.name
    elif template.has_choices:
        for choice in template.choices():
            yield "".join(template.literals[:-1]) + choice + template.suffix
    elif [parameter.pattern for parameter in template.parameters] == ["[0-9]+"]:
        # Users add the others by hand.
        yield f"{template.prefix}0{template.suffix}"


def _property(item: Registered, key: str) -> JSONObject:
    validator, value = item.validator, item.validator.value
    title = key if validator.status != DEPRECATED else f"{key} (deprecated)"
    description = f"{text_of(validator.description)} {text_of(value.get('description'))}".strip()
    if validator.replaced_by:
        description += f" Use {validator.replaced_by} instead."
    result: JSONObject = {"title": title, "description": description, "type": _METADEF_TYPES[value["type"]]}
    for theirs, ours in (("minimum", "min"), ("maximum", "max")):
        if value.get(ours) is not None:
            result[theirs] = value[ours]
    if value.get("pattern") is not None:
        # Expressions of JSON schemas match anywhere.
        result["pattern"] = f"^(?:{value['pattern']})$"
    if value.get("enum") is not None:
        result["enum"] = list(value["enum"])
    return result
