"""Log lines: as those of oslo.log, without secrets, and none that another text has forged."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import logging
import re
import threading
from pathlib import Path

import pytest
from oslo_context import context as oslo_context
from oslo_log import formatters

from ironic_rules import log_lines, service
from ironic_rules.context import RequestContext
from ironic_rules.models import known_secrets


@pytest.fixture
def written() -> io.StringIO:
    """The log of this thread after set-up, with a handler of our own in place of standard error."""
    root, out, ours = logging.getLogger(), io.StringIO(), threading.get_ident()
    before, level = root.handlers[:], root.level
    conf = service.prepare_config([], config_files=[])
    service.setup_logging(conf)
    made = [handler for handler in root.handlers if handler not in before]
    for handler in made:
        if isinstance(handler, logging.StreamHandler):
            handler.setStream(out)
        # Threads that other tests have left, such as those of oslo.messaging, log when they like.
        handler.addFilter(lambda record: record.thread == ours)
    yield out
    root.handlers[:] = before
    root.setLevel(level)


def test_passwords_of_urls_are_not_logged(written: io.StringIO) -> None:
    log = logging.getLogger("ironic_rules.test")
    try:
        raise OSError("cannot read ftp://user:s3cret@files.example.org/image")
    except OSError:
        log.exception("No image at %s", "https://user:s3cret@images.example.org/x")
    text = written.getvalue()
    assert "s3cret" not in text
    assert "https://user:******@images.example.org/x" in text and "ftp://user:******@files" in text


_FORMATS = (
    {},
    {"logging_default_format_string": "%(levelname)-8s %(user_identity)s|%(thread)d %(message)s",
     "logging_context_format_string": "%(name)s:%(lineno)d %(request_id)s %(message)s 100%%",
     "logging_user_identity_format": "%(user)s at %(domain)s"},
    {"log_date_format": "%d.%m.%Y %H"},
    # With values that only oslo.log's formatter has.
    {"logging_context_format_string": "%(isotime)s %(project)s %(message)s"},
    {"logging_user_identity_format": "%(roles)s %(user_name)s"},
    {"logging_default_format_string": "%(error_summary)s %(message)s"},
)
_CONTEXTS = (
    None,
    {},
    {"request_id": "req-1", "user_id": "u1", "project_id": "p1", "system_scope": "all", "user_domain_id": "default"},
    {"global_request_id": "req-12345678-1234-1234-1234-123456789012", "roles": ["reader"], "is_public_api": True},
    {"resource_uuid": "7cf4b1a3"},
)
_RECORDS = (
    {"level": logging.INFO, "msg": "%s is 100%% of %d", "args": ("ä", 3)},
    {"level": logging.INFO, "msg": "100% without arguments", "args": ()},
    {"level": logging.WARNING, "msg": "a warning", "args": ()},
    {"level": logging.DEBUG, "msg": "only for developers", "args": ()},
)


@pytest.mark.parametrize("options", _FORMATS)
def test_lines_are_those_of_oslo_log(options: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oslo_context, "_request_store", type(oslo_context._request_store)())
    conf = service.prepare_config([], config_files=[])
    for name, value in options.items():
        conf.set_override(name, value)
    inner = formatters.ContextFormatter(datefmt=conf.log_date_format, config=conf, project="p", version="1")
    ours = log_lines.MaskingFormatter(inner)
    for number, (values, fields) in enumerate(itertools.product(_CONTEXTS, _RECORDS)):
        if values is not None:
            RequestContext(**values)

        def record(fields: dict = fields, number: int = number) -> logging.LogRecord:
            made = logging.LogRecord("ironic_rules.x", pathname="/p/x.py", lineno=7, exc_info=None, func="f", **fields)
            made.created, made.msecs = 1.7e9 + number // 2, 41.0
            return made

        assert ours.format(record()) == inner.format(record())
    given = {"instance_uuid": "3f0c"}
    records = [logging.makeLogRecord({"levelno": logging.INFO, "levelname": "INFO", "name": "x", "msg": "m",
                                      "created": 1.7e9, "msecs": 0.0, **given}) for _ in range(2)]
    assert ours.format(records[0]) == inner.format(records[1])


def test_lines_that_are_lost_are_reported_once_per_hour(capsys: pytest.CaptureFixture[str]) -> None:
    now = [5.0]
    handler = logging.FileHandler("/dev/full")
    handler.handleError = log_lines.LostLines(handler, lambda: now[0])  # type: ignore[method-assign]
    record = logging.LogRecord("x", logging.INFO, __file__, 1, "ftp://user:s3cret@files.example.org/", (), None)

    for seconds in (0, 10, 3580, 20, 0):
        now[0] += seconds
        handler.emit(record)
    with contextlib.suppress(OSError):  # of what could not be written
        handler.close()

    first, second = capsys.readouterr().err.splitlines()
    assert "the log /dev/full cannot be written: [Errno 28] No space left on device. Lines lost so far: 1." in first
    assert "Lines lost so far: 4." in second


def logged(written: io.StringIO, name: str, *args: object, **more: object) -> list[str]:
    """Return the lines of one record of a library's logger, at the default level."""
    logging.getLogger(name).warning(*args, **more)  # type: ignore[arg-type]
    return written.getvalue().splitlines()


FORGED = "2026-01-01 00:00:00.000 1 INFO ironic_rules.policy [-] admin logged in"


@pytest.mark.parametrize("name", ["sushy.connector", "urllib3.connectionpool", "oslo.messaging._drivers", "x"])
def test_a_known_secret_is_in_no_line_of_any_logger(written: io.StringIO, name: str) -> None:
    known_secrets.KNOWN.learn({"redfish_password": 'hunter"22\\x', "redfish_address": "https://me:of-a-url@bmc"})
    known_secrets.KNOWN.add_login("me", "of-a-login")
    for text in ('hunter"22\\x', json.dumps({"a": 'hunter"22\\x'}), repr(['hunter"22\\x']), "?p=hunter%2222%5Cx",
                 "of-a-url", "Basic bWU6b2YtYS1sb2dpbg==", "xof-a-loginx"):
        logged(written, name, "The server said: %s", text)
        logged(written, name, "The server said: %(text)s", {"text": text})
        try:
            raise ValueError(text)
        except ValueError:
            logged(written, name, "A failure", exc_info=True)
    told = written.getvalue()
    assert not any(secret in told for secret in ("hunter", "of-a-", "bWU6"))
    assert told.count("The server said: ") == 14 and told.count("ValueError: ") >= 7 and "******" in told


def test_secrets_of_the_configuration_are_known(tmp_path: Path) -> None:
    file = tmp_path / "ironic-rules.conf"
    file.write_text("[database]\nconnection = mysql+pymysql://me:of%2Bdatabase@db/x\n"
                    "[keystone_authtoken]\npassword = of-keystone\n")
    conf = service.prepare_config([], config_files=[str(file)])
    try:
        assert known_secrets.KNOWN.hide("of+database of%2Bdatabase of-keystone") == "****** ****** ******"
    finally:
        service.prepare_config([], config_files=[])
    assert conf.database.connection and known_secrets.KNOWN.hide("of-keystone") == "of-keystone"


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n", "\x85", "\u2028", "\x0b"])
def test_no_text_can_forge_a_line(written: io.StringIO, end: str) -> None:
    lines = logged(written, "sushy", "An error: %s", f"x{end}{FORGED}\x1b[2J")
    assert len(lines) == 1 and FORGED in lines[0] and "\x1b" not in lines[0] and "\\x1b[2J" in lines[0]


@pytest.mark.parametrize("formatter", [None, logging.Formatter("%(levelname)s %(message)s")])
def test_a_traceback_has_lines_and_none_of_them_begins_as_another_record(
        written: io.StringIO, formatter: logging.Formatter | None) -> None:
    if formatter is not None:
        for handler in logging.getLogger().handlers:
            handler.setFormatter(log_lines.MaskingFormatter(formatter))
    try:
        raise ValueError(f"x\n{FORGED}\r{FORGED}\x1b[2J")
    except ValueError:
        lines = logged(written, "sushy", "It failed", exc_info=True)
    assert sum("test_log_masking.py" in line for line in lines) == 1 and len(lines) >= 5
    assert not any(line.startswith(FORGED) for line in lines)
    assert "\x1b" not in written.getvalue() and "\r" not in written.getvalue()
    if formatter is not None:
        assert all(line.startswith("  ") for line in lines[1:])
    else:
        assert all(re.match(r"\d{4}-\d\d-\d\d \S+ \d+ (WARNING|ERROR) sushy ", line) for line in lines)
        assert not any(line.startswith("2026-01-01") for line in lines)


def test_a_line_has_a_limit(written: io.StringIO) -> None:
    line, = logged(written, "sushy", "An error: %s", "x" * 2**20)
    assert len(line) < 20_000 and "more characters" in line


def test_handlers_of_other_loggers_hide_secrets_too() -> None:
    handler = logging.StreamHandler(out := io.StringIO())
    logger = logging.getLogger("with_a_handler_of_its_own")
    logger.addHandler(handler)
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    try:
        service.setup_logging(service.prepare_config([], config_files=[]))
        known_secrets.KNOWN.add("of-another-logger")
        logger.warning("x %s\ny", "of-another-logger")
    finally:
        logger.removeHandler(handler)
        root.handlers[:] = before
        root.setLevel(level)
    assert out.getvalue() == "x ******\\ny\n"


def test_short_texts_are_hidden_as_words_only() -> None:
    known = known_secrets.KnownSecrets()
    for text in ("ab1", "admin", "password"):
        known.add(text)
    assert known.hide("ab1 admin 'admin' administrator sysadmin ipmi_password") == (
        "ab1 ****** '******' administrator sysadmin ipmi_******")


def test_the_oldest_secrets_are_forgotten_except_those_of_the_configuration() -> None:
    known = known_secrets.KnownSecrets(most=1000)
    known.keep(["of-the-configuration"])
    for number in range(3000):
        known.add(f"secret-{number:05}")
    assert known.hide("of-the-configuration secret-00000 secret-02500 secret-02999") == (
        "****** secret-00000 ****** ******")


def test_many_long_secrets_are_known() -> None:
    known = known_secrets.KnownSecrets()
    long = [f"{number:04}" * 175 for number in range(3000)]
    for text in long:
        known.add(text)
    assert known.hide(f"a {long[-1]}b, {long[-2]}") == "a ******b, ******"
    # The oldest ones are forgotten: what a process remembers has a limit in characters, too.
    assert known.hide(long[0]) == long[0]


def test_a_secret_that_begins_within_another_word_or_secret_is_hidden() -> None:
    known = known_secrets.KnownSecrets()
    for text in ("abcd", "cdXYZ12345", "12345-and-more"):
        known.add(text)
    assert known.hide("1abcdXYZ12345, abcdXYZ12345-and-more.") == "1ab******, ab******."


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> known_secrets.KnownSecrets:
    """A set of known secrets of its own, since its secrets are words of other tests."""
    monkeypatch.setattr(known_secrets, "KNOWN", known_secrets.KnownSecrets())
    return known_secrets.KNOWN


def test_only_what_others_have_sent_is_hidden(written: io.StringIO, known: known_secrets.KnownSecrets) -> None:
    for text in ("INFO", "WARNING", "sushy", "req-of-a-caller", "id-of-a-caller"):
        known.add(text)
    RequestContext(user_id="id-of-a-caller", request_id="req-of-a-caller")
    try:
        lines = logged(written, "sushy", "INFO of id-of-a-caller")
    finally:
        oslo_context._request_store.context = None
    assert re.search(r" WARNING sushy \[.*req-of-a-caller.*id-of-a-caller.*\] \*{6} of \*{6}$", lines[0]), lines


def test_a_line_of_json_remains_json(known: known_secrets.KnownSecrets) -> None:
    for text in ("4242", "message", "levelname", "hunter22"):
        known.add(text)
    formatter = log_lines.MaskingFormatter(formatters.JSONFormatter())
    try:
        raise ValueError("hunter22")
    except ValueError as exc:
        record = logging.LogRecord("x", logging.WARNING, "/p/x.py", 4242, "a %s", ("hunter22\n\x1b",),
                                   (type(exc), exc, exc.__traceback__))
    text = formatter.format(record)
    found = json.loads(text)
    assert (found["message"], found["lineno"], found["levelname"]) == ("a ******\n\x1b", 4242, "WARNING")
    assert "hunter" not in text and "ValueError: ******" in found["traceback"] and text.isprintable()


def test_handlers_that_request_the_traceback_get_none_with_secrets(known: known_secrets.KnownSecrets) -> None:
    known.add("of-a-traceback")
    try:
        raise ValueError("of-a-traceback")
    except ValueError as exc:
        text = log_lines.MaskingFormatter(None).formatException((type(exc), exc, exc.__traceback__))
    assert text.endswith("ValueError: ******")
