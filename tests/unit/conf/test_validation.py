"""A process that starts reads every option, and tells all that cannot be used at once."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from oslo_config import cfg

from ironic_rules import service
from ironic_rules.cmd import api, conductor, pxe_filter, standalone
from ironic_rules.conf import ironic, validation
from ironic_rules.conf.conductor import RELEASES
from ironic_rules.conf.inspector import HOOK_ALIASES
from ironic_rules.exceptions import ConfigurationError
from ironic_rules.rpc import transport as rpc_transport
from tests.calls import counted
from tests.walking import walking

Lines = Callable[..., list[str]]
WHOLE, GIB = "a whole number", "a whole number of GiB from 0 to 1024"
GROUP = "at most 255 letters, digits, '-', '_' and '.' are allowed"
URL, BOOLEAN = "an http or https URL", "true or false"

#: group, option, value, what is allowed
WRONG = [
    ("DEFAULT", "host", "no host", "a host name or an IP address"),
    ("DEFAULT", "auth_strategy", "none", "noauth, keystone, http_basic"),
    ("DEFAULT", "pecan_debug", "perhaps", BOOLEAN),
    ("DEFAULT", "enabled_hardware_types", "idrac", "installed are fake-hardware, ipmi, redfish. Hardware"),
    ("DEFAULT", "enabled_hardware_types", "fake-hardware,snmp", "not installed: snmp"),
    ("DEFAULT", "enabled_hardware_types", "redfish,redfish", "once only: redfish"),
    ("DEFAULT", "enabled_boot_interfaces", "fake,pxe", "use ipxe, or redfish-virtual-media"),
    ("DEFAULT", "enabled_deploy_interfaces", "ansible", "use direct"),
    ("DEFAULT", "enabled_inspect_interfaces", "inspector,agent", "uses a running ironic-inspector is not built"),
    ("DEFAULT", "enabled_network_interfaces", "neutron,noop", "not installed: neutron; installed are noop"),
    ("DEFAULT", "enabled_raid_interfaces", "agent", "use redfish or no-raid"),
    ("DEFAULT", "default_power_interface", "ipmitool", "one of [DEFAULT]enabled_power_interfaces is required: fake"),
    ("DEFAULT", "default_network_interface", "neutron", "enabled_network_interfaces is required: noop"),
    ("DEFAULT", "rpc_response_timeout", "soon", WHOLE),
    ("DEFAULT", "log_rotation_type", "weekly", "interval, size, none"),
    ("DEFAULT", "rate_limit_burst", "1.5", WHOLE),
    ("DEFAULT", "use_stderr", "2", BOOLEAN),
    ("DEFAULT", "debug", "maybe", BOOLEAN),
    ("DEFAULT", "log_config_append", "/no/such/file", "it cannot be read: No such file or directory"),
    ("DEFAULT", "default_log_levels", "amqp=WARN,foo", "where LEVEL is a number or one of"),
    ("DEFAULT", "default_log_levels", "foo=LOUD", ": foo=LOUD"),
    ("DEFAULT", "logging_context_format_string", "%(nope)s %(message)s", "there is no %(nope) here"),
    ("DEFAULT", "logging_default_format_string", "%(user)s %(message)s", "there is no %(user) here"),
    # A docstring of oslo.log has it, and no line does.
    ("DEFAULT", "logging_default_format_string", "%(color)s%(reset_color)s", "there is no %(reset_color) here"),
    ("DEFAULT", "logging_debug_format_suffix", "%(message)", "no format of a log line: incomplete format"),
    ("DEFAULT", "logging_exception_prefix", "%(nope)d", "there is no %(nope) here"),
    ("DEFAULT", "logging_user_identity_format", "%(user)", "no format of a log line: incomplete format"),
    ("DEFAULT", "executor_thread_pool_size", "0", "a whole number of at least 1"),
    ("DEFAULT", "rpc_response_timeout", "0", "a whole number of at least 1"),
    ("api", "host_ip", "0.0.0.0/0", "a host name or an IP address"),
    ("api", "port", "65536", "a whole number from 0 to 65535"),
    ("api", "port", "http", "a whole number from 0 to 65535"),
    ("api", "public_endpoint", "ironic.example.org", URL),
    *(("api", "public_endpoint", f"https://192.0.2.1{end}", "without user, password, query and fragment")
      for end in ("?", "/v1?a=b", "#f")),
    *(("api", "allowed_hosts", f"ironic, {host}", "names and addresses without scheme and port")
      for host in ("http://ironic", "ironic:6385", "[::1]:80", "*.example.org", "10.0.0.0/8", "-a", "a..b", "**")),
    ("api", "threads", "0", "a whole number from 1 to 500"),
    ("api", "max_limit", "-1", "a whole number of at least 1"),
    ("api", "max_json_body_size", "10M", "a whole number of at least 1024"),
    ("api", "max_json_depth", "1000", "a whole number from 5 to 500"),
    ("api", "lock_patience", "nan", "a number from 0.0 to 30.0"),
    ("api", "restrict_lookup", "sometimes", BOOLEAN),
    ("api", "ramdisk_heartbeat_timeout", "5m", "a whole number of at least 10"),
    ("api", "disallow_deploy_steps", "send_raw", "INTERFACE.STEP, such as vendor.send_raw"),
    ("auto_discovery", "enabled", "on request", BOOLEAN),
    ("auto_discovery", "max_nodes_per_minute", "0", "a whole number from 1 to 100000"),
    ("auto_discovery", "inspection_scope", "x" * 256, "at most 255 characters"),
    ("conductor", "conductor_group", "rack 7", GROUP),
    ("conductor", "conductor_group", "x" * 256, GROUP),
    ("conductor", "workers", "0", "a whole number from 1 to 256"),
    ("conductor", "workers_pool_size", "1", "a whole number from 2 to 1000"),
    ("conductor", "queue_size", "many", "a whole number of at least 0"),
    ("conductor", "heartbeat_interval", "0.5", "a whole number of at least 1"),
    ("conductor", "heartbeat_timeout", "5", "more than [conductor]heartbeat_interval, 10, is required"),
    ("events", "keep_hours", "337", "at most 336 is allowed, the 24 hours of each of the 14 [events]dead_letter_days"),
    ("conductor", "recovery_interval", "0", "a whole number of at least 1"),
    ("conductor", "inspect_wait_timeout", "abc", "a whole number of at least 0"),
    ("conductor", "inspect_wait_timeout", "99999999999999", "at most 2147483647 is allowed"),
    ("conductor", "deploy_callback_timeout", "30 minutes", "a whole number of at least 0"),
    ("conductor", "pin_release_version", "banana", "one of these is required: 0.1"),
    ("conductor", "power_state_change_timeout", "1", "a whole number of at least 2"),
    ("conductor", "soft_power_off_timeout", "", "a whole number of at least 2"),
    ("conductor", "node_history_max_entries", "-1", "a whole number of at least 0"),
    ("conductor", "shutdown_grace", "86400", "a whole number from 0 to 3600"),
    ("database", "max_retries", "forever", WHOLE),
    ("database", "pool_timeout", "-1", "a whole number of at least 0"),
    ("database", "retry_interval", "-1", "a whole number of at least 0"),
    ("database", "connection_recycle_time", "1h", WHOLE),
    ("deploy", "http_url", "ftp://192.0.2.1/", "a URL is required that begins with http:// or https://"),
    ("deploy", "http_url", "192.0.2.1:8080", "a URL is required that begins with http:// or https://"),
    ("deploy", "http_root", "$no_such_option/httpboot", "no_such_option"),
    ("deploy", "external_callback_url", "ftp://192.0.2.10", URL),
    ("deploy", "power_off_after_deploy_failure", "nope", BOOLEAN),
    ("deploy", "step_priorities", "bios.apply_configuration:high", "VALUE is a whole number from 0 to 2147483647"),
    ("deploy", "step_priorities", "bios.apply_configuration", "KEY:VALUE entries"),
    ("inspection_rules", "mask_secrets", "true", "always, never, sensitive"),
    ("inspection_rules", "supported_interfaces", "^(agent", "a regular expression"),
    ("inspection_rules", "keep_revisions", "-1", "a whole number from 0 to 100000"),
    ("inspection_rules", "max_regex_subject", "1", "a whole number from 256 to 16777216"),
    ("inspector", "add_ports", "none", "all, active, pxe, disabled"),
    ("inspector", "keep_ports", "disabled", "all, present, added"),
    ("inspector", "update_pxe_enabled", "None", BOOLEAN),
    ("inspector", "hooks", "$default_hooks, root_device", "not installed: root_device"),
    ("inspector", "hooks", "ports,ports", "once only: ports"),
    ("inspector", "disk_partitioning_spacing", "1.5", GIB),
    ("inspector", "disk_partitioning_spacing", "-1", GIB),
    ("inspector", "cpu_capabilities", "vmx", "KEY:VALUE entries"),
    ("inspector", "callback_endpoint_override", "http://", URL),
    ("inspector", "callback_endpoint_override", "https://me@192.0.2.1", "without user, password, query and fragment"),
    ("inspector", "require_managed_boot", "auto", BOOLEAN),
    ("inventory", "data_backend", "swift", "database, none. The object store of Ironic is not offered: use database"),
    ("inventory", "data_backend", "Database", "database, none"),
    ("inventory", "max_versions", "0", "a whole number of at least 1"),
    ("ipmi", "command_retry_timeout", "0", "a whole number of at least 1"),
    ("ipmi", "min_command_interval", "-5", "a whole number of at least 0"),
    ("oslo_messaging_rabbit", "heartbeat_rate", "0", "a whole number of at least 1"),
    ("oslo_messaging_rabbit", "heartbeat_timeout_threshold", "1m", WHOLE),
    ("oslo_messaging_rabbit", "rabbit_quorum_queue", "maybe", BOOLEAN),
    ("pxe_filter", "collect_time", "nan", "a number from 0 to 1"),
    ("pxe_filter", "sync_period", "0", "a whole number of at least 1"),
    ("pxe_filter", "conductor_groups", "rack1,rack 2", GROUP),
    ("pxe_filter", "hosts_files", "70000", "a whole number from 0 to 65536"),
    ("pxe_filter", "reload_after", "10", "a whole number of at least 1000"),
    ("pxe_filter", "notify", "auto", BOOLEAN),
    ("pxe_filter", "supported_inspect_interfaces", "agnet", "not installed: agnet; installed are agent, fake"),
    ("pxe_filter", "metrics_host", "any where", "a host name or an IP address"),
    ("pxe_filter", "metrics_port", "-1", "a whole number from 0 to 65535"),
    ("redfish", "auth_type", "digest", "auto, session, basic. HTTP digest is not offered"),
    ("redfish", "connection_attempts", "0", "a whole number from 1 to 100"),
    ("redfish", "connection_cache_size", "-1", "a whole number of at least 0"),
]
NEED_DRIVER = "[auto_discovery]\nenabled = true\n"


@pytest.fixture
def lines(tmp_path) -> Lines:
    """``lines(text)`` returns the lines with which a start with that file is refused."""

    def read(text: str, **roles: bool) -> list[str]:
        (tmp_path / "service.conf").write_text(text)
        with pytest.raises(ConfigurationError) as caught:
            service.prepare_config([], config_files=[str(tmp_path / "service.conf")],
                                   **(roles or {"api": True, "conductor": True}))
        return str(caught.value).splitlines()

    return read


def sections(values: list[tuple[str, str, str]]) -> str:
    return "\n".join(f"[{group}]\n{name} = {value}" for group, name, value in values)


@walking("group, name, value, told", WRONG)
def test_a_wrong_value_is_told_with_file_group_option_and_what_is_allowed(lines, tmp_path, group, name, value, told):
    line, = lines(sections([(group, name, value)]))

    place, option, text = line.split(": ", 2)
    shown = re.escape(value[:200])
    assert (place, re.match(rf"\[{group}\]{name} = {shown}", option) is not None) == (
        str(tmp_path / "service.conf"), True)
    assert told in text


def test_all_wrong_values_are_told_at_once(lines):
    # One of each option, without those whose values are wrong only together with valid ones.
    wrong = list({(group, name): (group, name, value) for group, name, value, _ in WRONG
                  if not name.startswith(("default_", "heartbeat_timeout", "log_config_append"))}.values())
    told = [re.search(r": \[(\w+)\](\w+)", line).groups() for line in lines(sections(wrong))]

    assert {(group, name) for group, name, _ in wrong} - set(told) == set()
    assert len(wrong) >= 60


#: A file for log_config_append with a handler that cannot begin, and one without.
LOGGERS = "[loggers]\nkeys = root\n[logger_root]\nlevel = INFO\nhandlers = a\n"
FILE = f"{LOGGERS}[handlers]\nkeys = a\n[handler_a]\nclass = StreamHandler\nargs = ()\n[formatters]\nkeys =\n"


@pytest.mark.parametrize(("text", "option", "told"), [
    ("use_syslog = true\nsyslog_log_facility = nope", "syslog_log_facility = nope", "'LOG_LOCAL7'"),
    ("log_rotation_type = Interval\nlog_rotate_interval_type = weekday\nlog_rotate_interval = 9",
     "log_rotate_interval = 9", "a day from 0 (Monday) to 6"),
    ("log_rotation_type = interval\nlog_rotate_interval = 0", "log_rotate_interval = 0", "of at least 1"),
    ("use_journal = true", "use_journal = true", "install systemd-python"),
])
def test_options_of_the_log_that_do_not_fit_are_told(lines, monkeypatch, text, option, told):
    monkeypatch.setattr("oslo_log.handlers.journal", None)

    line, = lines(f"[DEFAULT]\n{text}\n")

    assert f": [DEFAULT]{option}: " in line
    assert told in line


@pytest.mark.parametrize(("text", "told"), [
    (FILE.replace("root", "main"), "[loggers]keys must have root"),
    (FILE.replace("handler_a", "handler_b"), "the section [handler_a] is missing, which [handlers]keys names"),
    (LOGGERS, "it is no configuration of logging: No section: 'handlers'"),
    ("text", "it is no configuration of logging: File contains no section headers"),
])
def test_a_file_for_the_log_that_cannot_be_used_is_told(lines, tmp_path, text, told):
    (tmp_path / "log.conf").write_text(text)

    line, = lines(f"[DEFAULT]\nlog_config_append = {tmp_path}/log.conf\n")

    assert told in line


def test_other_options_of_the_log_have_no_effect_beside_a_file_for_it(tmp_path):
    (tmp_path / "log.conf").write_text(FILE)
    (tmp_path / "service.conf").write_text(
        f"[DEFAULT]\nlog_config_append = {tmp_path}/log.conf\ndefault_log_levels = x\nuse_journal = true\n")

    service.prepare_config([], config_files=[str(tmp_path / "service.conf")])


def test_calls_over_any_transport_have_a_time_limit(tmp_path):
    (tmp_path / "service.conf").write_text("[DEFAULT]\nrpc_response_timeout = -5\nexecutor_thread_pool_size = 0\n")

    with pytest.raises(ConfigurationError) as caught:
        service.prepare_config([], config_files=[str(tmp_path / "service.conf")], one_process=True)

    assert len(str(caught.value).splitlines()) == 2


def test_a_default_that_does_not_suffice_is_told(lines):
    assert lines("[auto_discovery]\nenabled = true\n") == [
        "default: [auto_discovery]driver is not set: with [auto_discovery]enabled, one of "
        "[DEFAULT]enabled_hardware_types is required: fake-hardware."]


def test_the_conductor_group_is_in_lower_case_as_that_of_a_node(tmp_path):
    (tmp_path / "service.conf").write_text("[conductor]\nconductor_group = Rack-7\n")

    conf = service.prepare_config([], config_files=[str(tmp_path / "service.conf")], conductor=True)

    assert conf.conductor.conductor_group == "rack-7"


def test_a_secret_is_not_shown(monkeypatch):
    conf = cfg.ConfigOpts()
    conf.register_opts([cfg.IntOpt("pin", secret=True)], group="safe")
    monkeypatch.setenv("OS_SAFE__PIN", "hunter2")
    conf([], default_config_files=[], default_config_dirs=[])

    assert validation.problems(conf) == ["OS_SAFE__PIN: [safe]pin = (not shown): a whole number is required."]


def test_the_password_of_a_url_is_not_shown(lines):
    line, = lines("[api]\npublic_endpoint = https://me:hunter2@192.0.2.1\n")

    assert "[api]public_endpoint = https://me:" in line
    assert "hunter2" not in line


def test_the_text_of_a_value_cannot_forge_a_line(lines):
    line, = lines("[inventory]\ndata_backend = a\n  b: [api]port\x1b[2J\n")

    assert line.count("\n") == 0
    assert "\x1b" not in line


def test_an_option_under_its_old_name_is_told(lines):
    line, = lines(f"[DEFAULT]\nrpc_thread_pool_size = {'x' * 300}\n")

    assert "[DEFAULT]executor_thread_pool_size = xxx" in line
    assert "(100 more characters)" in line


def test_a_release_to_pin_to_is_read_and_checked_where_ironic_has_it_too(lines, tmp_path):
    line, = lines("[DEFAULT]\npin_release_version = 29.0\n")
    assert "[conductor]pin_release_version = 29.0: one of these is required: 0.1" in line
    (tmp_path / "service.conf").write_text("[DEFAULT]\npin_release_version = 0.1\n")
    conf = service.prepare_config([], config_files=[str(tmp_path / "service.conf")], conductor=True)
    assert conf.conductor.pin_release_version == "0.1"


def test_the_installed_release_is_one_to_pin_to():
    """A new release is added there."""
    assert service.version().split(".")[:2] == RELEASES[-1].split(".")


def test_the_last_of_several_files_is_named(tmp_path):
    first, second = tmp_path / "a.conf", tmp_path / "b.conf"
    first.write_text("[inventory]\nmax_versions = 0\n")
    second.write_text("[inventory]\nmax_versions = -1\n")
    with pytest.raises(ConfigurationError, match=rf"^{second}: \[inventory\]max_versions = -1: "):
        service.prepare_config(["--config-file", str(first), "--config-file", str(second)])


def test_what_only_another_process_needs_may_be_absent(tmp_path):
    # Plug-ins are installed where conductors run, and the driver of discovery is set where the API runs.
    (tmp_path / "service.conf").write_text(f"{NEED_DRIVER}[DEFAULT]\nenabled_hardware_types = of-another-package\n")

    conf = service.prepare_config([], config_files=[str(tmp_path / "service.conf")])

    assert conf.enabled_hardware_types == ["of-another-package"]


@pytest.mark.parametrize(("name", "value"), [
    ("hooks", "validate_interfaces, ports,"), ("disk_partitioning_spacing", "true"),
    ("callback_endpoint_override", "https://[2001:db8::1]:6385/ironic")])
def test_what_ironic_accepts_is_accepted(tmp_path, name, value):
    (tmp_path / "service.conf").write_text(f"[inspector]\n{name} = {value}\n")

    service.prepare_config([], config_files=[str(tmp_path / "service.conf")], api=True, conductor=True)

    assert "validate_interfaces" in HOOK_ALIASES


@pytest.mark.parametrize("command", [api, conductor, pxe_filter, standalone])
def test_each_command_refuses_to_start(command, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "service.conf").write_text("[inventory]\ndata_backend = swift\nmax_versions = 0\n")

    assert command.main(["--config-file", str(tmp_path / "service.conf")]) == 2

    told = capsys.readouterr().err.splitlines()
    assert [re.search(r"service.conf: \[inventory\](\w+)", line).group(1) for line in told] == [
        "data_backend", "max_versions"]
    assert list(tmp_path.iterdir()) == [tmp_path / "service.conf"]


@pytest.mark.parametrize(("group", "name"), ironic.VALUES)
def test_every_value_with_an_advice_is_refused(lines, group, name):
    known = ironic.VALUES[group, name]
    # Lists are given whole: looking up what is installed takes longest.
    for value in [",".join(known)] if name.startswith("enabled_") else known:
        line, = lines(sections([(group, name, value)]))
        assert all(advice in line for advice in (known.values() if "," in value else [known[value]]))


def test_all_options_are_read_in_few_calls(tmp_path):
    text = "[DEFAULT]\ntransport_url = rabbit://guest:guest@127.0.0.1:5672/\n"
    (tmp_path / "service.conf").write_text(text)
    conf = service.prepare_config([], config_files=[str(tmp_path / "service.conf")], groups=["DEFAULT"])
    rpc_transport.register_opts(conf)

    problems, calls = counted(lambda: validation.problems(conf, api=True, conductor=True))

    assert problems == []
    assert len(list(conf._all_opt_infos())) > 190
    # It takes 3 ms.
    assert calls < 50_000


def test_options_that_hooks_check_themselves_are_told_with_all_others(tmp_path):
    file = tmp_path / "service.conf"
    file.write_text("[inspector]\nhooks = $default_hooks,pci-devices,cpu-capabilities,physical-network,accelerators\n"
                    "pci_device_alias = 10de:1eb8\ncpu_capabilities = vmx:a b\n"
                    "physical_network_cidr_map = nosuch\nknown_accelerators = /nosuch/file\nhook_timeout = soon\n")

    with pytest.raises(ConfigurationError) as caught:
        service.prepare_config([], config_files=[str(file)], api=True, conductor=True)

    told = str(caught.value).splitlines()
    named = {option: sum(f"[inspector]{option}" in line for line in told) for option in (
        "pci_device_alias", "cpu_capabilities", "physical_network_cidr_map", "known_accelerators", "hook_timeout")}
    assert named == dict.fromkeys(named, 1), told
    assert len(told) == 5
    assert all(line.startswith(f"{file}: [inspector]") for line in told), told
    with pytest.raises(ConfigurationError) as caught:
        service.prepare_config([], config_files=[str(file)], api=True)
    assert len(str(caught.value).splitlines()) == 1  # an API has no hooks
