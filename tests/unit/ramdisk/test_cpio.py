"""Archives of initramfs, made from tar archives."""

from __future__ import annotations

import io
import stat
import tarfile

from ironic_rules.ramdisk import cpio

EPOCH = 1000


def archive(*members: tuple[str, bytes, dict[str, object]]) -> tarfile.TarFile:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as out:
        for name, data, values in members:
            member = tarfile.TarInfo(name)
            member.size, member.mtime = len(data), 5000
            for key, value in values.items():
                setattr(member, key, value)
            out.addfile(member, io.BytesIO(data))
    content.seek(0)
    return tarfile.open(fileobj=content)


def unpacked(content: bytes) -> list[dict[str, object]]:
    """Return the members as the kernel reads them (init/initramfs.c)."""
    found, place = [], 0
    while True:
        assert content[place:place + 6] == b"070701"
        inode, mode, uid, gid, links, mtime, size, _, _, major, minor, length, _ = (
            int(content[place + 6 + 8 * number:place + 14 + 8 * number], 16) for number in range(13))
        name = content[place + 110:place + 110 + length - 1].decode()
        start = -(-(place + 110 + length) // 4) * 4
        place = -(-(start + size) // 4) * 4
        if name == "TRAILER!!!":
            return found
        found.append({"name": name, "inode": inode, "mode": mode, "owner": (uid, gid), "links": links, "mtime": mtime,
                      "data": content[start:start + size], "device": (major, minor)})


def test_every_kind_of_member_is_what_it_was():
    made = archive(
        ("./", b"", {"type": tarfile.DIRTYPE, "mode": 0o755}), ("./etc", b"", {"type": tarfile.DIRTYPE, "mode": 0o755}),
        ("./etc/a", b"12345", {"mode": 0o4711, "uid": 3, "gid": 4}), ("./boot/k", b"no", {}),
        ("./etc/again", b"", {"type": tarfile.LNKTYPE, "linkname": "./etc/a", "mode": 0o4711, "uid": 3, "gid": 4}),
        ("./bin", b"", {"type": tarfile.SYMTYPE, "linkname": "usr/bin", "mode": 0o777}),
        ("./dev/console", b"", {"type": tarfile.CHRTYPE, "devmajor": 5, "devminor": 1, "mode": 0o600}),
        ("./ä", b"x", {"mtime": 7}))
    out, again = io.BytesIO(), io.BytesIO()

    for file in (out, again):
        cpio.from_tar(made, file, EPOCH, lambda path: not path.startswith("/boot/"))

    found = {each["name"]: each for each in unpacked(out.getvalue())}
    assert list(found) == ["etc", "etc/a", "etc/again", "bin", "dev/console", "ä"]
    assert found["etc/a"] == {"name": "etc/a", "inode": 3, "mode": stat.S_IFREG | 0o4711, "owner": (3, 4), "links": 2,
                              "mtime": EPOCH, "data": b"12345", "device": (0, 0)}
    assert found["etc/again"] == {**found["etc/a"], "name": "etc/again", "data": b""}
    assert (found["bin"]["mode"], found["bin"]["data"]) == (stat.S_IFLNK | 0o777, b"usr/bin")
    assert (found["dev/console"]["mode"], found["dev/console"]["device"]) == (stat.S_IFCHR | 0o600, (5, 1))
    assert (found["etc"]["mode"], found["ä"]["mtime"]) == (stat.S_IFDIR | 0o755, 7)
    assert out.getvalue() == again.getvalue()
