"""Errors as they are sent to clients."""

from __future__ import annotations

import json

import sqlalchemy as sa
from oslo_db import exception as db_exc

from ironic_rules import exceptions
from ironic_rules.httpd import faults
from tests.walking import walking


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


@walking("error, text", [
    (db_exc.DBConnectionError(), str(exceptions.outcome_unknown())),
    (db_exc.DBDeadlock(), exceptions.Unavailable.message),
    (sa.exc.TimeoutError(), exceptions.Unavailable.message)])
def test_a_request_can_be_repeated_that_a_database_could_not_serve(error, text):
    reading, changing = faults.from_error(error), faults.from_error(error, changes=True)

    assert (reading.status, changing.status) == (503, 503)
    assert ("Retry-After", "10") in changing.headers
    assert (detail(reading)["faultstring"], detail(changing)["faultstring"]) == (exceptions.Unavailable.message, text)


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
