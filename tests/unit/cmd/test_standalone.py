from __future__ import annotations

import shutil
import sys

import pytest

from ironic_rules.cmd import standalone


def test_suggestions_can_be_typed_as_they_stand(tmp_path, monkeypatch):
    folder = tmp_path / ".venv" / "bin"
    folder.mkdir(parents=True)
    for name in ("ironic-rules", "ironic-rules-simulate"):
        (folder / name).touch(mode=0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [".venv/bin/ironic-rules"])
    monkeypatch.setattr(sys, "executable", str(folder / "python3"))
    monkeypatch.setenv("PATH", "/nonexistent")

    called = [line.split()[0] for line in standalone._suggestions("http://127.0.0.1:6385", "noauth", None)]

    assert called == ["curl", ".venv/bin/ironic-rules-simulate"]

    monkeypatch.setenv("PATH", str(folder))
    called = [line.split()[0] for line in standalone._suggestions("http://127.0.0.1:6385", "noauth", None)]

    assert called == ["curl", "ironic-rules-simulate"]


@pytest.mark.parametrize(("strategy", "logins"), [
    ("noauth", ["curl -s http", "openstack --os-auth-type none --os-endpoint http",
                "ironic-rules-simulate --endpoint http"]),
    ("http_basic", ["curl -s -u USER:PASSWORD http", "openstack --os-auth-type http_basic --os-username USER",
                    'ironic-rules-simulate --header "Authorization: Basic $(printf USER:PASSWORD | base64)"']),
    ("keystone", ["curl -s -H 'X-Auth-Token: TOKEN' http", "openstack baremetal node list",
                  "ironic-rules-simulate --header 'X-Auth-Token: TOKEN'"])])
def test_suggestions_have_a_place_for_the_login(monkeypatch, strategy, logins):
    monkeypatch.setattr(shutil, "which", lambda name, path=None: name)

    shown = list(standalone._suggestions("http://127.0.0.1:6385", strategy, None))

    assert [line[:len(login)] for line, login in zip(shown, logins, strict=True)] == logins


def test_the_demo_is_refused_where_its_nodes_would_need_a_login(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "users").write_text("admin:$2y$05$0000000000000000000000000000000000000000000000000000a\n")
    file = tmp_path / "basic.conf"
    file.write_text("[DEFAULT]\nauth_strategy = http_basic\nhttp_basic_auth_user_file = users\n")

    assert standalone.main(["--demo", "--config-file", str(file)]) == 2

    line, = capsys.readouterr().err.splitlines()
    assert f"{file}: [DEFAULT]auth_strategy is http_basic, but --demo" in line
    assert sorted(path.name for path in tmp_path.iterdir()) == ["basic.conf", "users"]
