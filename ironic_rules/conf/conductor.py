"""``[conductor]``: workers, heartbeats, locks and timeouts."""

from __future__ import annotations

from oslo_config import cfg, types

from ironic_rules.conf.value_types import ConductorGroup, Folder
from ironic_rules.models.steps import MAX_PRIORITY

#: The releases that conductors of this one can run beside, this one included: the first two numbers of each.
RELEASES = ("0.1",)
GROUP = cfg.OptGroup("conductor", title="Conductor", help="The processes that work on nodes.")
OPTS: list[cfg.Opt] = [
    cfg.Opt("conductor_group", type=ConductorGroup(), default="",
            help="Group of this conductor; it manages the nodes with the same conductor_group. Case does not matter."),
    cfg.IntOpt("workers", default=1, min=1, max=256,
               help="Number of processes of ironic-rules-conductor. Each is a separate conductor: the name of the "
                    "first is [DEFAULT]host, that of the next host:2, and so on. In ironic-rules, the service in "
                    "one process, this option only causes a warning."),
    cfg.IntOpt("workers_pool_size", default=32, min=2, max=1000,
               help="Maximum number of nodes that one process works on at the same time."),
    cfg.IntOpt("queue_size", default=1000, min=0,
               help="Maximum number of tasks that wait for a worker. Further ones get 503; clients may retry."),
    cfg.IntOpt("recovery_workers", default=16, min=1, max=1000,
               help="Maximum number of nodes whose unfinished work one process resumes at the same time, and of those "
                    "whose wait it ends because they are overdue. They have workers of their own, in addition to "
                    "workers_pool_size: machines that do not reply are often among them."),
    cfg.IntOpt("operation_workers", default=4, min=1, max=1000,
               help="Maximum number of nodes on which one process runs hooks and rules again at the same time, for "
                    "operations on many nodes. They have workers of their own, in addition to workers_pool_size, so "
                    "that inspections do not wait for them."),
    cfg.IntOpt("heartbeat_interval", default=10, min=1, help="Seconds between two heartbeats of a conductor."),
    cfg.IntOpt("heartbeat_timeout", default=60, min=2,
               help="Seconds after its last heartbeat until a conductor counts as dead and others take over its "
                    "nodes."),
    cfg.IntOpt("recovery_interval", default=10, min=1,
               help="Seconds between two checks for dead conductors, unfinished work and overdue nodes. Conductors "
                    "look for operations on many nodes five times as often."),
    cfg.IntOpt("inspect_wait_timeout", default=1800, min=0, mutable=True,
               help="Seconds that a node may wait for its ramdisk in 'inspect wait'. 0: no limit."),
    cfg.IntOpt("deploy_callback_timeout", default=1800, min=0, mutable=True,
               help="Seconds that a node may wait in 'wait call-back' for the next heartbeat of its ramdisk. "
                    "0: no limit."),
    cfg.IntOpt("step_poll_interval", default=10, min=1,
               help="Seconds between two polls of hardware that executes a step by itself, such as a change of BIOS "
                    "settings. In the first seconds of a step, polls are more frequent."),
    cfg.IntOpt("step_poll_workers", default=16, min=1, max=1000,
               help="Maximum number of nodes whose hardware one process polls at the same time, and of those that "
                    "continue after a poll. Both have workers of their own, in addition to workers_pool_size."),
    cfg.BoolOpt("automated_clean", default=True, mutable=True,
                help="Clean nodes before they become available. A node's automated_clean overrides this."),
    cfg.Opt("clean_step_priority_override", type=types.Dict(types.Integer(min=0, max=MAX_PRIORITY)), default={},
            help="Priorities of clean steps in automated cleaning, as INTERFACE.STEP:PRIORITY, such as "
                 "deploy.erase_devices_metadata:123,raid.delete_configuration:50. They override those in the code "
                 "and of the ramdisk. The highest runs first; 0 means that a step does not run. Overrides "
                 "[deploy]erase_devices_priority and [deploy]erase_devices_metadata_priority."),
    cfg.IntOpt("clean_callback_timeout", default=1800, min=0, mutable=True,
               help="Seconds that a node may wait in 'clean wait' for the next heartbeat of its ramdisk. 0: no limit."),
    cfg.IntOpt("service_callback_timeout", default=1800, min=0, mutable=True,
               help="Seconds that a node may wait in 'service wait' for the next heartbeat of its ramdisk. "
                    "0: no limit."),
    cfg.IntOpt("rescue_callback_timeout", default=1800, min=0, mutable=True,
               help="Seconds that a node may wait in 'rescue wait' for the heartbeat of its rescue system. "
                    "0: no limit."),
    cfg.IntOpt("step_timeout", default=3600, min=0,
               help="Seconds that the code of a step, or a call of an inspect interface, may take. Waits for the "
                    "machine do not count. After that the node fails, and another worker replaces this one. 0: no "
                    "limit."),
    cfg.IntOpt("work_timeout", default=3600, min=0,
               help="Seconds that a worker may wait for a machine, the database or anything else. Hooks, actions "
                    "and steps have time-outs of their own. After that another worker replaces this one, and the "
                    "work on the node resumes. It must be longer than all time-outs of power changes. 0: no limit."),
    cfg.StrOpt("pin_release_version", choices=RELEASES,
               deprecated_opts=[cfg.DeprecatedOpt("pin_release_version", group="DEFAULT")],
               help="While conductors of two releases run at the same time, set this to the older release. "
                    "Conductors then apply no deploy template and log a warning. Unset it after the upgrade of all. "
                    "Set the same value for all processes. If conductors differ, one that starts logs a warning "
                    "with their names; ironic-rules-status upgrade check prints the names."),
    cfg.IntOpt("power_state_change_timeout", default=60, min=2,
               help="Seconds that a machine may take to reach the requested power state."),
    cfg.IntOpt("sync_power_state_interval", default=60, min=0,
               help="Seconds between two readings of the power states that BMCs report. Conductors correct stored "
                    "states and switch no machine. They spread requests over the interval. 0: none."),
    cfg.IntOpt("sync_power_state_workers", default=8, min=1, max=1000,
               help="Maximum number of BMCs from which one conductor reads the power state at the same time."),
    cfg.ListOpt("file_url_allowed_paths", default=[], item_type=Folder(),
                help="Folders with files that file:/// URLs of images may name. Machines get the files through "
                     "[deploy]http_root. Empty: none."),
    cfg.IntOpt("soft_power_off_timeout", default=600, min=2,
               help="Seconds that the operating system of a machine may take for a soft power off."),
    cfg.IntOpt("node_history_max_entries", default=300, min=0,
               help="Maximum number of history entries kept per node and type of event: inspection, provisioning, "
                    "cleaning, servicing. 0: no history."),
    cfg.IntOpt("shutdown_grace", default=1, min=0, max=3600,
               help="Seconds that running work has to finish when the process stops. The next conductor resumes "
                    "unfinished work."),
    cfg.HostAddressOpt("metrics_host", default="127.0.0.1", help="Address of the Prometheus metrics."),
    cfg.PortOpt("metrics_port", default=0, min=0,
                help="TCP port for the metrics of ironic-rules-conductor. No authentication. The second of "
                     "[conductor]workers has the next port, and so on. 0: none. Requires the extra 'metrics'."),
    cfg.BoolOpt("metrics_tls", default=False,
                help="Serve the metrics with https: the certificate, and the authorities of clients, are those of "
                     "[api]ssl_cert_file, ssl_key_file and ssl_ca_file."),
]
