"""``ironic-rules-lab``: what it refuses before it starts anything."""

from __future__ import annotations

import pytest

from ironic_rules.cmd import lab
from tests.walking import walking

WRONG = [
    ([], "the following arguments are required: scenario"),
    (["fly"], "invalid choice: 'fly'"),
    (["discover", "--memory", "512"], "must be from 1024 to"),
    (["discover", "--memory", "much"], "invalid number value: 'much'"),
    (["inspect", "--boot", "floppy"], "invalid choice: 'floppy'"),
    (["discover", "--accelerator", "xen"], "invalid choice: 'xen'"),
    (["discover", "--quiet", "0"], "must be from 30 to"),
    (["all", "--within", "-1"], "must be from 1 to"),
]


@walking("arguments, text", WRONG)
def test_wrong_arguments_are_refused(arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        lab.main(arguments)

    assert ended.value.code == 2
    assert text in capsys.readouterr().err


def test_a_lab_that_cannot_run_says_why(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab.host, "problems", lambda folder, memory_mib: iter(["it needs root."]))
    monkeypatch.setattr(lab.host, "has_kvm", lambda: False)
    monkeypatch.setattr(lab.importlib.util, "find_spec", lambda name: None)

    assert lab.main(["discover", "--accelerator", "kvm", "--ramdisk", "/nowhere",
                     "--rules", "/nowhere/rules.yaml"]) == 2

    said = capsys.readouterr().err.splitlines()
    assert said[:4] == [
        "ironic-rules-lab: the lab cannot run here:", "- it needs root.",
        "- sushy-tools, the BMC, is missing: install the extra 'lab' (pip install '.[lab]').",
        "- KVM cannot be used here: there is no /dev/kvm, or the processor has no extensions for it. --accelerator tcg "
        "works without, and is slower."]
    assert said[4:7] == [f"- /nowhere has no file {name}." for name in ("vmlinuz", "initrd", "ipa.iso")]
    assert said[7:] == ["- the file /nowhere/rules.yaml cannot be read."]
