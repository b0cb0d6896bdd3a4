"""``[pxe_filter]``: which MAC addresses may boot the inspection image."""

from __future__ import annotations

from oslo_config import cfg

GROUP = cfg.OptGroup("pxe_filter", title="PXE filter", help="ironic-pxe-filter, and what the other processes tell it.")
OPTS: list[cfg.Opt] = [
    cfg.ListOpt("dhcp_hostsdir", default=[],
                help="Folders that dnsmasq watches (its option dhcp-hostsdir), one for each local dnsmasq that "
                     "ironic-pxe-filter serves; it requires at least one. They must exist."),
    cfg.IntOpt("sync_period", default=45, min=1,
               help="Seconds between two looks into the database for what no message has told."),
    cfg.IntOpt("full_sync_period", default=900, min=1,
               help="Seconds between two readings of all ports. The looks in between read what has changed."),
    cfg.IntOpt("hosts_files", default=1024, min=0, max=65536,
               help="Files that the MAC addresses are spread over. 0: one file for each address, named after it."),
    cfg.ListOpt("supported_inspect_interfaces", default=["agent"],
                help="Inspect interfaces whose nodes need the DHCP server. Nodes with others are never let in."),
    cfg.BoolOpt("deny_unknown_macs", default=False,
                help="Never let in addresses that no port has. False: they are let in while any node is inspected, "
                     "and always with [auto_discovery]enabled."),
    cfg.ListOpt("dnsmasq_pid_file", default=[],
                help="PID files of the dnsmasq processes, in the order of dhcp_hostsdir. With them a dnsmasq gets "
                     "SIGHUP when it should forget addresses that are gone. Without them they stay in the files, "
                     "denied or allowed as unknown ones are."),
    cfg.IntOpt("reload_after", default=100_000, min=1000,
               help="Lines that a dnsmasq may have read more than it needs, about 160 bytes of its memory each, until "
                    "it gets SIGHUP. Used with dnsmasq_pid_file."),
    cfg.BoolOpt("notify",
                help="Let the API and the conductors tell every ironic-pxe-filter what changed. Default: yes, unless "
                     "transport_url is one that only works within a process."),
    cfg.HostAddressOpt("metrics_host", default="127.0.0.1", help="Address at which Prometheus finds the metrics."),
    cfg.PortOpt("metrics_port", default=0, min=0,
                help="TCP port of the metrics of ironic-pxe-filter. 0: none. Needs the extra 'metrics'."),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register ``[pxe_filter]``."""
    conf.register_group(GROUP)
    conf.register_opts(OPTS, group=GROUP)


def list_opts() -> dict[str, list[cfg.Opt]]:
    """Return the options by group."""
    return {GROUP.name: OPTS}
