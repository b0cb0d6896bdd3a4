"""``[ipmi]``: communication with BMCs by IPMI."""

from __future__ import annotations

from oslo_config import cfg, types

GROUP = cfg.OptGroup("ipmi", title="IPMI", help="Hardware type ipmi, which uses the command ipmitool.")
OPTS: list[cfg.Opt] = [
    cfg.IntOpt("command_retry_timeout", default=60, min=1,
               help="Seconds for which a command is retried if the BMC does not respond."),
    cfg.ListOpt("cipher_suite_versions", default=[3, 17], item_type=types.Integer(min=0, max=17),
                help="Comma-separated numbers of the IPMI 2.0 cipher suites that are tried with BMCs of nodes without "
                     "driver_info/ipmi_cipher_suite, from the last to the first, as in Ironic, until the BMC accepts "
                     "one. The accepted one is remembered per BMC. Empty: ipmitool chooses, which takes long with BMCs "
                     "that do not answer Get Channel Cipher Suites."),
    cfg.IntOpt("min_command_interval", default=5, min=0,
               help="Minimum seconds between two commands to one BMC; some old BMCs stop responding if they get too "
                    "many commands."),
]
