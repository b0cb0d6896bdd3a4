"""Options that nothing reads are named with their file; those of libraries and plug-ins are known."""

from __future__ import annotations

import subprocess
import sys

import pytest
from oslo_config import cfg

from ironic_rules import service
from ironic_rules.cmd import lifecycle
from ironic_rules.conf import ironic, unread
from ironic_rules.exceptions import ConfigurationError
from tests.walking import walking

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


@walking("text, line", [
    ("[inspectr]\nhooks = x\nadd_ports = all\n", "[inspectr]: no process reads this group. Is [inspector] meant?"),
    ("[api]\nprot = 1\n", "[api]prot: no process reads this option. Is [api]port meant?"),
    ("[DEFAULT]\ndebgu = true\n", "[DEFAULT]debgu: no process reads this option. Is [DEFAULT]debug meant?"),
    ("[keystone_authtoken]\nauth_type = password\npasswrod = x\n",
     "[keystone_authtoken]passwrod: no process reads this option."),
    ("[pxe_filter]\ntargets = rack-1\n[pxe_filter:rack-1]\nzzz = 1\n",
     "[pxe_filter:rack-1]zzz: no process reads this option."),
    ("[pxe_filter]\ntargets = rack-1\n[pxe_filter:rack-1]\nsync_period = 1\n",
     "[pxe_filter:rack-1]sync_period: no process reads this option. Is [pxe_filter]sync_period meant?"),
    ("[pxe_filter]\ntargets = rack-1\n[pxe_filter:rack-2]\nreload_after = 3000\n",
     "[pxe_filter:rack-2]: no process reads this group; [pxe_filter]targets does not have its name."),
    ("[api]\n\x1b[1m = 1\n", "[api]\\x1b[1m: no process reads this option."),
    ("[swift]\nregion_name = x\n", "[swift]: no process reads this group."),
    ("[default]\ndebug = true\n", "[default]: no process reads this group. Is [DEFAULT] meant?"),
    ("[DEFAULTS]\ndebug = true\n", "[DEFAULTS]: no process reads this group. Is [DEFAULT] meant?"),
    ("[redfihs]\nauth_type = basic\n", "[redfihs]: no process reads this group. Is [redfish] meant?"),
    # Options and groups of Ironic mean what they mean there.
    ("[api]\nenable_ssl_api = false\n", "[api]enable_ssl_api: no process reads this option."),
    ("[conductor]\nnode_history = false\n", "[conductor]node_history: no process reads this option."),
    ("[agent]\ncommand_timeout = 60\n", "[agent]: no process reads this group."),
    ("[pxe]\ntftp_root = /tftpboot\n", "[pxe]tftp_root: no process reads this option."),
    ("[api]\napi_workers = 4\n", "[api]api_workers: no process reads this option; here it is [api]workers."),
    ("[conductor]\ndeploy_kernel = http://x\n",
     "[conductor]deploy_kernel: no process reads this option; here it is [deploy]deploy_kernel."),
    # A similar name of another meaning is not proposed, but the same name in another group is.
    ("[api]\nenable_cors = true\n", "[api]enable_cors: no process reads this option."),
    ("[DEFAULT]\nconnectoin = x\n", "[DEFAULT]connectoin: no process reads this option."),
    ("[DEFAULT]\nhost_ip = 127.0.0.1\n",
     "[DEFAULT]host_ip: no process reads this option. Is [api]host_ip meant?"),
    ("[conductor]\nworkers_pol_size = 9\n",
     "[conductor]workers_pol_size: no process reads this option. Is [conductor]workers_pool_size meant?"),
])
def test_what_nothing_reads_is_named_with_what_may_be_meant(told, text, line):
    assert told(text) == [f"0.conf: {line}"]


def test_a_group_whose_options_have_other_names_here_is_named_with_them(told):
    assert told("[agent]\nstream_raw_images = true\ncommand_timeout = 1\n") == [
        "0.conf: [agent]: no process reads this group.",
        "0.conf: [agent]stream_raw_images: here this is [deploy]stream_raw_images."]


def test_what_the_environment_sets_is_named_with_its_variable(told, monkeypatch):
    monkeypatch.setenv("OS_API__PROT", "1")
    monkeypatch.setenv("OS_API__PORT", "1")
    monkeypatch.setenv("OS_DEFAULT__DEBUG", "true")
    monkeypatch.setenv("OS_AUTH_URL", "http://192.0.2.1")
    monkeypatch.setenv("OS_REDFIHS__AUTH_TYPE", "basic")

    assert told("[DEFAULT]\n") == [
        "OS_API__PROT: [api]prot: no process reads this option. Is [api]port meant?",
        "OS_REDFIHS__AUTH_TYPE: [redfihs]: no process reads this group. Is [redfish] meant?"]


def test_each_option_is_named_with_its_own_file_if_several_have_the_group(told):
    assert told("[api]\nprot = 1\n[inspectr]\nhooks = x\n", "[api]\nport = 1\nthreds = 2\n[inspectr]\n") == [
        "0.conf: [api]prot: no process reads this option. Is [api]port meant?",
        "1.conf: [api]threds: no process reads this option. Is [api]threads meant?",
        "1.conf: [inspectr]: no process reads this group. Is [inspector] meant?"]


#: Values of each option about security: one that requests a protection, and one that does not.
PROTECTIONS = {
    **dict.fromkeys([
        ("api", "enable_ssl_api"), ("DEFAULT", "use_ssl"), ("audit", "enabled"), ("json_rpc", "use_ssl"),
        ("agent", "require_tls"), ("conductor", "conductor_always_validates_images"),
        ("conductor", "disable_support_for_checksum_files"), ("firewall", "manage_firewall")], ("true", "false")),
    **dict.fromkeys([
        ("DEFAULT", "ssl_cert_path"), ("DEFAULT", "ssl_key_path"), ("DEFAULT", "listen_unix_socket"),
        ("ssl", "ca_file"), ("ssl", "cert_file"), ("ssl", "key_file"), ("ssl", "version"), ("ssl", "ciphers"),
        ("api", "unix_socket"), ("healthcheck", "allowed_source_ranges"), ("json_rpc", "allowed_roles"),
        ("json_rpc", "unix_socket"), ("agent", "api_ca_file"), ("iptables", "dnsmasq_interface"),
        ("dnsmasq_pxe_filter", "dhcp_hostsdir")], ("/a/path", "")),
    **dict.fromkeys([("agent", "verify_ca"), ("DEFAULT", "webserver_verify_ca"), ("redfish", "verify_ca")],
                    ("/etc/ssl/own.pem", "True")),
    ("json_rpc", "auth_strategy"): ("http_basic", "noauth"),
    ("conductor", "permitted_image_formats"): ("raw", "raw,gpt,qcow2,iso"),
    ("conductor", "disallowed_deployment_boot_modes"): ("bios", ""),
    ("conductor", "automated_cleaning_step_source"): ("runbook", "autogenerated"),
    ("conductor", "allow_deleting_available_nodes"): ("false", "true"),
    ("conductor", "max_concurrent_deploy"): ("20", "250"),
    ("conductor", "max_concurrent_clean"): ("20", "50"),
    ("pxe_filter", "driver"): ("iptables", "noop"),
}


@pytest.fixture
def written(tmp_path):
    def written(values) -> str:
        file = tmp_path / "service.conf"
        file.write_text("".join(f"[{group}]\n{name} = {value}\n" for (group, name), value in values.items()))
        return str(file)

    return written


def test_every_option_that_requests_a_protection_refuses_the_start(written):
    file = written({option: value for option, (value, _) in PROTECTIONS.items()})
    with pytest.raises(ConfigurationError) as refused:
        service.prepare_config([], config_files=[file])

    told = str(refused.value).splitlines()
    assert PROTECTIONS.keys() == ironic.PROTECTIONS.keys()
    assert sorted(line.partition(" no process")[0] for line in told) == sorted(
        f"{file}: [{group}]{name} = {value}:" for (group, name), (value, _) in PROTECTIONS.items())
    assert all(line.endswith("Then remove this option.") for line in told)


def test_one_with_a_value_that_changes_nothing_is_a_warning(written):
    file = written({option: value for option, (_, value) in PROTECTIONS.items()})
    conf = service.prepare_config([], config_files=[file])

    assert len(unread.lines(conf)) >= len({group for group, _ in PROTECTIONS})


def test_steps_that_do_not_run_are_a_warning(told):
    """Metal3 always sets this option; it requests work, not a protection."""
    assert told("[conductor]\nverify_step_priority_override = management.clear_job_queue:90\n") == [
        "0.conf: [conductor]verify_step_priority_override: no process reads this option."]


def test_the_last_value_counts_and_a_variable_before_it(written, tmp_path, monkeypatch):
    file = written({("api", "enable_ssl_api"): "true"})
    other = tmp_path / "other.conf"
    other.write_text("[api]\nenable_ssl_api = false\n")
    assert service.prepare_config([], config_files=[file, str(other)]).api.port

    monkeypatch.setenv("OS_API__ENABLE_SSL_API", "true")
    with pytest.raises(ConfigurationError, match=r"^OS_API__ENABLE_SSL_API: \[api\]enable_ssl_api = true: no process"):
        service.prepare_config([], config_files=[file, str(other)])


def test_a_reload_does_not_take_a_file_that_requests_a_protection(written, tmp_path):
    conf = service.prepare_config([], config_files=[written({("api", "port"): "1"})])
    written({("agent", "require_tls"): "true"})

    with pytest.raises(ConfigurationError, match=r"\[agent\]require_tls = true: no process reads this option"):
        lifecycle.reload_config(conf)


def test_what_installed_libraries_list_and_the_service_does_not_use_is_named(told):
    groups = ("cors", "healthcheck", "oslo_middleware", "oslo_messaging_kafka")
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
