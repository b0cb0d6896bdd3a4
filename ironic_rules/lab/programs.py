"""The programs that the lab starts, and what they write: each line of a log becomes events of the time line."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from ironic_rules.lab import timeline
from ironic_rules.lab.host import PATH, LabError, run

UNITS = Path("/etc/systemd/system")
_SETTING = re.compile(r"^([A-Za-z]+)=(.*)$", re.MULTILINE)


class Recorder:
    """Reads the logs while they grow, and collects the events of their lines. ``tell`` gets each one."""

    def __init__(self, tell: Callable[[timeline.Event], None]) -> None:
        self._began = time.monotonic()
        self._tell = tell
        self._files: dict[Path, tuple[str, int, bytes]] = {}
        self._lock = threading.Lock()
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="recorder", daemon=True)
        self.events: list[timeline.Event] = []

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Read what was written until now, and end."""
        self._ends.set()
        self._thread.join(10)

    def follow(self, source: str, file: Path) -> None:
        """Read a file, which need not exist yet. See ``timeline.events_of`` for the sources."""
        with self._lock:
            self._files[file] = (source, 0, b"")

    def note(self, step: str, text: str, is_error: bool = False) -> None:
        """Add an event of the lab itself."""
        with self._lock:
            self._add(step, text, is_error)

    def now(self) -> float:
        """Return the seconds since the lab began."""
        return time.monotonic() - self._began

    def since(self, number: int) -> list[timeline.Event]:
        """Return the events but the first ones."""
        with self._lock:
            return self.events[number:]

    def _add(self, step: str, text: str, is_error: bool) -> None:
        event = timeline.Event(self.now(), step, text, is_error)
        self.events.append(event)
        self._tell(event)

    def _follow(self) -> None:
        while True:
            is_last = self._ends.wait(0.2)
            with self._lock:
                for file in list(self._files):
                    self._read(file)
            if is_last:
                return

    def _read(self, file: Path) -> None:
        source, offset, begun = self._files[file]
        try:
            if file.stat().st_size < offset:  # a machine that starts again begins its console again
                offset = 0
            with file.open("rb") as opened:
                opened.seek(offset)
                content = opened.read(1 << 20)
        except OSError:
            return
        *lines, rest = re.split(rb"[\r\n]+", begun + content)
        self._files[file] = (source, offset + len(content), rest[-4096:])
        for line in lines:
            for event in timeline.events_of(source, line.decode(errors="replace")):
                self._add(*event)


class Programs:
    """The processes of the lab, each with a log in a folder."""

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self._started: dict[str, subprocess.Popen[bytes]] = {}

    def log_of(self, name: str) -> Path:
        return self._logs / f"{name}.log"

    def start(self, name: str, command: Sequence[str], *, environment: Mapping[str, str] | None = None) -> None:
        """Start a program that runs until :meth:`stop`."""
        with self.log_of(name).open("ab") as log:
            try:
                self._started[name] = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd="/",
                    env={"PATH": PATH, "HOME": "/root", "LANG": "C.UTF-8", **(environment or {})})
            except OSError as exc:
                raise LabError(f"{command[0]} cannot be started: {exc.strerror}.") from exc

    def start_unit(self, name: str, *, arguments: Sequence[str] = ()) -> None:
        """Start the program of a unit as systemd would: its folders, its user and its privileges.

        :param arguments: to add to its command
        """
        settings = unit_settings([UNITS / f"{name}.service", *sorted((UNITS / f"{name}.service.d").glob("*.conf"))])
        user, group = settings["User"][-1], settings["Group"][-1]
        for key, parent in (("StateDirectory", "/var/lib"), ("LogsDirectory", "/var/log"),
                            ("RuntimeDirectory", "/run")):
            for folder in " ".join(settings.get(key, [])).split():
                run(["install", "-d", "-o", user, "-g", group, f"{parent}/{folder}"])
        rights = [f"+{right.removeprefix('CAP_').lower()}"
                  for right in " ".join(settings.get("AmbientCapabilities", [])).split()]
        capabilities = [f"--inh-caps={','.join(rights)}", f"--ambient-caps={','.join(rights)}"] if rights else []
        self.start(name, ["setpriv", f"--reuid={user}", f"--regid={group}", "--init-groups", *capabilities,
                          *settings["ExecStart"][-1].split(), *arguments])

    def check(self) -> None:
        """Check that all of them run.

        :raises LabError: one has ended; the text has its last lines
        """
        for name, program in self._started.items():
            if program.poll() is not None:
                raise LabError(f"{name} has ended with status {program.returncode}:\n{self.last_lines(name)}")

    def last_lines(self, name: str, number: int = 8) -> str:
        return last_lines(self.log_of(name), number)

    def pause(self, name: str, is_paused: bool) -> None:
        """Stop or continue a program, which keeps its connections."""
        os.killpg(self._started[name].pid, signal.SIGSTOP if is_paused else signal.SIGCONT)

    def stop(self, names: Iterable[str] = ()) -> None:
        """End these programs, or all, in the reverse order of their start."""
        for name in list(names) or list(reversed(self._started)):
            program = self._started.pop(name)
            if program.poll() is None:
                os.killpg(program.pid, signal.SIGCONT)
                program.terminate()
                try:
                    program.wait(15)
                except subprocess.TimeoutExpired:
                    os.killpg(program.pid, signal.SIGKILL)
                    program.wait(15)


def unit_settings(files: Iterable[Path]) -> dict[str, list[str]]:
    """Return the settings of a unit and its drop-ins, in which later files override earlier ones by coming last."""
    settings: dict[str, list[str]] = {}
    for file in files:
        for name, value in _SETTING.findall(file.read_text(encoding="utf-8")):
            settings.setdefault(name, []).append(value)
    return settings


def last_lines(file: Path, number: int = 8) -> str:
    """Return the last lines of a log that have something readable, each after four spaces."""
    try:
        text = file.read_bytes()[-65536:].decode(errors="replace")
    except OSError:
        return "    (nothing)"
    # Firmware and boot loaders position the cursor and clear the screen.
    text = re.sub(r"[^\x20-\x7e\n\t\r]", "", timeline.ESCAPES.sub("", text))
    lines = [line.strip() for line in re.split(r"[\r\n]+", text) if line.strip()]
    return "\n".join(f"    {line[:160]}" for line in lines[-number:]) or "    (nothing)"


def wait_for(name: str, condition: Callable[[], bool], timeout_s: float, check: Callable[[], None] = lambda: None,
             interval_s: float = 0.3) -> None:
    """Wait until ``condition`` is true.

    :param check: called meanwhile; raises where waiting is useless
    :raises LabError: it was not true in time
    """
    end = time.monotonic() + timeout_s
    while not condition():
        check()
        if time.monotonic() > end:
            raise LabError(f"{name}: not within {timeout_s:.0f} s.")
        time.sleep(interval_s)
