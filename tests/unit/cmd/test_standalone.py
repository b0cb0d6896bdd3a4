from __future__ import annotations

import sys

from ironic_rules.cmd import standalone


def test_suggestions_can_be_typed_as_they_stand(tmp_path, monkeypatch):
    folder = tmp_path / ".venv" / "bin"
    folder.mkdir(parents=True)
    for name in ("ironic-rules", "ironic-rules-simulate"):
        (folder / name).touch(mode=0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [".venv/bin/ironic-rules"])
    monkeypatch.setattr(sys, "executable", str(folder / "python3"))
    monkeypatch.setenv("PATH", "/nonexistent")

    called = [line.split()[0] for line in standalone._suggestions("http://127.0.0.1:6385")]

    assert called == ["curl", ".venv/bin/ironic-rules-simulate"]

    monkeypatch.setenv("PATH", str(folder))
    called = [line.split()[0] for line in standalone._suggestions("http://127.0.0.1:6385")]

    assert called == ["curl", "ironic-rules-simulate"]
