from __future__ import annotations

import json

import pytest
import sqlalchemy as sa

from ironic_rules.cmd import status
from ironic_rules.db import conductors, inspection_rules, legacy_rules
from tests.functional import databases


@pytest.fixture
def check(tmp_path, capsys):
    """``check(configuration, upgraded)`` returns the status, and ``{check: (result, details)}``."""

    def run(text: str = "", upgraded: bool = True):
        file = tmp_path / "service.conf"
        if upgraded and not (tmp_path / "database").exists():
            databases.write_sqlite(tmp_path / "database")
        file.write_text(f"{text}\n[database]\nconnection = sqlite:///{tmp_path}/database\n")
        capsys.readouterr()
        code = status.main(["--config-file", str(file), "upgrade", "check", "--json"])
        told = capsys.readouterr().out.splitlines()[-1]
        return code, {entry["check"]: (entry["result"], entry["details"]) for entry in json.loads(told)["checks"]}

    return run


@pytest.fixture
def engine(tmp_path):
    """The database that ``check`` is about."""
    databases.write_sqlite(tmp_path / "database")
    return sa.create_engine(f"sqlite:///{tmp_path}/database", poolclass=sa.NullPool)


def test_an_installation_that_is_ready(check):
    code, checks = check()
    assert code == 0
    assert len(checks) == 12


def test_tables_that_are_missing(check):
    code, checks = check(upgraded=False)
    assert (code, [name for name, (result, _) in checks.items() if result]) == (2, ["Database schema"])
    assert "ironic-rules-dbsync upgrade" in checks["Database schema"][1]


@pytest.mark.parametrize(("text", "names", "told"), [
    ("[DEFAULT]\nenabled_hardware_types = nonsense", ["Options", "Hardware types and interfaces"], "nonsense"),
    ("[inspector]\nhooks = nonsense", ["Options", "Inspection hooks"], "nonsense"),
    ("[inspector]\nhooks = $default_hooks,pci-devices\npci_device_alias = nonsense",
     ["Options", "Inspection hooks"], "pci_device_alias"),
    ("[inspection_rules]\nbuilt_in = /nonexistent", ["Inspection rules"], "/nonexistent"),
    ("[auto_discovery]\nenabled = true", ["Options", "Auto-discovery"], "driver is required"),
    ("[api]\nprot = 1", ["Options that nothing reads"], "[api]prot: no process reads this option."),
    ("[inventory]\ndata_backend = swift\nmax_versions = 0", ["Options"], "use database"),
    ("[oslo_messaging_rabbit]\nheartbeat_rate = often", ["Options"], "heartbeat_rate = often"),
    ("[DEFAULT]\ndefault_log_levels = foo\nexecutor_thread_pool_size = 0", ["Options"], "executor_thread_pool_size"),
])
def test_what_would_stop_the_start_is_a_failure(check, text, names, told):
    code, checks = check(text)
    assert (code, [name for name, (result, _) in checks.items() if result]) == (2, names)
    assert told in " ".join(checks[names[-1]][1].split())  # it is wrapped


@pytest.mark.parametrize(("file", "expected", "told"), [
    ("x", 2, "an object is expected"), (None, 2, "does not exist"), ('"a": "rule:b"', 1, "has no rule a"),
    ('"baremetal:node:list": "!"', 0, "valid")])
def test_policy_files(check, tmp_path, file, expected, told):
    if file is not None:
        (tmp_path / "policies").write_text(file)

    code, checks = check(f"[DEFAULT]\nauth_strategy = keystone\n[oslo_policy]\npolicy_file = {tmp_path}/policies")

    assert code == expected
    assert "".join(told.split()) in "".join(checks["Policies"][1].split())  # it is wrapped, also within words


@pytest.mark.parametrize(("enabled", "expected"), [(True, 2), (False, 1)])
def test_a_stored_rule_that_is_no_longer_valid(check, engine, enabled, expected):
    with engine.begin() as connection:
        uuid = inspection_rules.create(connection, {"actions": [{"op": "gone", "args": []}], "enabled": enabled}).uuid

    code, checks = check()
    assert code == expected
    told = "".join(checks["Inspection rules"][1].split())  # it is wrapped, also within words
    assert all(part in told for part in (uuid, "/actions/0/op", "nosuchaction"))


def test_a_stored_early_rule_with_a_scope_is_a_warning(check, engine):
    rule = {"actions": [{"op": "fail", "args": ["no"]}], "phase": "early", "scope": "lab"}
    with engine.begin() as connection:
        uuid = inspection_rules.create(connection, rule).uuid

    code, checks = check()
    assert code == 1
    told = "".join(checks["Inspection rules"][1].split())
    assert all(part in told for part in (uuid, "/scope", "foreveryreport"))


@pytest.mark.parametrize(("condition", "is_told"), [
    ({"op": "!eq", "args": ["{inventory[a]}", None]}, True),
    ({"op": "eq", "args": {"values": ["{inventory[a]}", "{plugin_data[a]}"]}}, True),
    ({"op": "one-of", "args": {"value": "{inventory[a]}", "values": [1, None]}}, True),
    ({"op": "eq", "args": ["{inventory[a]}", "x"]}, False), ({"op": "eq", "args": [None, None]}, False),
    ({"op": "gt", "args": ["{inventory[a]}", "{plugin_data[a]}"]}, False),
    ({"op": "eq", "args": ["{item[a]}", "x"], "loop": {"a": "x"}}, True),
    ({"op": "eq", "args": ["{item[a]}", "x"], "loop": [{"a": "x"}]}, False)])
def test_stored_rules_that_had_another_meaning_are_a_warning(check, engine, condition, is_told):
    with engine.begin() as connection:
        uuid = inspection_rules.create(connection, {
            "actions": [{"op": "fail", "args": ["no"]}], "conditions": [condition]}).uuid

    code, checks = check()
    assert code == is_told
    told = "".join(checks["Inspection rules"][1].split())
    assert (uuid in told and "/conditions/0" in told) is is_told


def test_a_stored_legacy_rule_that_is_no_longer_valid(check, engine):
    with engine.begin() as connection:
        uuid = legacy_rules.create(connection, {"conditions": [], "actions": [{"action": "gone"}]}).uuid

    code, checks = check()
    assert code == 2
    told = "".join(checks["Inspection rules"][1].split())
    assert all(part in told for part in (uuid, "/actions/0/action"))


def test_a_configuration_file_that_is_missing_is_told_in_one_line(capsys):
    assert status.main(["--config-file", "/nonexistent", "upgrade", "check"]) == 2
    line, = capsys.readouterr().err.splitlines()
    assert "/nonexistent" in line


def test_conductors_that_are_pinned_to_another_release_are_a_warning(check, engine):
    with engine.begin() as connection:
        conductors.register(connection, "host-1", "", {}, "life-1", pinned_release="0.1")
        conductors.register(connection, "host-2", "", {}, "life-2")
        conductors.unregister(connection, "host-2", "life-2")

    code, checks = check()
    assert (code, checks["Pinned release"][0]) == (1, 1)
    told = "".join(checks["Pinned release"][1].split())
    assert "(0.1:host-1;notset:thisconfiguration)" in told
    assert check("[conductor]\npin_release_version = 0.1\n")[1]["Pinned release"] == (0, "0.1")
    assert check("[conductor]\npin_release_version = banana\n")[0] == 2


def test_nodes_with_a_deploy_interface_that_their_hardware_does_not_have(check, engine):
    config = "[DEFAULT]\nenabled_hardware_types = ipmi,fake-hardware\nenabled_management_interfaces = noop,fake\n" \
             "enabled_power_interfaces = ipmitool,fake"
    assert check(config)[0] == 0
    with engine.begin() as connection:
        for uuid, driver, interface in (("a" * 8, "ipmi", "fake"), ("b" * 8, "ipmi", "direct"),
                                        ("c" * 8, "fake-hardware", "fake")):
            databases.insert_node(connection, uuid=uuid, driver=driver, deploy_interface=interface)

    code, checks = check(config)

    told = " ".join(checks["Deploy interfaces of nodes"][1].split())
    assert (code, "1 nodes have" in told, told.endswith(": aaaaaaaa")) == (1, True, True)


def test_nodes_whose_certificates_are_in_no_allowed_folder(check, engine, tmp_path):
    (tmp_path / "ca.pem").write_text("certificates")
    with engine.begin() as connection:
        for uuid, value in (("a" * 8, str(tmp_path / "ca.pem")), ("b" * 8, True), ("c" * 8, "false")):
            databases.insert_node(connection, uuid=uuid, driver="redfish", driver_info={"redfish_verify_ca": value})

    code, checks = check()

    told = " ".join(checks["Certificates of BMCs"][1].split())
    assert (code, "1 nodes have" in told, told.endswith(": aaaaaaaa")) == (1, True, True)
    assert check(f"[redfish]\nverify_ca_allowed_paths = {tmp_path}")[0] == 0
