"""The fleet: prepares nodes, lets all ramdisks report, and checks the result of each."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

from ironic_rules.models import states
from ironic_rules.simulator import node_setup
from ironic_rules.simulator.client import ApiError, Callback, Client, ClientError
from ironic_rules.simulator.inventories import SimulatedMachine
from ironic_rules.simulator.progress import ProgressDisplay

#: Seconds between two polls of the nodes while ramdisks still report, and after the last one has reported.
_POLL_S = 0.25
_LAST_POLL_S = 0.05


@dataclass
class MachineRun:
    """The progress of one machine. Times are ``time.perf_counter()`` seconds.

    ``problem`` is empty while everything is as expected; ``step`` is the step in which it occurred.
    """

    machine: SimulatedMachine
    created: bool = False
    callback: Callback | None = None
    posted_at: float | None = None
    done_at: float | None = None
    state: str | None = None
    step: str = ""
    problem: str = ""

    def fail(self, step: str, problem: object) -> None:
        """Record a problem; only the first one is kept."""
        if not self.problem:
            self.step, self.problem = step, str(problem)


@dataclass
class FleetOutcome:
    """The result of :meth:`Fleet.run`: the runs, in the order of the machines, and seconds by step."""

    runs: list[MachineRun]
    seconds: dict[str, float] = field(default_factory=dict)


class Fleet:
    """Runs machines against a service, at most ``concurrency`` requests of one kind at a time."""

    def __init__(
        self, client: Client, machines: Iterable[SimulatedMachine], *, concurrency: int = 8,
        driver: str = "fake-hardware", timeout_s: float = 300.0, progress: ProgressDisplay | None = None,
    ) -> None:
        self.outcome = FleetOutcome([MachineRun(machine) for machine in machines])
        self._client = client
        self._concurrency = concurrency
        self._driver = driver
        self._timeout_s = timeout_s
        self._progress = progress or ProgressDisplay()
        self._lock = threading.Lock()
        self._processing: list[MachineRun] = []

    def run(self) -> FleetOutcome:
        """Enroll and inspect every machine. Problems of a machine are recorded in its run, not raised."""
        steps = {"prepare": self._prepare_all, "inspect": self._inspect_all, "verify": self._verify_all}
        for step, work in steps.items():
            begin = time.perf_counter()
            work()
            self.outcome.seconds[step] = time.perf_counter() - begin
        return self.outcome

    def clean_up(self) -> list[str]:
        """Delete every node that was created. Return one line per node that could not be deleted."""
        self._client.stop.clear()
        undeleted: list[str] = []

        def delete(run: MachineRun) -> None:
            try:
                node_setup.delete(self._client, run.machine.uuid)
            except ClientError as exc:
                undeleted.append(f"{run.machine.name}: {exc}")

        self._each("Deleting", [run for run in self.outcome.runs if run.created], delete)
        return undeleted

    def _prepare_all(self) -> None:
        def prepare(run: MachineRun) -> None:
            run.created = True
            node_setup.enrol(self._client, run.machine, self._driver)
            node_setup.start_inspection(self._client, run.machine, self._timeout_s)

        self._each("Enrolling", self.outcome.runs, self._recorded("prepare", prepare))

    def _inspect_all(self) -> None:
        ready = [run for run in self.outcome.runs if not run.problem]
        all_sent = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(len(ready), all_sent), name="watcher")
        watcher.start()
        try:
            self._each("Reporting", ready, self._recorded("callback", self._report))
        finally:
            all_sent.set()
            watcher.join()

    def _report(self, run: MachineRun) -> None:
        run.posted_at = time.perf_counter()
        run.callback = self._client.send_inventory(run.machine.content)
        if run.callback.accepted or run.callback.uncertain:
            with self._lock:
                self._processing.append(run)
        else:
            run.fail("callback", run.callback.reason)

    def _watch(self, expected: int, all_sent: threading.Event) -> None:
        """Record when each node that has reported is no longer being processed; :meth:`_verify` checks the result.

        One list of the nodes in ``inspecting`` is enough: it is short, even with many nodes. The service replies to a
        ramdisk only once the node is in that state, so a node that is not listed has left it.
        """
        deadline = None
        with self._progress.step("Inspecting", expected) as advance:
            while True:
                finished = all_sent.is_set()
                with self._lock:
                    processing = list(self._processing)
                if finished and not processing:
                    return
                begin = time.perf_counter()
                finished_runs = self._left_inspecting(processing)
                now = time.perf_counter()
                for run in finished_runs:
                    run.done_at = now
                advance(len(finished_runs))
                with self._lock:
                    gone = {id(run) for run in finished_runs}
                    self._processing = [run for run in self._processing if id(run) not in gone]
                if finished:
                    deadline = deadline or now + self._timeout_s
                if self._client.stop.is_set() or (deadline and now > deadline):
                    return
                # At most a fifth of the time is spent on polling, so that polling does not become the main load.
                pause_s = max(_LAST_POLL_S if finished else _POLL_S, 4 * (now - begin))
                (self._client.stop if finished else all_sent).wait(pause_s)

    def _left_inspecting(self, runs: list[MachineRun]) -> list[MachineRun]:
        if not runs:
            return []
        try:
            nodes = self._client.pages("/v1/nodes", "nodes", provision_state=states.INSPECTING, fields="uuid")
            busy = {node["uuid"] for node in nodes}
        except ClientError:
            return []  # the service may be restarting; the deadline limits this
        return [run for run in runs if run.machine.uuid not in busy]

    def _verify_all(self) -> None:
        runs = [run for run in self.outcome.runs if run.callback is not None and not run.problem]
        self._each("Verifying", runs, self._recorded("verify", self._verify))

    def _verify(self, run: MachineRun) -> None:
        expected = run.machine.expected_state
        node = node_setup.get_state(self._client, run.machine.uuid)
        if node["provision_state"] == states.INSPECTING:
            timeout_s = self._timeout_s if run.done_at else 0.0
            rest = {states.MANAGEABLE, states.INSPECTFAIL, states.ENROLL, states.INSPECTWAIT}
            node = node_setup.wait_for(self._client, run.machine.uuid, rest, {states.INSPECTING}, timeout_s)
            run.done_at = time.perf_counter()
        run.state = node["provision_state"]
        if run.state == states.INSPECTWAIT and run.callback and not run.callback.accepted:
            run.fail("callback", run.callback.reason)
        elif run.state != expected:
            run.fail("inspect", f"expected {expected}, is {run.state}: {node.get('last_error') or 'no error given'}")
        elif expected == states.MANAGEABLE:
            self._verify_inventory(run)

    def _verify_inventory(self, run: MachineRun) -> None:
        try:
            stored = self._client.get(f"/v1/nodes/{run.machine.uuid}/inventory").get("inventory")
        except ApiError as exc:
            run.fail("inventory", exc)
            return
        if stored != run.machine.inventory:
            run.fail("inventory", "the stored inventory is not the one that was sent")

    def _recorded(self, step: str, work: Callable[[MachineRun], None]) -> Callable[[MachineRun], None]:
        def recording(run: MachineRun) -> None:
            try:
                work(run)
            except ClientError as exc:
                run.fail(step, exc)

        return recording

    def _each(self, title: str, runs: list[MachineRun], work: Callable[[MachineRun], None]) -> None:
        """Call ``work`` for all runs in threads; an interrupt by the user cancels the waiting ones at once."""
        with self._progress.step(title, len(runs)) as advance, ThreadPoolExecutor(self._concurrency) as pool:

            def one(run: MachineRun) -> None:
                if self._client.stop.is_set():
                    run.fail(title.lower(), "interrupted")
                    return
                work(run)
                advance(1)

            futures = [pool.submit(one, run) for run in runs]
            try:
                wait(futures, return_when=FIRST_EXCEPTION)
            except KeyboardInterrupt:
                self._client.stop.set()
                raise
            for future in futures:
                future.result()
