"""``[ipmi]`` and ``[redfish]``: communication with BMCs."""

from __future__ import annotations

from oslo_config import cfg, types

from ironic_rules.conf.value_types import IpNetwork

IPMI_GROUP = cfg.OptGroup("ipmi", title="IPMI", help="Hardware type ipmi, which uses the command ipmitool.")
IPMI_OPTS: list[cfg.Opt] = [
    cfg.IntOpt("command_retry_timeout", default=60, min=1,
               help="Seconds for which conductors retry a command if the BMC does not respond."),
    cfg.ListOpt("cipher_suite_versions", default=[3, 17], item_type=types.Integer(min=0, max=17),
                help="Comma-separated numbers of the IPMI 2.0 cipher suites for nodes without "
                     "driver_info/ipmi_cipher_suite. Conductors try them from the last to the first, as in Ironic, "
                     "until the BMC accepts one. They remember the accepted one per BMC. Empty: ipmitool chooses, "
                     "which takes long with BMCs that do not answer Get Channel Cipher Suites."),
    cfg.IntOpt("min_command_interval", default=5, min=0,
               help="Minimum seconds between two commands to one BMC; some old BMCs stop responding if they get too "
                    "many commands."),
]


REDFISH_GROUP = cfg.OptGroup("redfish", title="Redfish", help="Hardware type redfish.")
REDFISH_OPTS: list[cfg.Opt] = [
    cfg.StrOpt("auth_type", default="auto",
               choices=[("auto", "a session, else HTTP basic"), ("session", "a session"), ("basic", "HTTP basic")],
               help="Authentication method of BMCs, for nodes without driver_info/redfish_auth_type."),
    cfg.ListOpt("denied_networks", item_type=IpNetwork(),
                default=["169.254.169.254/32", "fe80::a9fe:a9fe/128", "fd00:ec2::254/128"],
                help="Networks in which no BMC may be: users who may set redfish_address must reach nothing there "
                     "through the conductor. Default: metadata services. If users own nodes, add 127.0.0.0/8, "
                     "::1/128 and the networks of other services. Empty: conductors reject only addresses without a "
                     "server."),
    cfg.ListOpt("verify_ca_allowed_paths",
                default=["/etc/ssl/certs", "/usr/share/ca-certificates", "/usr/local/share/ca-certificates",
                         "/etc/pki/tls/certs", "/etc/pki/ca-trust"],
                help="Folders with the files and folders of trusted certificates that driver_info/redfish_verify_ca "
                     "may name. Everybody who may write driver_info can find out which files are in them. Links must "
                     "not lead out of them. Empty: none."),
    cfg.IntOpt("connect_timeout", default=10, min=1, help="Seconds that a BMC may take to accept a connection."),
    cfg.IntOpt("request_timeout", default=60, min=1,
               help="Seconds that the whole response of a BMC to a request may take."),
    cfg.IntOpt("connection_attempts", default=3, min=1, max=100,
               help="Maximum number of attempts to send a request to a BMC that is unavailable or reports an "
                    "internal error. Conductors never repeat a change that the BMC may have got."),
    cfg.IntOpt("connection_retry_interval", default=4, min=1, help="Seconds between these attempts."),
    cfg.IntOpt("busy_timeout", default=180, min=0,
               help="Seconds for which conductors repeat a change that a busy BMC rejects, for example while its "
                    "machine is in POST. 0: not at all."),
    cfg.IntOpt("configuration_timeout", default=1800, min=1,
               help="Seconds that a machine may take to apply the BIOS settings or volumes of a deploy step; it "
                    "reboots during this time."),
    cfg.IntOpt("factory_reset_wait", default=300, min=0,
               help="Seconds from the reboot until a reset of the BIOS settings counts as complete. They apply if "
                    "the BMC reports neither other settings nor the progress of the start. At most "
                    "configuration_timeout."),
    cfg.IntOpt("firmware_update_timeout", default=7200, min=1,
               help="Seconds that the update of one firmware component may take, with the reboot of machine or BMC, "
                    "without the wait of the step's settings."),
    cfg.IntOpt("inspection_requests_at_once", default=8, min=1, max=64,
               help="Maximum number of requests that an out-of-band inspection sends to one BMC at the same time. "
                    "1: for BMCs that fail otherwise."),
    cfg.IntOpt("inspection_max_requests", default=2000, min=1,
               help="Maximum number of requests of an out-of-band inspection. Further resources are missing from the "
                    "inventory, with a warning."),
    cfg.IntOpt("inspection_timeout", default=300, min=1,
               help="Seconds after which an out-of-band inspection stops reading resources. Unread resources are "
                    "missing from the inventory, with a warning."),
    cfg.IntOpt("connection_cache_size", default=10_000, min=0,
               help="Maximum number of BMCs with cached sessions, about 20 KiB each. 0: log in for every request. "
                    "With less than the BMCs of a conductor, each reading of a power state logs in."),
]
