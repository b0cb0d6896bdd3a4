"""The conductor service: registers, serves RPC, sends heartbeats, resumes interrupted work, and shuts down in order."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import oslo_messaging as messaging
from oslo_db import exception as db_exc
from oslo_log import log as logging

from ironic_rules.conductor import operations, periodics, recovery
from ironic_rules.conductor.conductor import Conductor
from ironic_rules.conductor.deliveries import PRUNE_EVERY_S, Deliveries, prune
from ironic_rules.conductor.endpoint import ConductorEndpoint
from ironic_rules.conductor.periodics import Loop
from ironic_rules.conductor.power_states import PowerStates
from ironic_rules.conductor.step_polls import StepPolls
from ironic_rules.db import clock, conductors, nodes, outbox
from ironic_rules.db import operations as stored_operations
from ironic_rules.exceptions import ConfigurationError, IronicRulesError
from ironic_rules.hardware.boot import access_log, ipxe
from ironic_rules.models.resources import different_pins
from ironic_rules.rpc import transport as rpc_transport
from ironic_rules.rpc.notifications import Notifications

LOG = logging.getLogger(__name__)

#: Looks for operations in a recovery interval: someone waits for the first nodes of each.
_OPERATIONS_LOOKS = 5
_HOUR_S = 3600.0
#: Seconds that a heartbeat may take, with a database that does not reply: the time-outs of [database] are shorter.
_STUCK_S = 120.0
#: Seconds for closing the sessions at BMCs when the conductor ends.
_LEAVE_S = 5.0


def _deliveries(conductor: Conductor) -> Deliveries | None:
    with conductor.db.reader() as conn:
        wanted = outbox.wanted(conn)
    if wanted is None:
        return None
    return Deliveries(conductor, wanted, None if wanted.level is None else Notifications(conductor.conf))


class ConductorService:
    """``start``, ``stop`` and ``wait`` of one conductor."""

    def __init__(self, conductor: Conductor, transport: messaging.RPCTransport,
                 displaced: Callable[[], None] = lambda: None) -> None:
        """Prepare.

        :param displaced: called when the process must end, because another one serves under the same host name
        """
        self._conductor = conductor
        self._server = rpc_transport.get_server(
            transport, conductor.conf, ConductorEndpoint(conductor), conductor.group)
        options = conductor.conf.conductor
        self._polls = StepPolls(conductor)
        conductor.step_waits.listen(self._polls.expect)
        self._loops: tuple[Loop, ...] = (
            Loop("heartbeat", options.heartbeat_interval, self._heartbeat),
            Loop("operations", max(1, options.recovery_interval / _OPERATIONS_LOOKS),
                 lambda: operations.work(conductor), until_idle=True),
            Loop("allocations", options.recovery_interval, lambda: periodics.in_turn(
                conductor, "allocations", options.recovery_interval, periodics.settle_allocations)),
            Loop("outbox", PRUNE_EVERY_S, lambda: periodics.in_turn(conductor, "outbox", PRUNE_EVERY_S, prune)),
            Loop("changes of facts", _HOUR_S, lambda: periodics.in_turn(
                conductor, "changes of facts", _HOUR_S, periodics.prune_fact_changes)),
            Loop("recovery", options.recovery_interval, lambda: recovery.resume_orphans(conductor)),
            Loop("timeouts", options.recovery_interval, lambda: periodics.in_turn(
                conductor, "inspection timeouts", options.recovery_interval, recovery.fail_overdue)),
            Loop("step polls", options.step_poll_interval, lambda: periodics.in_turn(
                conductor, "step polls", options.step_poll_interval, lambda _: self._polls.poll_all())),
        )
        self._power_states = PowerStates(conductor)
        self._deliveries = _deliveries(conductor)
        if options.sync_power_state_interval:
            self._loops += (Loop("power states", options.sync_power_state_interval, self._power_states.sync),)
        conductor.numbers.gauge("locks", conductor.lock_ages.older_than)
        self._displaced = displaced
        self._clock_is_wrong = False
        #: true if another process serves under the same host name
        self.is_displaced = False

    def start(self) -> None:
        """Register, resume what this conductor left unfinished when it last ended, and serve.

        :raises conductor_already_registered: another process with this host name starts at the same moment
        :raises ConfigurationError: ``boot.ipxe`` cannot be made with the options of ``[pxe]``
        """
        conductor = self._conductor
        self._write_boot_script()
        if text := access_log.problem(conductor.conf):
            LOG.warning("Errors of nodes that wait too long will not say what their machines have requested: %s", text)
        self._follow_clock()
        conductor.rules.current()
        conductor.legacy_rules.current()
        conductor.rule_statistics.start()
        conductor.db.write(lambda conn: conductors.register(
            conn, conductor.host, conductor.group, conductor.hardware.register(), conductor.instance,
            pinned_release=conductor.conf.conductor.pin_release_version or ""))
        with conductor.db.reader() as conn:
            pins = conductors.pins(conn, conductor.conf.conductor.heartbeat_timeout)
        if text := different_pins(pins):
            LOG.warning("%s", text)
        self._server.start()
        recovery.resume_orphans(conductor)
        for loop in self._loops:
            loop.start()
        if self._deliveries is not None:
            self._deliveries.start()
        LOG.info("Conductor %s serves group '%s'", conductor.host, conductor.group)

    def _write_boot_script(self) -> None:
        """Write ``boot.ipxe``, which machines load before the service knows them."""
        conf = self._conductor.conf
        if not ipxe.is_used(conf):
            return
        try:
            ipxe.write_boot_script(conf)
        except ConfigurationError:
            raise
        except IronicRulesError as exc:
            LOG.error("Machines that boot over the network have no script to begin with: %s", exc)
        if ipxe.is_of_operator(conf):
            LOG.warning("boot.ipxe in [deploy]http_root was written or changed by an operator, and remains as it is: "
                        "the options of [pxe] have no effect on it")

    def is_well(self) -> bool:
        """Return whether the heartbeats continue; a database that cannot be reached is no reason why not."""
        return self._loops[0].busy_s < _STUCK_S

    def stop(self) -> bool:
        """Accept no further work, let work in progress finish within ``[conductor]shutdown_grace``, and unregister.

        :returns: whether all work is finished; unfinished nodes stay locked and are resumed by the next conductor
        """
        conductor = self._conductor
        for loop in self._loops:
            loop.stop()
        self._polls.stop()
        self._power_states.stop()
        # oslo.messaging takes a second to stop a server; the work in progress continues.
        stopper = threading.Thread(target=self._server.stop, name="rpc-stop", daemon=True)
        stopper.start()
        deadline = time.monotonic() + max(conductor.conf.conductor.shutdown_grace, 1)
        stopper.join(max(deadline - time.monotonic(), 0))
        finished = conductor.workers.stop(max(deadline - time.monotonic(), 0.05))
        for loop in self._loops:
            # A heartbeat after unregistering would make this conductor look alive.
            loop.wait(max(deadline - time.monotonic(), 0.05))
        conductor.rule_statistics.stop()
        if self._deliveries is not None:
            self._deliveries.stop()
            self._deliveries.wait(max(deadline - time.monotonic(), 0.05))
        try:
            conductor.db.write(lambda conn: conductors.unregister(conn, conductor.host, conductor.instance))
        except db_exc.DBError as exc:
            LOG.warning("Conductor %s could not unregister; others will take it for dead in %s seconds: %s",
                        conductor.host, conductor.conf.conductor.heartbeat_timeout, exc)
        conductor.hardware.end(_LEAVE_S)
        return finished

    def _follow_clock(self) -> None:
        with self._conductor.db.reader() as conn:
            ahead_s = clock.follow(conn)
            if clock.is_off() and not nodes.is_any_in_progress(conn) and not stored_operations.running(conn):
                clock.catch_up()
        is_wrong = abs(ahead_s) > clock.TOLERATED_S
        if is_wrong and not self._clock_is_wrong:
            LOG.warning("The clock of this host is %.0f s ahead of the database's, which counts. Log messages have the "
                        "host's.", ahead_s)
        self._clock_is_wrong = is_wrong

    def _heartbeat(self) -> None:
        conductor = self._conductor
        with conductor.contact.attempt():
            self._follow_clock()
            is_registered = conductor.db.write(
                lambda conn: conductors.touch(conn, conductor.host, conductor.instance))
        conductor.rules.current()
        conductor.legacy_rules.current()
        if not is_registered:
            LOG.critical("Another process has registered as conductor %s; this one ends. Every conductor needs a "
                         "[DEFAULT]host of its own.", conductor.host)
            self.is_displaced = True
            self._displaced()
