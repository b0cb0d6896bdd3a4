from __future__ import annotations

import logging
import os
import signal
import threading

import pytest
import sqlalchemy as sa
from oslo_config import cfg
from oslo_db import exception as db_exc

from ironic_rules import service
from ironic_rules.cmd import conductor, dbsync, lifecycle, pxe_filter, simulate, standalone, status
from ironic_rules.exceptions import ConfigurationError
from tests.walking import walking


@pytest.fixture(autouse=True)
def restored_signals():
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)
    signal.set_wakeup_fd(-1)


@walking("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_start(number):
    lifecycle.StopSignals(cfg.ConfigOpts())
    with pytest.raises(lifecycle.Interrupted):
        os.kill(os.getpid(), number)
    os.kill(os.getpid(), number)  # stopping is not affected


@walking("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_wait(number):
    signals = lifecycle.StopSignals(cfg.ConfigOpts())
    threading.Timer(0.05, os.kill, (os.getpid(), number)).start()
    signals.wait()
    os.kill(os.getpid(), number)


@walking("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_that_another_thread_receives_ends_the_wait(number):
    signals, ended = lifecycle.StopSignals(cfg.ConfigOpts()), threading.Event()
    other = threading.Thread(target=ended.wait, args=(10,), daemon=True)
    other.start()
    threading.Timer(0.05, signal.pthread_kill, (other.ident, number)).start()
    # Without it, a wait that misses the signal would not end.
    rescue = threading.Timer(5, signals.stop)
    rescue.start()
    signals.wait()
    was_needed = not rescue.is_alive()
    rescue.cancel()
    ended.set()
    assert not was_needed


def test_the_wait_can_be_ended_from_within():
    signals = lifecycle.StopSignals(cfg.ConfigOpts())
    signals.stop()
    signals.wait()


@pytest.mark.parametrize("error", [ConfigurationError("no way"), db_exc.DBError(ValueError("no way\nSELECT")),
                                   sa.exc.ArgumentError("no way\nAdvice")])
def test_what_keeps_a_command_from_running_is_one_line_and_status_2(capsys, error):
    def command(argv):
        raise error

    assert lifecycle.guarded(command, []) == 2
    passes = isinstance(error, db_exc.DBError)
    assert lifecycle.guarded(command, [], unavailable=75) == (75 if passes else 2)
    assert capsys.readouterr().err.endswith(": no way\n")


def test_a_folder_for_the_log_that_is_missing_is_told(tmp_path, capsys):
    (tmp_path / "service.conf").write_text(f"[DEFAULT]\nlog_dir = {tmp_path}/nowhere\n")
    assert dbsync.main(["--config-file", str(tmp_path / "service.conf"), "version"]) == 2
    assert f"{tmp_path}/nowhere" in capsys.readouterr().err


@pytest.mark.parametrize(("command", "text", "told"), [
    (dbsync, "[database]", service.NO_DATABASE),
    (dbsync, "[database]\nmax_retries = x", "[database]max_retries = x: a whole number is required."),
    (dbsync, "[DEFAULT]\nlog_file = /proc/none/a.log",
     "[DEFAULT]log_file cannot be written: No such file or directory: /proc/none/a.log."),
    (pxe_filter, "[database]", "[pxe_filter]dhcp_hostsdir is not set."),
    (pxe_filter, "[pxe_filter]\ndhcp_hostsdir = /a\ndnsmasq_pid_file = /b,/c",
     "[pxe_filter]dnsmasq_pid_file must name one file for each folder of dhcp_hostsdir."),
    (conductor, "[DEFAULT]\nenabled_hardware_types = x",
     "[DEFAULT]enabled_hardware_types = x: not installed: x; installed are fake-hardware, ipmi, redfish."),
])
def test_a_refused_option_is_one_line_with_file_and_group(tmp_path, capsys, command, text, told):
    file = tmp_path / "service.conf"
    file.write_text(text + "\n")

    assert command.main(["--config-file", str(file), *(["upgrade"] if command is dbsync else [])]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.partition(": ")[2] == f"{file}: {told}"


@pytest.mark.parametrize("command", [conductor, simulate, standalone, status], ids=lambda command: command.__name__)
@pytest.mark.parametrize(("name", "told"), [
    ("latin.conf", "latin.conf: not UTF-8 at byte 10004, in line 3"), ("", ": Is a directory"),
    ("latin.conf/x", "latin.conf/x: Not a directory")])
def test_a_file_that_cannot_be_read_is_told_in_one_line(tmp_path, capsys, command, name, told):
    (tmp_path / "latin.conf").write_bytes(b"#\n#%s\n\xe9\n" % (b"x" * 10_000))

    rest = ["upgrade", "check"] if command is status else []
    assert command.main(["--config-file", f"{tmp_path}/{name}", *rest]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith(told)


@pytest.fixture
def running(tmp_path):
    """The configuration of a process whose log is a file, and how many lines are in that."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    file = tmp_path / "service.conf"
    file.write_text(f"[DEFAULT]\nlog_file = {tmp_path}/log\n")
    conf = service.prepare_config(["--config-file", str(file)])
    service.setup_logging(conf)
    made = root.handlers[:]
    yield conf
    for handler in (*made, *root.handlers):
        handler.close()
    root.handlers[:] = handlers
    root.setLevel(level)


#: A file for log_config_append that fails when all handlers of before have been removed.
FAILING = ("[loggers]\nkeys=root\n[logger_root]\nhandlers=a\n[formatters]\nkeys=\n[handlers]\nkeys=a\n"
           "[handler_a]\nclass=FileHandler\nargs=('/nonexistent/log', 'a')\n")


@pytest.mark.parametrize(("text", "told"), [
    (b"debug = maybe", "service.conf: [DEFAULT]debug = maybe: true or false is required."),
    (b"debug = true\n[api]\nport = x", "service.conf: [api]port = x: a whole number from 0 to 65535 is required."),
    (b"debug = true\n# caf\xe9", "service.conf: not UTF-8 at byte"),
    (b"debug = true\nnonsense", "service.conf, line 4: No ':' or '=' found"),
    (b"debug = true\nlog_config_append = nope", "service.conf: [DEFAULT]log_config_append = nope: it cannot be read"),
    (b"debug = true\nlog_config_append = {folder}/append", "service.conf: [DEFAULT]log_config_append = "),
    (b"debug = true\nlog_config_append = {folder}/append", "/nonexistent/log"),
])
def test_files_that_cannot_be_used_change_nothing_in_a_running_process(running, tmp_path, capsys, text, told):
    (tmp_path / "append").write_text(FAILING)
    file = tmp_path / "service.conf"
    good = file.read_bytes()
    before = logging.getLogger().handlers[:], logging.getLogger().level

    file.write_bytes(good + text.replace(b"{folder}", bytes(tmp_path)))
    lifecycle.reload(running)

    line, = (line for line in (tmp_path / "log").read_text().splitlines() if " ERROR " in line)
    assert "The configuration is not reloaded: " in line
    assert line.count(told) == 1
    assert capsys.readouterr().err == ""
    assert (running.debug, running.log_config_append) == (False, None)
    assert (logging.getLogger().handlers, logging.getLogger().level) == before

    file.write_bytes(good + b"debug = true\n")
    lifecycle.reload(running)
    assert running.debug
    assert logging.getLogger().level == logging.DEBUG


def test_a_file_for_the_log_that_fails_when_it_is_evaluated_is_told(running, tmp_path):
    (tmp_path / "append").write_text(FAILING)
    running.set_override("log_config_append", f"{tmp_path}/append")

    with pytest.raises(ConfigurationError, match=r"^\[DEFAULT\]log_config_append = .*append: .*/nonexistent/log"):
        service.setup_logging(running)


def test_a_log_that_changes_still_masks_passwords(running, tmp_path):
    (tmp_path / "append").write_text(FAILING.replace("/nonexistent/log", f"{tmp_path}/second"))
    with (tmp_path / "service.conf").open("a") as file:
        file.write(f"log_config_append = {tmp_path}/append\n")

    lifecycle.reload(running)
    logging.getLogger().warning("ftp://user:s3cret@files.example.org/")

    assert "ftp://user:******@files" in (tmp_path / "second").read_text()


@pytest.mark.parametrize(("module", "told"), [
    ("pymysql", "pip install '.[mysql]'"), ("keystonemiddleware", "pip install '.[keystone]'"),
    ("MySQLdb", "mysql+pymysql://")])
def test_what_an_extra_would_bring_is_told(capsys, module, told):
    def command(argv):
        raise ModuleNotFoundError(f"No module named {module!r}", name=module)

    assert lifecycle.guarded(command, []) == 2
    assert told in capsys.readouterr().err


def test_a_module_that_no_configuration_asks_for_is_a_fault_of_ours():
    def command(argv):
        raise ModuleNotFoundError("No module named 'nonsense'", name="nonsense")

    with pytest.raises(ModuleNotFoundError):
        lifecycle.guarded(command, [])


def test_what_keeps_a_command_from_running_is_in_a_log_that_is_open(running, tmp_path, capsys):
    def command(argv):
        raise ConfigurationError("no way\nnor there")

    assert lifecycle.guarded(command, []) == 2
    assert [line.partition(": ")[2] for line in capsys.readouterr().err.splitlines()] == ["no way", "nor there"]
    log = (tmp_path / "log").read_text()
    assert (log.count("no way"), log.count("nor there"), log.count("Traceback")) == (1, 1, 0)


def test_an_error_of_the_service_is_one_line_where_the_log_is_a_file(running, capsys):
    def command(argv):
        raise KeyError("nonsense")

    with pytest.raises(KeyError):
        lifecycle.guarded(command, [])
    assert capsys.readouterr().err.endswith(": unexpected error KeyError: 'nonsense'; the log has the details.\n")


def test_a_command_that_is_interrupted_at_its_start_ends_at_once(capsys, monkeypatch):
    statuses = []
    monkeypatch.setattr(lifecycle, "exit_now", lambda status=0: statuses.append(status))

    def command(argv):
        raise lifecycle.Interrupted

    lifecycle.guarded(command, [])
    assert statuses == [0]
    assert "stopped while it was starting" in capsys.readouterr().err


def test_a_folder_belongs_to_one_process(tmp_path):
    with lifecycle.lock_folder(str(tmp_path)):
        with pytest.raises(ConfigurationError, match="already uses"):
            lifecycle.lock_folder(str(tmp_path))
    lifecycle.lock_folder(str(tmp_path)).close()


def test_a_folder_that_is_not_writable_is_told():
    with pytest.raises(ConfigurationError, match="Cannot write into"):
        lifecycle.lock_folder("/nonexistent")


@pytest.mark.parametrize("command", [dbsync, simulate, standalone, status], ids=lambda command: command.__name__)
def test_commands_tell_their_version(command, capsys):
    try:
        code = command.main(["--version"])
    except SystemExit as exc:
        code = exc.code
    assert (code, bool(capsys.readouterr().out.strip())) == (0, True)


def test_a_state_folder_that_can_not_be_made_is_told(tmp_path, capsys):
    (tmp_path / "file").touch()
    assert standalone.main(["--config-dir", str(tmp_path), "--state-dir", str(tmp_path / "file")]) == 2
    assert "state folder" in capsys.readouterr().err
