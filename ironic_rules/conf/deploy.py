"""``[deploy]``: the images that machines boot, the web server that serves them, and the order of deploy steps."""

from __future__ import annotations

from oslo_config import cfg, types

from ironic_rules.conf.value_types import HttpUrl
from ironic_rules.models.steps import MAX_PRIORITY

GROUP = cfg.OptGroup("deploy", title="Deploy", help="Ramdisks, and the web server from which machines load them.")
OPTS: list[cfg.Opt] = [
    cfg.URIOpt("http_url", schemes=["http", "https"],
               help="URL of the web server that serves http_root to machines and their BMCs."),
    cfg.StrOpt("http_root", default="$state_path/httpboot",
               help="Folder for boot scripts and images for machines."),
    cfg.Opt("external_callback_url", type=HttpUrl(),
            help="Root URL of the API that is passed to ramdisks booted from virtual media, for machines that reach "
                 "the API by another address than those that boot over the network. Used where "
                 "[inspector]callback_endpoint_override is not set. Default: [api]public_endpoint."),
    cfg.StrOpt("deploy_kernel", help="URL of the ramdisk's kernel, for nodes without driver_info/deploy_kernel."),
    cfg.StrOpt("deploy_ramdisk", help="URL of the ramdisk, for nodes without driver_info/deploy_ramdisk."),
    cfg.StrOpt("deploy_iso", help="URL of a bootable ISO image with the ramdisk, for nodes without "
                                  "driver_info/deploy_iso."),
    cfg.BoolOpt("power_off_after_deploy_failure", default=True,
                help="Power off a machine when its deployment has failed. Set to false to debug failures."),
    cfg.Opt("step_priorities", type=types.Dict(types.Integer(min=0, max=MAX_PRIORITY)), default={},
            help="Priorities of deploy steps that override those in the code, such as "
                 "bios.apply_configuration:50,raid.create_configuration:60. The highest runs first; 0 means that a "
                 "step runs only if a deploy template or a request contains it. For core steps only 0 is valid. "
                 "Priorities in templates and requests override this."),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register ``[deploy]``."""
    conf.register_group(GROUP)
    conf.register_opts(OPTS, group=GROUP)


def list_opts() -> dict[str, list[cfg.Opt]]:
    """Return the options by group."""
    return {GROUP.name: OPTS}
