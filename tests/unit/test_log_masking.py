"""What the service logs: passwords of URLs are masked, also those in tracebacks of libraries."""

from __future__ import annotations

import io
import logging

import pytest

from ironic_rules import service


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
