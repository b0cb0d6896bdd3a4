"""``[deploy]``: the images that machines boot, the web server that serves them, and the order of deploy steps.

``[pxe]``: ``boot.ipxe``, the script with which machines begin that boot over the network.
"""

from __future__ import annotations

from oslo_config import cfg, types

from ironic_rules.conf.value_types import HttpUrlType, ImageUrl, IpNetwork
from ironic_rules.models.steps import MAX_PRIORITY

GROUP = cfg.OptGroup("deploy", title="Deploy", help="Ramdisks, and the web server from which machines load them.")
OPTS: list[cfg.Opt] = [
    cfg.URIOpt("http_url", schemes=["http", "https"],
               help="URL of the web server that serves http_root to machines and their BMCs."),
    cfg.StrOpt("http_root", default="$state_path/httpboot",
               help="Folder for boot scripts and images for machines."),
    cfg.StrOpt("http_access_log",
               help="Access log of the web server of http_url, in the common or the combined format of nginx and "
                    "Apache. If a node waits too long for its ramdisk, its error names the files that the machine "
                    "requested: boot script, kernel, ramdisk or image. Default: the error does not say that."),
    cfg.Opt("external_callback_url", type=HttpUrlType(),
            help="Root URL of the API for ramdisks booted from virtual media, if it differs from the one for "
                 "machines that boot over the network. Only without [inspector]callback_endpoint_override. Default: "
                 "[api]public_endpoint."),
    cfg.Opt("deploy_kernel", type=ImageUrl(),
            help="URL of the ramdisk's kernel, for nodes without driver_info/deploy_kernel."),
    cfg.Opt("deploy_ramdisk", type=ImageUrl(),
            help="URL of the ramdisk, for nodes without driver_info/deploy_ramdisk."),
    cfg.Opt("deploy_iso", type=ImageUrl(),
            help="URL of a bootable ISO image with the ramdisk, for nodes without driver_info/deploy_iso."),
    cfg.BoolOpt("power_off_after_deploy_failure", default=True,
                help="Power off a machine when its deployment has failed. Set to false to debug failures."),
    cfg.StrOpt("default_boot_mode", default="uefi", choices=["uefi", "bios"],
               help="Boot mode of machines for which neither the instance nor the node specifies one."),
    cfg.BoolOpt("stream_raw_images", default=True,
                help="Let agents write a raw image to the disk while they load it. False: they load all of it into the "
                     "memory of the ramdisk first."),
    cfg.BoolOpt("allow_md5_checksum", default=True,
                help="Accept MD5 checksums of images, which are weak: who can change an image can also make one "
                     "with the same checksum. validate warns about them. False: conductors and agents reject them."),
    cfg.BoolOpt("fast_track", default=False,
                help="Leave ramdisks running after an inspection and after cleaning, until an instance boots. "
                     "Cleaning and deployment continue with the running agent, without a reboot. "
                     "driver_info/fast_track overrides it for a node."),
    cfg.IntOpt("fast_track_timeout", default=300, min=0, max=300,
               help="Seconds since its last heartbeat for which fast_track assumes that an agent runs. After that, "
                    "the conductor reboots the machine."),
    cfg.IntOpt("agent_power_off_timeout", default=30, min=0,
               help="Seconds that a ramdisk may take to switch its machine off after a deployment, before the BMC "
                    "does it. 0: the BMC does it."),
    cfg.IntOpt("agent_silence_timeout", default=600, min=0,
               help="Seconds that a ramdisk which sends heartbeats may leave the requests for a step unanswered, "
                    "such as after a time-out or a closed connection. The conductor repeats such a request after "
                    "the next heartbeat; after this time the step fails. 0: it fails at once."),
    cfg.IntOpt("image_check_timeout", default=10, min=0,
               help="Seconds that the web server of an image may take to answer the conductor before a deployment "
                    "begins. If it does not answer, or with an error, the conductor rejects the deployment. 0: no "
                    "check, if only machines reach the server."),
    cfg.ListOpt("image_url_denied_networks", item_type=IpNetwork(),
                default=["127.0.0.0/8", "::1/128", "169.254.0.0/16", "fe80::/10", "fd00:ec2::254/128"],
                help="Networks into which no URL of a user or a machine may lead, because only the conductor, a BMC "
                     "or the machine reaches them. This applies to URLs of images, checksums, config drives, "
                     "kernels, ramdisks and ISO images of nodes and instances, virtual media, firmware and proxies "
                     "of images. It also applies to receivers of a BMC's events, webhooks, agents (callback_url), "
                     "and names in [inspection_rules]api_call_allowed_hosts. The service rejects a URL if one "
                     "address of its host is in such a network, also as an IPv4 address in an IPv6 address. Empty: "
                     "it rejects only addresses without a server, such as 0.0.0.0."),
    cfg.Opt("step_priorities", type=types.Dict(types.Integer(min=0, max=MAX_PRIORITY)), default={},
            help="Priorities of deploy steps that override those in the code, such as "
                 "bios.apply_configuration:50,raid.create_configuration:60. The highest runs first; 0 means that a "
                 "step runs only if a deploy template or a request contains it. For core steps only 0 is valid. "
                 "Priorities in templates and requests override this."),
    cfg.IntOpt("erase_devices_priority", min=0, max=MAX_PRIORITY,
               help="Priority of the clean step deploy.erase_devices in automated cleaning. 0: it does not run. "
                    "Default: that of the hardware or the ramdisk."),
    cfg.IntOpt("erase_devices_metadata_priority", min=0, max=MAX_PRIORITY,
               help="Priority of the clean step deploy.erase_devices_metadata in automated cleaning. 0: it does not "
                    "run. Default: that of the hardware or the ramdisk."),
    cfg.BoolOpt("enable_ata_secure_erase", default=True,
                help="Let ramdisks erase disks by ATA Secure Erase where the disks support it."),
    cfg.BoolOpt("enable_nvme_secure_erase", default=True,
                help="Let ramdisks erase NVMe disks by their own format command where the disks support it."),
    cfg.BoolOpt("continue_if_disk_secure_erase_fails", default=False,
                help="Let ramdisks overwrite a disk whose own erasure has failed. False: the clean step fails."),
    cfg.IntOpt("shred_random_overwrite_iterations", default=1, min=0,
               help="Number of times that ramdisks overwrite a disk with random data, if it does not erase itself."),
    cfg.BoolOpt("shred_final_overwrite_with_zeros", default=True,
                help="Let ramdisks overwrite disks with zeros after that."),
    cfg.BoolOpt("erase_skip_read_only", default=False,
                help="Let ramdisks leave out read-only disks. False: the clean step fails."),
    cfg.IntOpt("disk_erasure_concurrency", default=4, min=1,
               help="Maximum number of disks of a machine that a ramdisk erases at the same time."),
]

PXE_GROUP = cfg.OptGroup("pxe", title="PXE", help="boot.ipxe, with which machines begin that boot over the network.")
PXE_OPTS: list[cfg.Opt] = [
    cfg.StrOpt("unknown_machines",
               choices=[("inspect", "they boot the inspection ramdisk, with kernel and ramdisk of this group"),
                        ("next", "they continue with their next boot device"),
                        ("script", "they continue with ipxe_fallback_script")],
               help="Action of boot.ipxe for a machine without a script of its own: without a node, or not booted "
                    "by the service now. Default: script with ipxe_fallback_script, inspect with "
                    "[auto_discovery]enabled, else next."),
    cfg.Opt("kernel", type=ImageUrl(),
            help="URL of the kernel for machines without a script of their own. Default: [deploy]deploy_kernel."),
    cfg.Opt("ramdisk", type=ImageUrl(),
            help="URL of the ramdisk for them. Default: [deploy]deploy_ramdisk."),
    cfg.StrOpt("kernel_append_params",
               help="Additional kernel parameters for them, separated by spaces. Default: "
                    "[inspector]extra_kernel_params."),
    cfg.Opt("callback_url", type=HttpUrlType(),
            help="Root URL of the API for their ramdisk. Default: [inspector]callback_endpoint_override, then "
                 "[api]public_endpoint."),
    cfg.StrOpt("ipxe_fallback_script",
               help="Name or URL of a script of the operator, with which machines without a script of their own "
                    "continue. A name is that of a file in [deploy]http_root."),
    cfg.StrOpt("ipxe_boot_script",
               help="Source of boot.ipxe, instead of the file in this package."),
]
