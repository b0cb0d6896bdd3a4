"""``.. extra-specs:: hw``: the extra specs of a namespace, and ``.. image-properties:: hw_``: those of images.

Without an argument, extra specs are those without a namespace, and image properties those with none of the prefixes.
Each of them is a target: ``:extra-spec:`hw:cpu_policy``` and ``:image-property:`hw_cpu_policy``` link to it from any
page, also with a value for a parameter, as ``:extra-spec:`hw:numa_cpus.0```. One that does not exist is a warning of
Sphinx.
Beside pages in HTML stand the metadata definitions for the image service, in ``metadefs``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.roles import XRefRole
from sphinx.util.docutils import SphinxDirective

from ironic_rules.extra_specs import installed, output
from ironic_rules.extra_specs.registry import Registered, SpecRegistry


def registry(role: str) -> SpecRegistry:
    """Return the definitions that a role refers to."""
    # What is installed where the pages are built must not show on them.
    return installed.built_in() if role == output.EXTRA_SPEC else installed.image_properties()


class ExtraSpecs(SphinxDirective):
    """The extra specs of one namespace."""

    optional_arguments = 1
    role = output.EXTRA_SPEC

    def items(self, name: str) -> list[Registered]:
        """Return what is shown."""
        return registry(self.role).namespaces().get(name, [])

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0] if self.arguments else ""
        items = self.items(name)
        if not items:
            raise self.error(f"nothing has the name {name!r}")
        return self.parse_text_to_nodes(output.rst_page(items, self.role))


class ImageProperties(ExtraSpecs):
    """The properties of images with one prefix."""

    role = output.IMAGE_PROPERTY

    def items(self, name: str) -> list[Registered]:
        """Return what is shown."""
        return [item for item in registry(self.role) if output.prefix_of(item) == name]


class Reference(XRefRole):
    """A reference to a definition, by its name, or by a key that the name stands for."""

    def process_link(self, env: BuildEnvironment, refnode: nodes.Element, has_explicit_title: bool, title: str,
                     target: str) -> tuple[str, str]:
        known = registry(refnode["reftype"])
        found = known.get(target) or next(iter(known.find(target) or ()), None)
        return title, found.validator.name if isinstance(found, Registered) else target


def write_metadefs(app: Sphinx, error: Exception | None) -> None:
    """Write the metadata definitions beside the pages."""
    if error is None and app.builder.format == "html":
        found = output.namespaces(installed.built_in(), installed.image_properties())
        output.write_metadefs(Path(app.outdir) / "metadefs", found)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directives and the roles."""
    for role in (output.EXTRA_SPEC, output.IMAGE_PROPERTY):
        app.add_object_type(role, role, f"pair: %s; {role.replace('-', ' ')}")
        app.add_role_to_domain("std", role, Reference(warn_dangling=True), override=True)
    app.add_directive("extra-specs", ExtraSpecs)
    app.add_directive("image-properties", ImageProperties)
    app.connect("build-finished", write_metadefs)
    return {"parallel_read_safe": True}
