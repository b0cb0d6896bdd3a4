"""``[pxe_filter]``: which MAC addresses may boot the inspection image."""

from __future__ import annotations

from oslo_config import cfg

GROUP = cfg.OptGroup("pxe_filter", title="PXE filter", help="ironic-pxe-filter, and notifications to it.")
OPTS: list[cfg.Opt] = [
    cfg.ListOpt("dhcp_hostsdir", default=[],
                help="Folders that dnsmasq watches (its option dhcp-hostsdir), one for each local dnsmasq that "
                     "ironic-pxe-filter controls; it requires at least one. They must exist."),
    cfg.IntOpt("sync_period", default=45, min=1,
               help="Seconds between two reads of the database for changes without a message."),
    cfg.IntOpt("full_sync_period", default=900, min=1,
               help="Seconds between two reads of all ports. Other reads fetch only changes."),
    cfg.IntOpt("hosts_files", default=1024, min=0, max=65536,
               help="Number of files for the MAC addresses. 0: one file for each address, named after it."),
    cfg.ListOpt("supported_inspect_interfaces", default=["agent"],
                help="Inspect interfaces whose nodes need the DHCP server. Nodes with other interfaces are always "
                     "denied."),
    cfg.BoolOpt("deny_unknown_macs", default=False,
                help="Always deny addresses without a port. False: they are allowed while any node is on inspection, "
                     "and always with [auto_discovery]enabled."),
    cfg.ListOpt("dnsmasq_pid_file", default=[],
                help="PID files of the dnsmasq processes, in the order of dhcp_hostsdir. With them, dnsmasq gets "
                     "SIGHUP to remove addresses that no longer have a port. Without them, these remain in the files, "
                     "denied or allowed like unknown ones."),
    cfg.IntOpt("reload_after", default=100_000, min=1000,
               help="Number of superfluous lines in the memory of a dnsmasq, about 160 bytes each, after which it gets "
                    "SIGHUP. Used with dnsmasq_pid_file."),
    cfg.BoolOpt("notify",
                help="Whether the API and the conductors notify every ironic-pxe-filter of changes. Default: true, "
                     "unless transport_url works only within a process."),
    cfg.HostAddressOpt("metrics_host", default="127.0.0.1", help="Address on which the Prometheus metrics are served."),
    cfg.PortOpt("metrics_port", default=0, min=0,
                help="TCP port for the metrics of ironic-pxe-filter. 0: none. Requires the extra 'metrics'."),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register ``[pxe_filter]``."""
    conf.register_group(GROUP)
    conf.register_opts(OPTS, group=GROUP)


def list_opts() -> dict[str, list[cfg.Opt]]:
    """Return the options by group."""
    return {GROUP.name: OPTS}
