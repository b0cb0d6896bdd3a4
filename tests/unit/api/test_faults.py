"""Errors as they are sent to clients."""

from __future__ import annotations

import json

from oslo_db import exception as db_exc

from ironic_rules import exceptions
from ironic_rules.httpd import faults


def detail(fault: faults.Fault) -> dict[str, object]:
    return json.loads(json.loads(fault.body)["error_message"])


def test_every_error_of_the_service_has_its_code_and_side():
    errors = [cls for cls in exceptions.http_errors().values() if cls is not exceptions.NotAcceptable]
    sent = {cls: faults.from_error(cls("text")) for cls in errors}
    found = {cls.__name__: (fault.status, detail(fault)["faultcode"], detail(fault)["faultstring"])
             for cls, fault in sent.items()}
    expected = {cls.__name__: (cls.code, "Client" if cls.code < 500 else "Server",
                               faults.GENERIC if cls.code == 500 else "text") for cls in errors}

    assert errors
    assert [f"{name}: {fault}" for name, fault in found.items() if fault != expected[name]] == []


def test_an_unreachable_database_can_be_retried():
    assert faults.from_error(db_exc.DBConnectionError()).status == 503


def test_a_traceback_is_shown_only_on_request():
    error = ValueError("secret")

    assert detail(faults.from_error(error))["debuginfo"] is None
    assert "ValueError: secret" in str(detail(faults.from_error(error, debug=True))["debuginfo"])


def test_a_reply_does_not_repeat_megabytes_of_a_request():
    fault = faults.from_error(exceptions.Invalid("x" * 10_000_000))

    assert len(fault.body) < 10_000
    assert str(detail(fault)["faultstring"]).endswith("… (10000000 characters)")


def test_problems_are_listed_with_their_places_as_far_as_there_is_room():
    problems = [exceptions.Problem(f"/rules/{place}", "x" * 90) for place in range(1000)]
    fault = faults.from_error(exceptions.InvalidRule(problems=problems))

    assert detail(fault)["problems"][1] == {"pointer": "/rules/1", "text": "x" * 90}
    assert len(fault.body) < 25_000
