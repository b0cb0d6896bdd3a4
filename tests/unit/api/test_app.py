"""Routing, and what the request object hides from pecan."""

from __future__ import annotations

from ironic_rules.api import app, routes
from ironic_rules.api.expose import expose
from ironic_rules.api.routes import Resource
from ironic_rules.api.v1 import RootController
from tests.walking import walking


class Items(Resource):
    @expose(public=True)
    def get_all(self, request, parent): ...

    @expose(public=True)
    def get_one(self, request, parent, item): ...

    @expose(public=True)
    def put(self, request, parent, item=None): ...

    def helper(self): ...


class Parents(Resource):
    below = {"detail": Items()}
    below_item = {"items": Items()}

    @expose(public=True)
    def get_all(self, request): ...


class Root(Resource):
    below = {"parents": Parents()}


@walking("method, path, name, arguments", [
    ("GET", "/parents", "get_all", ()), ("GET", "/parents/", "get_all", ()), ("HEAD", "//parents//", "get_all", ()),
    ("GET", "/parents/1/items", "get_all", ("1",)), ("GET", "/parents/1/items/2/", "get_one", ("1", "2")),
    ("PUT", "/parents/items/items/items", "put", ("items", "items")), ("PUT", "/parents/1/items", "put", ("1",)),
    ("GET", "/parents/detail/x", "get_all", ("x",)),
])
def test_a_path_leads_to_its_method(method, path, name, arguments):
    found = routes.find(Root(), method, path)

    assert found.controller.__name__ == name
    assert found.arguments == arguments


@walking("method, path, allow", [
    ("GET", "/", ()), ("GET", "/nosuch", ()), ("GET", "/parents/1", ()), ("GET", "/parents/1/nosuch", ()),
    ("GET", "/parents/1/items/2/3", ()), ("DELETE", "/parents", ("GET",)),
    ("POST", "/parents/1/items/2", ("GET", "PUT")),
    ("get", "/parents", ("GET",)), ("GET", "/parents/1/helper", ()), ("GET", "/below", ()), ("GET", "/__class__", ()),
])
def test_no_other_path_leads_anywhere(method, path, allow):
    assert routes.find(Root(), method, path) == routes.FoundRoute(None, (), allow)


def test_every_route_can_be_found_by_its_own_path():
    root = RootController()
    found = [(route, routes.find(root, route.method, route.path.replace("{", "").replace("}", "")).controller)
             for route in routes.walk_routes(root)]

    assert found
    assert [f"{route.method} {route.path} leads to {controller}" for route, controller in found
            if getattr(controller, "__func__", None) is not route.controller.__func__] == []


def test_the_request_object_reads_neither_the_query_nor_the_body_for_pecan():
    request = app.PecanRequest({"QUERY_STRING": "uuid=1", "REQUEST_METHOD": "POST", "CONTENT_TYPE": "application/json"})

    assert not request.params
    assert not request.GET
    assert not request.POST
