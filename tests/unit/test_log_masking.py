"""What the service logs: lines as oslo.log's, with passwords of URLs masked, also those in tracebacks of libraries."""

from __future__ import annotations

import contextlib
import io
import itertools
import logging

import pytest
from oslo_context import context as oslo_context
from oslo_log import formatters

from ironic_rules import service
from ironic_rules.context import RequestContext


@pytest.fixture
def written() -> io.StringIO:
    """What the log has after set-up, with a handler of our own in place of standard error."""
    root, out = logging.getLogger(), io.StringIO()
    before, level = root.handlers[:], root.level
    conf = service.prepare_config([], config_files=[])
    service.setup_logging(conf)
    made = [handler for handler in root.handlers if handler not in before]
    for handler in made:
        if isinstance(handler, logging.StreamHandler):
            handler.setStream(out)
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
    ours = service._Masking(inner)
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
    handler.handleError = service._Unwritten(handler, lambda: now[0])  # type: ignore[method-assign]
    record = logging.LogRecord("x", logging.INFO, __file__, 1, "ftp://user:s3cret@files.example.org/", (), None)

    for seconds in (0, 10, 3580, 20, 0):
        now[0] += seconds
        handler.emit(record)
    with contextlib.suppress(OSError):  # of what could not be written
        handler.close()

    first, second = capsys.readouterr().err.splitlines()
    assert "the log /dev/full cannot be written: [Errno 28] No space left on device. Lines lost so far: 1." in first
    assert "Lines lost so far: 4." in second
