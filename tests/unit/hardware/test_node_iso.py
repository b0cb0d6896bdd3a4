"""ISO images of nodes: copies of the operator's image with the node's kernel parameters."""

from __future__ import annotations

import io
import resource

import pycdlib
import pytest

from ironic_rules.exceptions import InvalidParameterValue, IronicRulesError
from ironic_rules.hardware.boot import node_iso
from ironic_rules.hardware.boot.media import PublishedFolder
from ironic_rules.models import boot_parameters
from ironic_rules.models.boot_parameters import SIZE, BootParameters
from tests.unit.hardware.redfish_bmc import SYSTEM
from tests.unit.hardware.test_redfish import PARAMETERS, boot, drive, quick, serving, task_of, with_drives  # noqa: F401
from tests.unit.inspection.tasks import UUID, make_task
from tests.walking import walking

OF_IMAGE = "console=tty0 console=ttyS0,115200n8"
URL = "http://web/ipa.iso"


def write_image(path, file=None, name="parameters.cfg"):
    """Write an image with a file of parameters; it does not boot."""
    content = BootParameters("x86_64", OF_IMAGE).content() if file is None else file
    image = pycdlib.PyCdlib()
    image.new(rock_ridge="1.09", interchange_level=3)
    image.add_directory("/BOOT", rr_name="boot")
    image.add_directory("/BOOT/GRUB", rr_name="grub")
    image.add_fp(io.BytesIO(b"k" * 5000), 5000, "/BOOT/VMLINUZ.;1", rr_name="vmlinuz")
    image.add_fp(io.BytesIO(content), len(content), "/BOOT/GRUB/PARAM.CFG;1", rr_name=name)
    image.write(str(path))
    image.close()


@pytest.fixture
def root(conf, tmp_path):
    conf.set_override("http_root", str(tmp_path), group="deploy")
    conf.set_override("http_url", "http://web/", group="deploy")
    return tmp_path


def test_a_machine_with_one_virtual_drive_boots_its_own_copy_of_the_image(boot, tmp_path):  # noqa: F811
    write_image(tmp_path / "ipa.iso")
    before, copy = (tmp_path / "ipa.iso").read_bytes(), tmp_path / "redfish" / f"{UUID}.iso"
    with serving(with_drives(cd=drive("CD1", ["CD", "DVD"], Inserted=True, Image="x"))) as bmc:
        task = task_of(bmc, properties={"cpu_arch": "x86_64"})

        boot.prepare_ramdisk(task, {**PARAMETERS, "ipa-debug": "1", "nomodeset": ""})

        media = "/redfish/v1/Managers/1/VirtualMedia"
        assert bmc.told == [
            ("POST", f"{media}/CD1/Eject", None),
            ("POST", f"{media}/CD1/Insert", {"Image": f"http://web/redfish/{UUID}.iso"}),
            ("PATCH", SYSTEM, {"Boot": {"BootSourceOverrideTarget": "Cd", "BootSourceOverrideEnabled": "Once"}}),
        ]
        made = copy.read_bytes()
        offset = before.index(b"# Kernel parameters of ironic-rules")
        assert made[offset:offset + SIZE].decode().splitlines()[1:3] == [
            f"set of_image='{OF_IMAGE}'",
            f"set of_node='ipa-inspection-callback-url=http://api/v1/continue_inspection?node_uuid={UUID} ipa-debug=1 "
            "nomodeset'"]
        same = (made[:offset] == before[:offset], made[offset + SIZE:] == before[offset + SIZE:],
                (tmp_path / "ipa.iso").read_bytes() == before)
        assert same == (True, True, True)
        assert [(path.name, path.stat().st_mode & 0o777) for path in copy.parent.iterdir()] == [(copy.name, 0o644)]

        boot.prepare_ramdisk(task, {"ipa-api-url": "http://api"})
        assert copy.read_bytes().count(b"\nset of_node='ipa-api-url=http://api'\n") == 1

        boot.clean_up_ramdisk(task)
        assert list(copy.parent.iterdir()) == []


@walking("parameters, node, text", [
    ({"a": "b" * 2020}, {}, "the kernel parameters have 2058 characters, and the kernel reads 2047"),
    ({}, {"cpu_arch": "aarch64"}, "/properties/cpu_arch: is aarch64, and the image ipa.iso boots x86_64 machines")])
def test_what_would_not_boot_is_refused(parameters, node, text, root, conf):
    write_image(root / "ipa.iso")

    with pytest.raises(InvalidParameterValue, match=text):
        node_iso.write(PublishedFolder(conf, "redfish"), "a.iso", node_iso.base_at(conf, URL),
                       make_task({"properties": node}), parameters)

    assert not (root / "redfish").exists()


@walking("file, name", [
    (b"x", "parameters.cfg"), (b"#" * SIZE, "parameters.cfg"), (b"\xff" * SIZE, "parameters.cfg"),
    (BootParameters("x86_64", "").content()[:-1], "parameters.cfg"), (None, "grub.cfg")])
def test_an_image_without_a_place_for_parameters_has_no_copies(file, name, root, conf):
    write_image(root / "ipa.iso", file, name)

    assert node_iso.base_at(conf, URL) is None


def test_only_an_image_below_the_folder_of_the_web_server_has_copies(root, conf):
    write_image(root / "ipa.iso")
    (root / "other").mkdir()
    (root / "other" / "no.iso").write_bytes(b"no image" * 9000)
    conf.set_override("http_root", str(root / "other"), group="deploy")
    write_image(root / "other" / "with space.iso")

    found = {url: node_iso.base_at(conf, url) for url in (
        "http://web/../ipa.iso", "http://web/%2e%2e/ipa.iso", "http://web/x/../../ipa.iso", "http://web//ipa.iso",
        "http://web/%00", "http://web/", "http://web", "http://web.example.org/ipa.iso", "nfs://web/ipa.iso",
        "http://web/missing.iso", "http://web/no.iso", "http://web/with%20space.iso?version=2")}

    assert [url for url, base in found.items() if base] == ["http://web/with%20space.iso?version=2"]
    conf.clear_override("http_url", group="deploy")
    assert node_iso.base_at(conf, URL) is None


def test_a_copy_is_whole_or_not_there(root, conf):
    write_image(root / "ipa.iso")
    base, folder, task = node_iso.base_at(conf, URL), PublishedFolder(conf, "redfish"), make_task({})
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
    try:
        with pytest.raises(IronicRulesError, match=r"a copy of .*ipa.iso, cannot be made \(\[deploy\]http_root\)"):
            node_iso.write(folder, "a.iso", base, task, {})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list((root / "redfish").iterdir()) == []

    (root / "ipa.iso").write_bytes(bytes(100_000))
    with pytest.raises(IronicRulesError, match="was replaced while it was copied"):
        node_iso.write(folder, "a.iso", base, task, {})
    assert list((root / "redfish").iterdir()) == []


def test_the_file_of_parameters_says_what_the_image_has(root):
    file = BootParameters("x86_64", OF_IMAGE).content("a=1 b")

    assert boot_parameters.read(file) == BootParameters("x86_64", OF_IMAGE)
    for wrong in ("a='", "a\nb", "a$b", "a\\", "ü"):
        with pytest.raises(ValueError, match="not allowed"):
            BootParameters("x86_64", "").content(wrong)
