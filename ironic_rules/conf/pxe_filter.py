"""``[pxe_filter]``: which MAC addresses may boot the inspection image."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterable

from oslo_config import cfg

from ironic_rules.conf.value_types import ConductorGroup

#: Characters of a target's name.
_NAME = cfg.types.String(regex="^[A-Za-z0-9][A-Za-z0-9_-]*$")
GROUP = cfg.OptGroup("pxe_filter", title="PXE filter", help="ironic-pxe-filter, and notifications to it.")
#: Options of one target. ``[pxe_filter:NAME]`` has them for each name in ``[pxe_filter]targets``.
TARGET_OPTS: list[cfg.Opt] = [
    cfg.StrOpt("target", default="hostsdir",
               help="Target of ironic-pxe-filter: hostsdir (folders that dnsmasq watches), kea (the host database "
                    "of Kea), or one that another package provides."),
    cfg.StrOpt("kea_connection", secret=True,
               help="The host database of Kea, as a URL like [database]connection: MySQL, MariaDB or PostgreSQL, with "
                    "the tables that kea-admin creates. The account must be able to read, insert and delete rows of "
                    "the table hosts."),
    cfg.ListOpt("kea_control_sockets", default=[],
                help="Control sockets of the Kea servers on this host. Required with target=kea, unless the filter "
                     "always denies or always allows unknown addresses."),
    cfg.ListOpt("kea_identifiers", default=["hw-address"],
                item_type=cfg.types.String(choices=["hw-address", "duid", "client-id"]),
                help="Identifiers of reservations: hw-address; duid (for DHCPv6: made of the address, and "
                     "extra/duid of the port); client-id (for DHCPv4: extra/client-id of the port). They must be in "
                     "host-reservation-identifiers of Kea."),
    cfg.ListOpt("kea_former_names", default=[], item_type=_NAME,
                help="Former names of this target in [pxe_filter]targets that no other filter has. The target "
                     "replaces reservations under these names in the host database of Kea by its own. 'all' is the "
                     "name of a filter without targets."),
    cfg.ListOpt("dhcp_hostsdir", default=[],
                help="Folders that dnsmasq watches (its option dhcp-hostsdir), one for each local dnsmasq that "
                     "ironic-pxe-filter controls; it requires at least one. They must exist."),
    cfg.IntOpt("hosts_files", default=1024, min=0, max=65536,
               help="Number of files for the MAC addresses. 0: one file for each address, named after it."),
    cfg.ListOpt("conductor_groups", default=[], item_type=ConductorGroup(),
                help="Conductor groups whose nodes this filter is for; the nodes of others are unknown to it. "
                     "Empty: all nodes. A change of a node's group takes effect at the next read of all ports."),
    cfg.ListOpt("physical_networks", default=[],
                help="Physical networks whose ports this filter is for; ports with others, or without one, are unknown "
                     "to it. Empty: all ports."),
    cfg.BoolOpt("deny_unknown_macs", default=False,
                help="Always deny addresses without a port. False: the filter allows them while any node is on "
                     "inspection, and always with [auto_discovery]enabled."),
    cfg.ListOpt("dnsmasq_pid_file", default=[],
                help="PID files of the dnsmasq processes, in the order of dhcp_hostsdir. With them, dnsmasq gets "
                     "SIGHUP to remove addresses that no longer have a port. Without them, these remain in the files, "
                     "denied or allowed like unknown ones."),
    cfg.IntOpt("reload_after", default=100_000, min=1000,
               help="Maximum number of superfluous lines in the memory of a dnsmasq, about 160 bytes each; with more, "
                    "it gets SIGHUP. It also does with more than 1000 if these are more than the lines that it needs. "
                    "Used with dnsmasq_pid_file."),
]
OPTS: list[cfg.Opt] = [
    cfg.ListOpt("targets", default=[], item_type=_NAME,
                help="Names of the targets of one ironic-pxe-filter that serves several: each has a group "
                     "[pxe_filter:NAME] with its own server, policy and scope. Options that it lacks have the value of "
                     "[pxe_filter]. Empty: one target, which [pxe_filter] configures."),
    *TARGET_OPTS,
    cfg.FloatOpt("collect_time", default=0.03, min=0, max=1,
                 help="Seconds for which the filter collects messages, to write a file once for several of them. It "
                      "writes the first message after an idle time immediately."),
    cfg.IntOpt("sync_period", default=45, min=1,
               help="Seconds between two reads of the database for changes without a message."),
    cfg.IntOpt("full_sync_period", default=900, min=1,
               help="Seconds between two reads of all ports. Other reads fetch only changes."),
    cfg.ListOpt("supported_inspect_interfaces", default=["agent"],
                help="Inspect interfaces whose nodes need the DHCP server. The filter always denies nodes with "
                     "other interfaces."),
    cfg.BoolOpt("allow_all_ramdisks", default=False,
                help="Also allow the addresses of nodes that boot a ramdisk in another procedure than inspection: "
                     "cleaning, deployment, rescue and servicing. False is for networks on which another DHCP "
                     "server, such as Neutron's, answers these. In ironic-rules in one process with its own filter, "
                     "and in a filter beside it, true is the default. Must be the same for all processes."),
    cfg.BoolOpt("in_process", default=False,
                help="Let ironic-rules, the service in one process, run the filter itself, without a broker. It "
                     "starts machines when the DHCP server serves them."),
    cfg.BoolOpt("notify",
                help="Whether the API and the conductors notify every ironic-pxe-filter of changes. Default: true, "
                     "unless transport_url works only within a process."),
    cfg.HostAddressOpt("metrics_host", default="127.0.0.1", help="Address of the Prometheus metrics."),
    cfg.PortOpt("metrics_port", default=0, min=0,
                help="TCP port for the metrics of ironic-pxe-filter. 0: none. Requires the extra 'metrics'."),
    cfg.BoolOpt("metrics_tls", default=False,
                help="Serve the metrics with https: the certificate, and the authorities of clients, are those of "
                     "[api]ssl_cert_file, ssl_key_file and ssl_ca_file."),
]


def group_of(name: str) -> str:
    """Return the group of one of ``[pxe_filter]targets``; ``[pxe_filter]`` itself for an empty name."""
    return f"{GROUP.name}:{name}" if name else GROUP.name


def register_targets(conf: cfg.ConfigOpts) -> None:
    """Register ``[pxe_filter:NAME]`` for each target, after the files have been read."""
    names: list[str] = []
    with contextlib.suppress(cfg.Error, ValueError):  # the check of all options reports it
        names = conf.pxe_filter.targets
    for name in names:
        _register(conf, name, TARGET_OPTS)


def register_own(conf: cfg.ConfigOpts, name: str, opts: Iterable[cfg.Opt]) -> None:
    """Register options of a target that another package provides, for one of ``[pxe_filter]targets`` or the only one.

    :raises cfg.DuplicateOptError: the group has another option of that name
    """
    opts = list(opts)
    conf.register_opts(opts, group=GROUP)
    if name:
        _register(conf, name, opts)


def _register(conf: cfg.ConfigOpts, name: str, opts: Iterable[cfg.Opt]) -> None:
    """Register options of ``[pxe_filter:NAME]``, with the values of ``[pxe_filter]`` as defaults."""
    for option in opts:
        own = copy.copy(option)
        with contextlib.suppress(cfg.Error, ValueError):
            own.default = conf.pxe_filter[option.dest]
        conf.register_opt(own, group=cfg.OptGroup(group_of(name)))
