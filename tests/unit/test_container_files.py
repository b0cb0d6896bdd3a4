"""The files in ``etc/container`` fit the service: variables, ports, roles, and times."""

from __future__ import annotations

import configparser
import re
from pathlib import Path
from typing import Any

import yaml

from ironic_rules import service

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "etc" / "container"
PAGE = (ROOT / "doc" / "source" / "install" / "containers.rst").read_text()
FILES = [path for path in FOLDER.rglob("*") if path.is_file()]
#: The keys of a section Container in podman-systemd.unit(5) of Podman 4.7, as far as they are used here.
QUADLET = {"ContainerName", "DropCapability", "Environment", "Exec", "HealthCmd", "HealthInterval", "HealthOnFailure",
           "HealthTimeout", "HostName", "Image", "Network", "NoNewPrivileges", "Notify", "PublishPort", "ReadOnly",
           "Tmpfs", "Volume"}


def resources() -> list[dict[str, Any]]:
    found = [each for path in sorted((FOLDER / "kubernetes").glob("*.yaml"))
             for each in yaml.safe_load_all(path.read_text())]
    return [each for each in found if "spec" in each and "template" in each["spec"]]


def test_every_variable_is_an_option() -> None:
    conf = service.prepare_config([], config_files=[])
    known = {f"OS_{(group.name if group else 'DEFAULT').upper()}__{info['opt'].dest.upper()}"
             for info, group in conf._all_opt_infos()}
    from_libraries = {"OS_OSLO_MESSAGING_RABBIT__SSL", "OS_KEYSTONE_AUTHTOKEN__AUTH_URL"}

    used = {(name, path.name) for path in [*FILES, ROOT / "doc/source/install/containers.rst"]
            for name in re.findall(r"\bOS_[A-Z_]+__[A-Z_]+\b", path.read_text())}

    assert [each for each in sorted(used) if each[0] not in known | from_libraries] == []


def test_every_role_is_one_of_the_image_and_of_the_page() -> None:
    roles = re.findall(r'^    "([\w-]+)": Role\(', (FOLDER / "entrypoint.py").read_text(), re.MULTILINE)

    assert [role for role in roles if f"\n- ``{role}``: " not in PAGE] == []
    for each in resources():
        container, = each["spec"]["template"]["spec"]["containers"]
        assert container["args"][0] in roles
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
    for path in (FOLDER / "quadlet").glob("*.container"):
        unit = configparser.ConfigParser(interpolation=None, strict=False)
        unit.optionxform = str  # type: ignore[assignment,method-assign]
        unit.read(path)
        assert unit["Container"]["Exec"] in roles, path
        assert unit["Container"]["HealthCmd"] == f"ironic-rules-container healthcheck {unit['Container']['Exec']}"
        assert set(unit["Container"]) - QUADLET == set(), path
        assert unit["Service"]["RestartPreventExitStatus"] == {
            "api": "2", "pxe-filter": "2"}.get(unit["Container"]["Exec"], "2 3")


def test_conductors_end_between_their_grace_and_the_time_of_their_locks() -> None:
    conf = service.prepare_config([], config_files=[])
    lock_s = conf.conductor.heartbeat_timeout
    conductor = next(each for each in resources() if each["kind"] == "StatefulSet")["spec"]["template"]["spec"]
    grace = {each["name"]: each.get("value") for each in conductor["containers"][0]["env"]}
    compose = yaml.safe_load((FOLDER / "compose" / "compose.yaml").read_text())["services"]
    stop_s = int(compose["conductor-1"]["stop_grace_period"].removesuffix("s"))

    assert int(grace["OS_CONDUCTOR__SHUTDOWN_GRACE"]) < conductor["terminationGracePeriodSeconds"] < lock_s
    assert conf.conductor.shutdown_grace < stop_s < lock_s
    # Two with one name would end each other.
    assert len({compose[name]["environment"]["OS_DEFAULT__HOST"] for name in ("conductor-1", "conductor-2")}) == 2


def test_probes_ask_the_ports_that_the_image_sets() -> None:
    ports = dict(re.findall(r"OS_(\w+)__METRICS_PORT=(\d+)", (FOLDER / "Containerfile").read_text()))

    for each in resources():
        container, = each["spec"]["template"]["spec"]["containers"]
        group = container["args"][0].upper()
        named = {port["name"]: port["containerPort"] for port in container.get("ports", ())}
        assert named.get("metrics", int(ports.get(group, 0))) == int(ports.get(group, 0))
        for probe in ("startupProbe", "livenessProbe"):
            if probe in container:
                assert container[probe]["httpGet"]["path"] == "/healthcheck/live"
                assert container[probe]["httpGet"]["port"] in named
    for number in ports.values():
        assert number in PAGE
