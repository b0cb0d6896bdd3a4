from __future__ import annotations

import os

import pytest

from ironic_rules.exceptions import ConfigurationError
from ironic_rules.pxe_filter import hostsdir
from ironic_rules.pxe_filter.hostsdir import Hostsdir


@pytest.fixture
def folder(tmp_path):
    made = Hostsdir(str(tmp_path))
    made.open()
    yield made
    made.close()


def test_a_file_is_written_once_and_only_when_it_says_something_new(folder, tmp_path):
    assert folder.write("macs-0000", "a\n") is True
    inode = (tmp_path / "macs-0000").stat().st_ino
    assert folder.write("macs-0000", "a\n") is False
    assert (tmp_path / "macs-0000").stat().st_ino == inode
    assert folder.write("macs-0000", "b\nc\n") is True
    assert (tmp_path / "macs-0000").read_text() == "b\nc\n"
    assert folder.lines == 2


def test_what_others_do_is_noticed(folder, tmp_path):
    for name in ("macs-0000", "macs-0001", "macs-0002"):
        folder.write(name, "52:54:00:00:00:01\n")
    (tmp_path / "macs-0000").write_text("changed")
    (tmp_path / "macs-0001").unlink()
    (tmp_path / "52:54:00:00:00:09").write_text("made")
    (tmp_path / "printers").write_text("of another program")

    assert sorted(folder.changed_by_others()) == [
        ("52:54:00:00:00:09", "made"), ("macs-0000", "changed"), ("macs-0001", "")]
    assert folder.foreign_names() == ["printers"]


def test_a_file_that_dnsmasq_may_not_read_is_written_again(folder, tmp_path):
    folder.write("macs-0000", "a\n")
    (tmp_path / "macs-0000").chmod(0o600)

    assert list(folder.changed_by_others()) == [("macs-0000", "a\n")]
    assert folder.write("macs-0000", "a\n") is True
    assert (tmp_path / "macs-0000").stat().st_mode & 0o777 == 0o644
    assert list(folder.changed_by_others()) == []


def test_what_a_failed_write_left_does_not_hinder_the_next(folder, tmp_path):
    (tmp_path / ".ironic-pxe-filter.new").write_text("half")

    assert folder.write("macs-0000", "a\n") is True
    assert (tmp_path / "macs-0000").read_text() == "a\n"


@pytest.mark.parametrize("content", ["a,ignore\n", "a\n", ""])
def test_a_file_can_be_overwritten_in_place(folder, tmp_path, content):
    folder.write("unknown_hosts_filter", "a,b\n")
    inode = (tmp_path / "unknown_hosts_filter").stat().st_ino

    folder.overwrite("unknown_hosts_filter", content)

    found = tmp_path / "unknown_hosts_filter"
    assert (found.read_text(), found.stat().st_ino, folder.lines) == (content, inode, content.count("\n"))
    assert list(folder.changed_by_others()) == []
    assert folder.write("unknown_hosts_filter", content) is False


def test_what_is_not_there_or_leads_elsewhere_is_not_overwritten(folder, tmp_path):
    (tmp_path / "elsewhere").write_text("x")
    (tmp_path / "macs-0000").symlink_to("elsewhere")

    for name in ("macs-0000", "macs-0001"):
        with pytest.raises(OSError):
            folder.overwrite(name, "a\n")
    assert (tmp_path / "elsewhere").read_text() == "x"


def test_foreign_files_are_those_that_dnsmasq_reads(folder, tmp_path):
    for name in ("#a", "a#", "#a#", "#", "b~", "~b", ".c", "d"):
        (tmp_path / name).touch()

    assert folder.foreign_names() == ["#a", "a#", "d", "~b"]


def test_a_folder_made_anew_that_another_filter_has_is_not_written(tmp_path):
    mine, other = Hostsdir(str(tmp_path / "hosts")), Hostsdir(str(tmp_path / "hosts"))
    (tmp_path / "hosts").mkdir()
    mine.open()
    (tmp_path / "hosts").rename(tmp_path / "old")
    (tmp_path / "hosts").mkdir()
    other.open()

    for _ in range(2):
        with pytest.raises(BlockingIOError, match="another ironic-pxe-filter uses the folder"):
            mine.reopen_if_replaced()
        with pytest.raises(OSError):
            mine.write("macs-0000", "a\n")
    other.close()
    assert mine.reopen_if_replaced() is True
    assert mine.write("macs-0000", "a\n") is True
    mine.close()


def test_looking_into_a_folder_takes_no_lock_and_needs_none(folder, tmp_path):
    folder.write("macs-0000", "a\n")

    assert Hostsdir(str(tmp_path)).peek() == [("macs-0000", "a\n")]
    assert Hostsdir(str(tmp_path / "none")).peek() == []
    assert folder.write("macs-0000", "b\n") is True


def test_links_are_replaced_and_never_followed(folder, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("52:54:00:00:00:01\n")
    (tmp_path / "macs-0000").symlink_to(secret)
    (tmp_path / "macs-0001").mkdir()
    os.mkfifo(tmp_path / "macs-0002")

    assert list(folder.read()) == []
    folder.write("macs-0000", "x\n")
    assert secret.read_text() == "52:54:00:00:00:01\n"
    assert not (tmp_path / "macs-0000").is_symlink()
    with pytest.raises(IsADirectoryError):
        folder.write("macs-0001", "x\n")


@pytest.mark.parametrize("name", [".ironic-pxe-filter.new"])
def test_what_a_killed_filter_left_is_removed(tmp_path, name):
    (tmp_path / name).write_text("half")
    folder = Hostsdir(str(tmp_path))
    folder.open()

    assert not (tmp_path / name).exists()
    folder.close()


def test_bytes_that_are_no_text_are_read_all_the_same(folder, tmp_path):
    (tmp_path / "macs-0000").write_bytes(b"\xff\x00\n52:54:00:00:00:01\r\n")

    (name, text), = folder.read()
    assert name == "macs-0000"
    assert "52:54:00:00:00:01\r\n" in text


def test_a_folder_has_one_filter(folder, tmp_path):
    second = Hostsdir(str(tmp_path))

    with pytest.raises(ConfigurationError, match="Another ironic-pxe-filter uses"):
        second.open()
    folder.close()
    second.open()
    second.close()


@pytest.mark.parametrize("text", ["", "x", "0", "1", "-1", "99999999", None])
def test_only_a_dnsmasq_is_signalled(tmp_path, text):
    file = tmp_path / "pid"
    if text is not None:
        file.write_text(text)

    assert hostsdir.running(str(file)) is None
    assert hostsdir.reload(str(file)) is False


def test_another_process_with_that_id_is_left_alone(tmp_path):
    file = tmp_path / "pid"
    file.write_text(str(os.getpid()))

    assert hostsdir.running(str(file)) is None
