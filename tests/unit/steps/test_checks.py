"""Checks of deploy steps without a node."""

from __future__ import annotations

from typing import Any

from ironic_rules.exceptions import Problem
from ironic_rules.models import secrets
from ironic_rules.models.steps import Step
from ironic_rules.steps import checks
from tests.walking import walking


def step(args: dict[str, Any] | None = None, name: str = "raid.create_configuration") -> Step:
    interface, _, own = name.partition(".")
    return Step(interface, own, args or {}, 10)


def test_every_check_sees_every_step_and_problems_have_their_place():
    def too_late(one: Step) -> list[Problem]:
        return [Problem("/priority", "is not 20")] if one.priority != 20 else []

    def unknown(one: Step) -> list[Problem]:
        return [Problem(f"/args/{name}", f"{one.name} takes none") for name in one.args]

    found = checks.problems([step(), step({"a": 1, "b": 2})], [too_late, unknown])

    assert list(map(str, found)) == [
        "/steps/0/priority: is not 20", "/steps/1/priority: is not 20",
        "/steps/1/args/a: raid.create_configuration takes none",
        "/steps/1/args/b: raid.create_configuration takes none"]
    assert checks.problems([step()], []) == []


@walking("name, refused", [
    ("vendor.send_raw", True), ("vendor.other", False), ("bios.send_raw", False), ("vendor.send_raw2", False)])
def test_disallowed_steps_are_refused_by_their_full_name(name, refused):
    found = checks.problems([step(), step(name=name)], [checks.without({"vendor.send_raw", "deploy.x"})])

    assert [problem.where for problem in found] == ["/steps/1/step"] * refused


@walking("args, places", [
    ({"password": "******"}, ["/args/password"]),
    ({"list": [{"a": 1}, {"auth_token": "******", "b": {"ipmi_password": "******"}}]},
     ["/args/list/1/auth_token", "/args/list/1/b/ipmi_password"]),
    ({"a/b~": {"secret": "******"}}, ["/args/a~1b~0/secret"]),
    ({"password": "*****", "secret": "*******", "token": None, "private_key": ""}, []),
    ({"name": "******", "list": ["******"]}, []),
    ({"password": {"deeper": "******"}}, []),
])
def test_the_mask_in_place_of_a_secret_is_refused(args, places):
    assert [problem.where for problem in checks.real_secrets(step(args))] == places


def test_whatever_a_reply_hides_is_found_when_it_comes_back():
    args = {"password": "a", "deep": [{"Auth_Token": 5, "more": {"snmp_auth_key": ["b"]}}], "plain": "c",
            "configdrive": {"x": 1}}

    found = [problem.where for problem in checks.real_secrets(step(secrets.mask(args)))]

    assert found == [
        "/args/password", "/args/deep/0/Auth_Token", "/args/deep/0/more/snmp_auth_key", "/args/configdrive"]
