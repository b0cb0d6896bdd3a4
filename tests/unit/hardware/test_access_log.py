"""The web server's log: which files a machine has requested while it booted, among the requests of others."""

from __future__ import annotations

import datetime
import os
from pathlib import Path

import pytest
from oslo_config import cfg

from ironic_rules.hardware.base import RamdiskFiles
from ironic_rules.hardware.boot import access_log
from ironic_rules.hardware.boot.ipxe import IPXEBoot
from tests.unit.inspection.tasks import make_task
from tests.walking import walking

SINCE = datetime.datetime(2026, 11, 28, 8, 0, tzinfo=datetime.UTC)
WEB = "http://192.0.2.10:8080"
SCRIPT = "/pxelinux.cfg/52-54-00-00-00-01"
FILES = RamdiskFiles(SINCE, {
    "its boot script": [f"{WEB}{SCRIPT}"], "the kernel": [f"{WEB}/vm%6cinuz"], "the ramdisk": [f"{WEB}/initrd"]})


def line(path: str, status: int = 200, client: str = "192.0.2.162", at: str = "28/Nov/2026:09:34:51 +0100") -> str:
    return f'{client} - - [{at}] "GET {path} HTTP/1.1" {status} 153 "-" "iPXE/1.0.0+"'


ALL = [line("/boot.ipxe"), line(SCRIPT), line("/vmlinuz?x=1"), line("/initrd", 206)]
OTHERS = [line("/vmlinuz", client="192.0.2.163"), line(f"{SCRIPT}2", client="192.0.2.163"),
          line("/initrd", client="192.0.2.16"), "garbage", line("/initrd", at="28/Nov/2026"), '\xff "GET / HTTP/1.1"']
HAS, NONE = "The web server's log has requests for ", "The web server's log has no request for "


@pytest.fixture
def log(conf: cfg.ConfigOpts, tmp_path: Path) -> Path:
    conf.set_override("http_url", f"{WEB}/", group="deploy")
    conf.set_override("http_access_log", str(tmp_path / "access.log"), group="deploy")
    return tmp_path / "access.log"


@walking("lines, told", [
    (ALL, f"{HAS}its boot script and the kernel and the ramdisk."),
    ([*OTHERS, *ALL[:3], *OTHERS], f"{HAS}its boot script and the kernel, and none for the ramdisk."),
    ([*ALL[:2], line("/vmlinuz", 404), *OTHERS],
     f"{HAS}its boot script and the kernel (answered with 404), and none for the ramdisk."),
    ([line(SCRIPT, at="28/Nov/2026:08:59:59 +0100"), *ALL[2:]],
     f"{NONE}its boot script or the kernel or the ramdisk."),
    ([], f"{NONE}its boot script or the kernel or the ramdisk."),
])
def test_only_requests_of_the_machine_count(conf: cfg.ConfigOpts, log: Path, lines: list[str], told: str) -> None:
    log.write_text("\n".join(lines), encoding="latin-1")

    assert access_log.tell(conf, FILES) == told


def test_files_of_other_servers_are_left_out(conf: cfg.ConfigOpts, log: Path) -> None:
    log.write_text("\n".join(ALL))
    names = list(FILES.urls)

    assert access_log.tell(conf, RamdiskFiles(SINCE, {
        **FILES.urls, "the kernel": ["http://192.0.2.11:8080/vmlinuz"]})) == f"{HAS}its boot script and the ramdisk."
    assert access_log.tell(conf, RamdiskFiles(SINCE, {**FILES.urls, names[0]: ["http://192.0.2.11/x"]})) == ""


def test_a_log_that_was_rotated_is_read_with_the_one_before(conf: cfg.ConfigOpts, log: Path) -> None:
    log.with_name("access.log.1").write_text("\n".join([*ALL[:3], ""]))
    log.write_text("\n".join(ALL[3:]))

    assert access_log.tell(conf, FILES) == f"{HAS}its boot script and the kernel and the ramdisk."


def test_of_a_huge_log_the_end_is_read(conf: cfg.ConfigOpts, log: Path) -> None:
    with log.open("wb") as file:
        file.truncate(1 << 40)
        file.seek(0, os.SEEK_END)
        file.write("\n".join(["", *ALL[:3]]).encode())

    assert "none for the ramdisk" in access_log.tell(conf, FILES)


def test_a_log_that_cannot_be_read_is_named(conf: cfg.ConfigOpts, log: Path) -> None:
    missing = access_log.tell(conf, FILES), access_log.problem(conf)
    os.mkfifo(log)

    assert missing == (f"The web server's log {log} cannot be read: No such file or directory.",
                       f"[deploy]http_access_log: {log}: No such file or directory")
    assert access_log.tell(conf, FILES) == f"The web server's log {log} cannot be read: it is no regular file."
    conf.clear_override("http_access_log", group="deploy")
    assert (access_log.tell(conf, FILES), access_log.problem(conf)) == ("", "")


def test_a_boot_over_the_network_loads_script_kernel_and_ramdisk(conf: cfg.ConfigOpts, tmp_path: Path) -> None:
    class Management:
        def set_boot_device(self, task: object, device: str, persistent: bool = False) -> None:
            pass

    for name, value in {"http_root": str(tmp_path), "http_url": WEB, "deploy_kernel": f"{WEB}/vmlinuz",
                        "deploy_ramdisk": f"{WEB}/initrd"}.items():
        conf.set_override(name, value, group="deploy")
    boot, task = IPXEBoot(conf, lambda node, kind: Management()), make_task({}, [{"address": "52:54:00:00:00:01"}])
    before = boot.ramdisk_files(task)
    boot.prepare_ramdisk(task, {})
    files = boot.ramdisk_files(task)
    boot.clean_up_ramdisk(task)

    assert before is None and files is not None
    assert files.urls == {"its boot script": [f"{WEB}{SCRIPT}"], "the kernel": [f"{WEB}/vmlinuz"],
                          "the ramdisk": [f"{WEB}/initrd"]}
    assert abs((files.since - datetime.datetime.now(datetime.UTC)).total_seconds()) < 600
    assert boot.ramdisk_files(task) is None
