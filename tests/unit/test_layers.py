"""Imports point downwards only, eventlet is imported nowhere, and few modules make HTTP connections."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.layers import LAYERS, RANKS, part_of, upward
from tests.modules import MODULES, PACKAGE, Import, imports_in, imports_of, module_name, place

PAGE = PACKAGE.parent / "doc" / "source" / "contributor" / "architecture.rst"

#: Parts that only take and return values.
PURE_PARTS = ("rules", "steps", "models", "legacy", "facts", "extra_specs")
IMPURE_LIBRARIES = ("oslo_config", "oslo_db", "oslo_messaging", "pecan", "sqlalchemy", "socket", "time")
GREEN_LIBRARIES = ("eventlet", "greenlet")
#: Modules that make HTTP connections or reach a host that a URL names in another way.
HTTP_CLIENTS = re.compile(
    r"httpx\.(?!HTTPError\b|InvalidURL\b|TimeoutException\b|TransportError\b|UnsupportedProtocol\b|Response\b)\w+"
    r"|(?:httpcore|requests|urllib3|aiohttp|pycurl|http\.client|urllib\.request|socket\.(?:create_connection|getaddrinfo))"
    r"(?:\.\w+)*")
HTTP_ROOTS = {"httpx", "httpcore", "requests", "urllib3", "aiohttp", "pycurl", "http", "urllib", "socket"}
#: Modules that may use them -> the URLs to which they send requests.
HTTP_MODULES = {
    "hardware.destinations": "all URLs in data, after a check: the type of its client only",
    "hardware.pinned": "the addresses that hardware.destinations has checked",
    "hardware.resolver": "resolves names, and connects to nothing",
    "hardware.redfish.connections": "BMCs", "hardware.redfish.client": "BMCs",
    "api.page": "Keystone, at the URL in the configuration",
    "httpd.server": "this process itself", "lab.rig": "the service, web server and BMC of the lab",
    "simulator.client": "the API that an operator names on the command line",
}


def imported(path: Path, imports: Iterable[Import], libraries: Iterable[str]) -> Iterator[str]:
    """Yield the imports of ``libraries`` in a module."""
    yield from (f"{place(path, line)}: imports {name}" for line, name in imports if name.partition(".")[0] in libraries)


def test_imports_point_downwards():
    assert [found for path in MODULES for found in upward(path, imports_of(path))] == []


def test_no_module_imports_eventlet():
    assert [found for path in MODULES for found in imported(path, imports_of(path), GREEN_LIBRARIES)] == []


def test_every_module_belongs_to_a_layer():
    names = filter(None, map(module_name, MODULES))

    assert [name for name in names if part_of(name) not in RANKS] == []


def test_every_layer_has_modules():
    met = {part_of(module_name(path)) for path in MODULES}

    assert [parts for parts in LAYERS if met.isdisjoint(parts)] == []


def test_pure_parts_import_nothing_that_touches_the_world():
    pure = [path for path in MODULES if part_of(module_name(path)) in PURE_PARTS]

    assert [found for path in pure for found in imported(path, imports_of(path), IMPURE_LIBRARIES)] == []


def http_clients(source: str) -> set[str]:
    """Return what a module uses of ``HTTP_CLIENTS``: names that it imports, and attributes of what it imports."""
    imports = {name for _, name in imports_in(EXAMPLE, source)}
    if not any(name.partition(".")[0] in HTTP_ROOTS for name in imports):
        return set()
    attributes = {ast.unparse(node) for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Attribute)}
    names = imports | {name for name in attributes if name.partition(".")[0] in imports}
    return {name for name in names if HTTP_CLIENTS.fullmatch(name)}


def test_only_few_modules_make_http_connections():
    used = {module_name(path): http_clients(path.read_text(encoding="utf-8")) for path in MODULES}

    assert {name: found for name, found in used.items() if found and name not in HTTP_MODULES} == {}
    assert [name for name in HTTP_MODULES if not used[name]] == []


def test_the_documentation_draws_these_layers():
    block = re.search(r"^::\n\n((?:   .*\n)+)", PAGE.read_text(encoding="utf-8"), re.MULTILINE)

    assert block is not None
    drawn = [re.split(r" {2,}", line.strip(), maxsplit=1)[0].split(" | ") for line in block[1].splitlines()]
    assert drawn == [list(parts) for parts in LAYERS]


EXAMPLE = PACKAGE / "models" / "example.py"


def test_an_upward_import_is_found():
    source = "from ironic_rules.db import nodes\nfrom ..api import app\nimport ironic_rules.exceptions\n"

    assert list(upward(EXAMPLE, imports_in(EXAMPLE, source))) == [
        "ironic_rules/models/example.py:1: models must not import ironic_rules.db.nodes",
        "ironic_rules/models/example.py:2: models must not import ironic_rules.api.app",
    ]


def test_an_import_of_a_library_is_found_inside_a_function():
    source = "import timeit\n\ndef f():\n    from time import sleep\n"

    assert list(imported(EXAMPLE, imports_in(EXAMPLE, source), IMPURE_LIBRARIES)) == [
        "ironic_rules/models/example.py:4: imports time.sleep"]


def test_an_http_client_is_found():
    source = ("import httpx, socket\nfrom urllib import request\nimport http.client as other\n"
              "def f(url):\n    from requests import get\n    try:\n        httpx.get(url)\n"
              "    except httpx.HTTPError:\n        socket.create_connection(url)\n")

    assert http_clients(source) == {"httpx.get", "urllib.request", "http.client", "requests.get",
                                    "socket.create_connection"}
