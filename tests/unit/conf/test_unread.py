"""Options that nothing reads are named with their file; those of libraries and plug-ins are known."""

from __future__ import annotations

import subprocess
import sys

import pytest
from oslo_config import cfg

from ironic_rules import service
from ironic_rules.conf import unread

EVERYTHING_IS_READ = """\
[DEFAULT]
debug = true
log-dir = /tmp
transport_url = rabbit://
rpc_response_timeout = 60
[api]
host-ip = 127.0.0.1
[database]
connection_recycle_time = 60
[oslo_policy]
policy_file = policy.yaml
[oslo_messaging_rabbit]
rabbit_quorum_queue = true
[keystone_authtoken]
auth_type = password
username = ironic
user_domain_name = Default
www_authenticate_uri = http://192.0.2.1:5000
[pxe_filter]
targets = rack-1
[pxe_filter:rack-1]
reload_after = 3000
"""


@pytest.fixture
def told(tmp_path):
    def told(*texts: str) -> list[str]:
        files = [tmp_path / f"{number}.conf" for number in range(len(texts))]
        for file, text in zip(files, texts, strict=True):
            file.write_text(text)
        conf = service.prepare_config([], config_files=[str(file) for file in files], groups=("DEFAULT",))
        return [line.removeprefix(f"{tmp_path}/") for line in unread.lines(conf)]

    return told


def test_options_of_the_service_its_libraries_and_its_scopes_are_read(told):
    assert told(EVERYTHING_IS_READ) == []


@pytest.mark.parametrize(("text", "line"), [
    ("[inspectr]\nhooks = x\nadd_ports = all\n", "[inspectr]: no process reads this group. Is [inspector] meant?"),
    ("[api]\nprot = 1\n", "[api]prot: no process reads this option. Is [api]port meant?"),
    ("[DEFAULT]\ndebgu = true\n", "[DEFAULT]debgu: no process reads this option. Is [DEFAULT]debug meant?"),
    ("[keystone_authtoken]\nauth_type = password\npasswrod = x\n",
     "[keystone_authtoken]passwrod: no process reads this option."),
    ("[pxe_filter]\ntargets = rack-1\n[pxe_filter:rack-1]\nzzz = 1\n",
     "[pxe_filter:rack-1]zzz: no process reads this option."),
    ("[pxe_filter]\ntargets = rack-1\n[pxe_filter:rack-1]\nsync_period = 1\n",
     "[pxe_filter:rack-1]sync_period: no process reads this option."),
    ("[pxe_filter]\ntargets = rack-1\n[pxe_filter:rack-2]\nreload_after = 3000\n",
     "[pxe_filter:rack-2]: no process reads this group; [pxe_filter]targets does not have its name."),
    ("[api]\n\x1b[1m = 1\n", "[api]\\x1b[1m: no process reads this option."),
    ("[swift]\nregion_name = x\n", "[swift]: no process reads this group."),
])
def test_what_nothing_reads_is_named_with_what_may_be_meant(told, text, line):
    assert told(text) == [f"0.conf: {line}"]


def test_what_installed_libraries_list_and_the_service_does_not_use_is_named(told):
    groups = ("cors", "healthcheck", "oslo_middleware", "oslo_messaging_notifications", "oslo_messaging_kafka")
    names = ("slave_connection", "asyncio_connection", "use_db_reconnect", "connection_trace", "backend",
             "mysql_sql_mode")
    text = "".join([*(f"[{group}]\nx = 1\n" for group in groups), "[database]\n", *(f"{name} = 1\n" for name in names)])

    # Some of them are similar to one that is read.
    assert [line.partition(". Is ")[0].rstrip(".") for line in told(text)] == [
        *(f"0.conf: [{group}]: no process reads this group" for group in groups),
        *(f"0.conf: [database]{name}: no process reads this option" for name in names)]


def test_each_line_names_its_file(told):
    found = told("[api]\nport = 1\n[inspectr]\nhooks = x\n", "[swift]\nregion_name = x\n")

    assert [line.partition(":")[0] for line in found] == ["0.conf", "1.conf"]


def test_options_that_another_package_lists_are_read(told, monkeypatch):
    options = [("my_hook", [cfg.StrOpt("colour")])]
    monkeypatch.setattr(unread, "_other_options", lambda: iter(options))

    assert told("[my_hook]\ncolour = red\n") == []
    assert told("[my_hook]\ncolor = red\n") == [
        "0.conf: [my_hook]color: no process reads this option. Is [my_hook]colour meant?"]


def test_they_are_logged_at_the_start_and_a_file_of_another_service_does_not_flood_the_log(tmp_path):
    file = tmp_path / "service.conf"
    file.write_text(f"[DEFAULT]\nlog_file = {tmp_path}/log\n[api]\n"
                    + "".join(f"foreign_{number} = 1\n" for number in range(60)))
    script = ("from ironic_rules import service\n"
              f"service.setup_logging(service.prepare_config([], config_files=[{str(file)!r}]))\n")
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60, stderr=subprocess.DEVNULL)

    told = (tmp_path / "log").read_text()
    assert told.count("no process reads this option") == 50
    assert "... and 10 more groups and options" in told
