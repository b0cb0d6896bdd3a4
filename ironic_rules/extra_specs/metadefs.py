"""Namespaces of the image service's metadata definitions catalog, with which its users choose keys and values.

https://docs.openstack.org/glance/latest/user/metadefs-concepts.html; ``glance-manage db_load_metadefs`` loads them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ironic_rules.extra_specs.registry import Registered, SpecRegistry
from ironic_rules.extra_specs.validators import DEPRECATED, REMOVED
from ironic_rules.extra_specs.views import text_of

FLAVOR = "OS::Nova::Flavor"
IMAGE = "OS::Glance::Image"
VOLUME = "OS::Cinder::Volume"
_TYPES = {int: "integer", bool: "boolean", str: "string"}
_PREFIXES = ("hw_", "img_", "os_", "trait:")
#: Maximum number of characters of a property's name and of its title in the catalog's database.
_MAX_NAME = 80


def namespaces(extra_specs: SpecRegistry, image_properties: SpecRegistry) -> dict[str, dict[str, Any]]:
    """Return the catalog's namespaces by the names of their files: for flavors, and for images.

    Keys that were removed are left out, and names with parameters whose values cannot be listed.
    """
    found = {}
    for name, items in extra_specs.namespaces().items():
        found[f"flavor-{name or 'general'}.json"] = _namespace(
            f"Flavor::{name or 'general'}", "Flavors", f"{name}:" if name else "", items, [FLAVOR])
    by_prefix: dict[str, list[Registered]] = {}
    for item in image_properties:
        by_prefix.setdefault(prefix_of(item), []).append(item)
    for prefix, items in sorted(by_prefix.items()):
        name = prefix.rstrip(":_") or "general"
        found[f"image-{name}.json"] = _namespace(f"Image::{name}", "Images", prefix, items, [IMAGE, VOLUME])
    return {name: namespace for name, namespace in found.items() if namespace["properties"]}


def write(folder: Path, found: dict[str, dict[str, Any]]) -> list[Path]:
    """Write namespaces to a folder, which is made where it is missing; return the files.

    :raises OSError: it cannot be written
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for name, namespace in found.items():
        files.append(folder / name)
        files[-1].write_text(json.dumps(namespace, indent=4, ensure_ascii=False) + "\n", encoding="utf-8")
    return files


def prefix_of(item: Registered) -> str:
    """Return what the names of image properties of one kind begin with; empty if it is none of the known prefixes."""
    return next((prefix for prefix in _PREFIXES if item.validator.name.startswith(prefix)), "")


def _namespace(name: str, of: str, prefix: str, items: Iterable[Registered], types: list[str]) -> dict[str, Any]:
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


def _property(item: Registered, key: str) -> dict[str, Any]:
    validator, value = item.validator, item.validator.value
    title = key if validator.status != DEPRECATED else f"{key} (deprecated)"
    description = f"{text_of(validator.description)} {text_of(value.get('description'))}".strip()
    if validator.replaced_by:
        description += f" Use {validator.replaced_by} instead."
    found: dict[str, Any] = {"title": title, "description": description, "type": _TYPES[value["type"]]}
    for theirs, ours in (("minimum", "min"), ("maximum", "max")):
        if value.get(ours) is not None:
            found[theirs] = value[ours]
    if value.get("pattern") is not None:
        # Expressions of JSON schemas match anywhere.
        found["pattern"] = f"^(?:{value['pattern']})$"
    if value.get("enum") is not None:
        found["enum"] = list(value["enum"])
    return found
