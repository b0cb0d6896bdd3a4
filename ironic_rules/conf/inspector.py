"""``[inspector]``: inspection hooks and what they do with ports."""

from __future__ import annotations

from oslo_config import cfg

GROUP = cfg.OptGroup("inspector", title="Inspection", help="In-band inspection and its hooks.")
OPTS: list[cfg.Opt] = [
    cfg.StrOpt("default_hooks", default="ramdisk-error,validate-interfaces,ports,architecture",
               help="Comma-separated inspection hooks that run by default."),
    cfg.StrOpt("hooks", default="$default_hooks",
               help="Comma-separated inspection hooks that run, in this order."),
    cfg.StrOpt("add_ports", default="all",
               choices=[("all", "every valid interface"), ("active", "interfaces with an IP address"),
                        ("pxe", "the interface that the ramdisk booted from"), ("disabled", "none")],
               help="Interfaces that become ports of the node."),
    cfg.StrOpt("keep_ports", default="all",
               choices=[("all", "delete nothing"), ("present", "delete ports whose address is not in the inventory"),
                        ("added", "delete ports that add_ports does not select")],
               help="Existing ports that are kept."),
    cfg.BoolOpt("update_pxe_enabled", default=True,
                help="Let the inspection set pxe_enabled of existing ports to what the inventory says."),
    cfg.BoolOpt("require_managed_boot", default=True,
                help="Require that the service itself boots the ramdisk. False: allow unmanaged boot, from a DHCP and "
                     "TFTP environment that this service does not control. Fake hardware needs it, and the one-process "
                     "service (ironic-rules) allows it where nothing else is configured."),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register ``[inspector]``."""
    conf.register_group(GROUP)
    conf.register_opts(OPTS, group=GROUP)


def list_opts() -> dict[str, list[cfg.Opt]]:
    """Return the options by group."""
    return {GROUP.name: OPTS}
