from __future__ import annotations

import datetime
import os
import time

import pytest

from ironic_rules.db import clock
from ironic_rules.exceptions import InvalidParameterValue, IronicRulesError
from ironic_rules.hardware.boot.media import OLD_S, PublishedFolder


@pytest.fixture
def folder(conf, tmp_path):
    conf.set_override("http_root", str(tmp_path / "www"), group="deploy")
    conf.set_override("http_url", "http://web:8080/x/", group="deploy")
    return PublishedFolder(conf, "redfish")


def test_a_file_is_readable_by_a_web_server_and_nothing_else_is_left(folder, tmp_path):
    folder.write("a.img", b"1")
    folder.write("a.img", b"2")

    (path,) = (tmp_path / "www" / "redfish").iterdir()
    assert (path.name, path.read_bytes(), path.stat().st_mode & 0o777) == ("a.img", b"2", 0o644)
    assert folder.url("a.img") == "http://web:8080/x/redfish/a.img"


def test_removing_is_safe_to_repeat(folder, tmp_path):
    folder.write("a.img", b"1")

    folder.remove("a.img")
    folder.remove("a.img")

    assert list((tmp_path / "www" / "redfish").iterdir()) == []


@pytest.mark.parametrize("name", ["../a", "a/b", "", ".hidden", "a\n", "a b", "ä", "x" * 129])
@pytest.mark.parametrize("act", ["write", "remove", "url"])
def test_names_that_lead_elsewhere_are_refused(folder, name, act):
    with pytest.raises(IronicRulesError, match="not allowed in a path or URL"):
        getattr(folder, act)(name, *([b""] if act == "write" else []))


def test_files_that_nobody_removed_go(folder, tmp_path):
    folder.write("old.img", b"1")
    folder.write("young.img", b"1")
    before = time.time() - OLD_S - 60
    os.utime(tmp_path / "www" / "redfish" / "old.img", (before, before))

    folder.write("new.img", b"1")

    assert sorted(path.name for path in (tmp_path / "www" / "redfish").iterdir()) == ["new.img", "young.img"]


def test_files_are_not_old_because_the_hosts_clock_has_jumped(folder, tmp_path, monkeypatch):
    """The kernel writes the host's time; the service's clock is ahead of it after a jump backwards."""
    later = clock.now() + datetime.timedelta(seconds=OLD_S + 60)
    monkeypatch.setattr(clock, "now", lambda: later)

    for name in ("first.img", "second.img"):
        folder.write(name, b"1")
    folder.link("third.img", tmp_path / "target")

    names = sorted(path.name for path in (tmp_path / "www" / "redfish").iterdir())
    assert names == ["first.img", "second.img", "third.img"]


def test_a_folder_that_can_not_be_written_is_named(conf, tmp_path):
    (tmp_path / "file").write_text("")
    conf.set_override("http_root", str(tmp_path / "file"), group="deploy")

    with pytest.raises(IronicRulesError, match=r"cannot be written \(\[deploy\]http_root\)"):
        PublishedFolder(conf, "redfish").write("a.img", b"")


def test_a_missing_url_is_told(conf):
    with pytest.raises(InvalidParameterValue, match=r"\[deploy\]http_url is not set"):
        PublishedFolder(conf, "redfish").url("a.img")
