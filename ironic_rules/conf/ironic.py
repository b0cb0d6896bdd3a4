"""Options of Ironic and ironic-inspector that configuration files may contain, and this service does not offer.

For each: what to set instead, if anything; those about security that no process reads are errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from oslo_utils import strutils

#: Formats of images that Ironic permits by default, in all its versions.
_FORMATS = frozenset({"raw", "qcow2", "iso"})


class Protection(NamedTuple):
    """An option that requests a protection which the service does not have under that name.

    ``is_requested`` tells by the value whether the option does so; ``instead`` says what to do.
    """

    is_requested: Callable[[str], bool]
    instead: str


def _is_true(value: str) -> bool:
    return bool(strutils.bool_from_string(value))


def _is_false(value: str) -> bool:
    return not strutils.bool_from_string(value, default=True)


def _is_set(value: str) -> bool:
    return value.strip().lower() not in ("", "none", "<none>")


def _is_path(value: str) -> bool:
    """Tell whether an option is the file of a certificate: others of its values are true and false."""
    return _is_set(value) and not _is_true(value) and not _is_false(value)


def _is_one_of(*values: str) -> Callable[[str], bool]:
    return lambda value: value.strip().lower() in values


def _is_below(number: int) -> Callable[[str], bool]:
    return lambda value: value.strip().isdecimal() and int(value) < number


def _limits_formats(value: str) -> bool:
    return not {word.strip().lower() for word in value.split(",")} >= _FORMATS


_TLS = ("Set [api]ssl_cert_file, ssl_key_file and, for certificates of clients, ssl_ca_file. The versions are TLS 1.2 "
        "and 1.3, with OpenSSL's own choice of ciphers.")
_NO_SOCKET = ("The API listens on TCP only: keep [api]host_ip = 127.0.0.1, and choose another [DEFAULT]auth_strategy "
              "than noauth.")
_PUBLIC = ("/healthcheck replies to every address: turn it off with [api]enable_healthcheck = false, or let a proxy "
           "restrict it.")
_NO_AUDIT = ("No audit events are written: the log of the API has a line for each request, with its user and project. "
             "Collect these.")
_NO_JSON_RPC = ("JSON-RPC is not offered: protect RabbitMQ with [oslo_messaging_rabbit]ssl and with the user and "
                "password in [DEFAULT]transport_url, or run ironic-rules, which needs no broker.")
_AGENT_TLS = ("Conductors verify the certificate of an agent that has one, but also call agents without TLS: keep the "
              "network of the ramdisks separate.")
_RAMDISK_CA = "Ramdisks are given no certificate: build that of the API's proxy into the ramdisk image."
_SYSTEM_CA = ("Servers are verified with the certificates of the system: add this one to them "
              "(update-ca-certificates).")
_BMC_CA = "Set redfish_verify_ca in driver_info of each node to this path."
_IMAGES = ("Conductors do not read images, and agents verify the checksum of each: check images before you publish "
           "them.")
_CHECKSUMS = ("A checksum may be the URL of a list: restrict where URLs may lead with "
              "[deploy]image_url_denied_networks.")
_BOOT_MODES = "No boot mode is refused: set [deploy]default_boot_mode, and boot_mode in the capabilities of nodes."
_CLEANING = ("Automated cleaning runs the steps that interfaces and ramdisks offer: set "
             "[conductor]clean_step_priority_override.")
_DELETION = "Available nodes can be deleted: restrict the policy baremetal:node:delete."
_AT_ONCE = "All work is limited together: set [conductor]workers_pool_size and [conductor]queue_size."
_FILTER = ("ironic-pxe-filter, a process of its own, filters DHCP: set [pxe_filter]target and the options that it "
           "needs, and start it.")

#: (group, option) -> protection. None of these is an option of the service.
PROTECTIONS: Mapping[tuple[str, str], Protection] = {
    ("api", "enable_ssl_api"): Protection(_is_true, _TLS),
    ("DEFAULT", "use_ssl"): Protection(_is_true, _TLS),
    ("DEFAULT", "ssl_cert_path"): Protection(_is_set, _TLS),
    ("DEFAULT", "ssl_key_path"): Protection(_is_set, _TLS),
    ("ssl", "ca_file"): Protection(_is_set, _TLS),
    ("ssl", "cert_file"): Protection(_is_set, _TLS),
    ("ssl", "key_file"): Protection(_is_set, _TLS),
    ("ssl", "version"): Protection(_is_set, _TLS),
    ("ssl", "ciphers"): Protection(_is_set, _TLS),
    ("api", "unix_socket"): Protection(_is_set, _NO_SOCKET),
    ("DEFAULT", "listen_unix_socket"): Protection(_is_set, _NO_SOCKET),
    ("healthcheck", "allowed_source_ranges"): Protection(_is_set, _PUBLIC),
    ("audit", "enabled"): Protection(_is_true, _NO_AUDIT),
    ("json_rpc", "use_ssl"): Protection(_is_true, _NO_JSON_RPC),
    ("json_rpc", "auth_strategy"): Protection(_is_one_of("keystone", "http_basic"), _NO_JSON_RPC),
    ("json_rpc", "allowed_roles"): Protection(_is_set, _NO_JSON_RPC),
    ("json_rpc", "unix_socket"): Protection(_is_set, _NO_JSON_RPC),
    ("agent", "require_tls"): Protection(_is_true, _AGENT_TLS),
    ("agent", "verify_ca"): Protection(_is_path, _SYSTEM_CA),
    ("agent", "api_ca_file"): Protection(_is_set, _RAMDISK_CA),
    ("DEFAULT", "webserver_verify_ca"): Protection(_is_path, _SYSTEM_CA),
    ("redfish", "verify_ca"): Protection(_is_path, _BMC_CA),
    ("conductor", "conductor_always_validates_images"): Protection(_is_true, _IMAGES),
    ("conductor", "permitted_image_formats"): Protection(_limits_formats, _IMAGES),
    ("conductor", "disable_support_for_checksum_files"): Protection(_is_true, _CHECKSUMS),
    ("conductor", "disallowed_deployment_boot_modes"): Protection(_is_set, _BOOT_MODES),
    ("conductor", "automated_cleaning_step_source"): Protection(_is_one_of("runbook", "hybrid"), _CLEANING),
    ("conductor", "allow_deleting_available_nodes"): Protection(_is_false, _DELETION),
    ("conductor", "max_concurrent_deploy"): Protection(_is_below(250), _AT_ONCE),
    ("conductor", "max_concurrent_clean"): Protection(_is_below(50), _AT_ONCE),
    ("pxe_filter", "driver"): Protection(_is_one_of("iptables", "dnsmasq"), _FILTER),
    ("iptables", "dnsmasq_interface"): Protection(_is_set, _FILTER),
    ("firewall", "manage_firewall"): Protection(_is_true, _FILTER),
    ("dnsmasq_pxe_filter", "dhcp_hostsdir"): Protection(_is_set, _FILTER),
}

#: (group, option) that is another option here -> that one.
RENAMED: Mapping[tuple[str, str], str] = {
    ("DEFAULT", "graceful_shutdown_timeout"): "[conductor]shutdown_grace",
    ("agent", "allow_md5_checksum"): "[deploy]allow_md5_checksum",
    ("agent", "stream_raw_images"): "[deploy]stream_raw_images",
    ("api", "api_workers"): "[api]workers",
    ("conductor", "deploy_kernel"): "[deploy]deploy_kernel",
    ("conductor", "deploy_ramdisk"): "[deploy]deploy_ramdisk",
    ("conductor", "graceful_shutdown_timeout"): "[conductor]shutdown_grace",
    ("healthcheck", "enabled"): "[api]enable_healthcheck",
    ("oslo_middleware", "max_request_body_size"): "[api]max_json_body_size",
    ("service_catalog", "endpoint_override"): "[deploy]external_callback_url",
}

#: Groups of Ironic and of its libraries that are not here.
_GROUPS = """
    agent agent_containers anaconda ansible audit_middleware_notifications cinder console cors dhcp
    disk_partitioner disk_utils dnsmasq dnsmasq_pxe_filter drac fake firewall glance healthcheck ibmc ilo ironic
    ironic_lib ironic_networking irmc iptables json_rpc local_rpc mdns metrics metrics_statsd molds neutron nova oci
    oneview port_physnet processing profiler sensor_data service_catalog snmp ssl swift vnc watcher_file xclarity"""
GROUPS = frozenset(_GROUPS.split())

#: Names of Ironic's options in groups that are also here. Each means what it means there.
NAMES: Mapping[str, frozenset[str]] = {group: frozenset(names.split()) for group, names in {
    "DEFAULT": """
        bindir debug_tracebacks_in_api default_portgroup_mode default_resource_class esp_image
        fatal_exception_format_errors force_raw_images grub_config_path grub_config_template hash_partition_exponent
        hash_ring_algorithm hash_ring_reset_interval http_basic_username image_download_concurrency isolinux_bin
        isolinux_config_template ldlinux_c32 log_in_db_max_size minimum_memory_wait_retries minimum_memory_wait_time
        minimum_memory_warning_only minimum_required_memory my_ip my_ipv6 parallel_image_downloads
        pybasedir raw_image_growth_factor require_agent_token rootwrap_config rpc_transport tempdir
        webserver_connection_timeout listen_address listen_port timeout
        introspection_delay ipmi_address_fields max_concurrency clean_up_period leader_election_interval""",
    "audit": "audit_map_file enabled ignore_req_list",
    "api": "network_data_schema unix_socket_mode",
    "conductor": """
        allow_provisioning_in_maintenance automated_cleaning_runbook automated_cleaning_runbook_by_resource_class
        automated_cleaning_runbook_from_node automated_cleaning_runbook_validate_traits automatic_lessee
        automatic_lessee_source bootloader bootloader_by_arch cache_clean_up_interval check_allocations_interval
        check_provision_state_interval check_rescue_state_interval conductor_cleanup_batch_size
        conductor_cleanup_interval conductor_cleanup_timeout configdrive_swift_container
        configdrive_swift_temp_url_duration configdrive_use_swift deploy_kernel_by_arch deploy_ramdisk_by_arch
        disable_configdrive_check disable_deep_image_inspection disable_file_checksum disable_kernel_parameter_parsing
        disable_metadata_mtu_check disable_zstandard_decompression enable_mdns error_on_ramdisk_config_inconsistency
        force_power_state_during_sync log_step_flows_to_syslog max_conductor_wait_step_seconds node_history
        node_history_cleanup_batch_count node_history_cleanup_interval node_history_minimum_days
        node_locked_retry_attempts node_locked_retry_interval periodic_max_workers permit_child_node_step_async_result
        power_failure_recovery_interval power_state_sync_max_retries poweroff_in_cleanfail poweroff_in_servicefail
        record_step_flows_in_history require_rescue_password_hashed rescue_kernel rescue_kernel_by_arch
        rescue_password_hash_algorithm rescue_ramdisk rescue_ramdisk_by_arch reserved_workers_pool_percentage
        send_sensor_data sync_local_state_interval
        verify_step_priority_override""",
    "database": """
        asyncio_connection backend connection_trace db_inc_retry_interval db_max_retry_interval db_retry_interval
        mysql_engine mysql_sql_mode mysql_wsrep_sync_wait slave_connection sqlite_max_wait_time use_db_reconnect""",
    "deploy": """
        configdrive_use_object_store create_configuration_priority default_boot_option delete_configuration_priority
        external_http_url http_image_subdir iso_cache_size iso_cache_ttl iso_master_path object_store_endpoint_type
        ramdisk_image_download_source""",
    "inspector": "default_callback_endpoint status_check_period",
    "inventory": "swift_data_container",
    "ipmi": """
        additional_retryable_ipmi_errors debug disable_boot_timeout kill_on_timeout store_cred_in_env
        use_ipmitool_retries""",
    "pxe": """
        boot_retry_check_interval boot_retry_timeout default_ephemeral_format dir_permission disable_boot_script
        enable_netboot_fallback file_permission image_cache_size image_cache_ttl images_path initial_grub_template
        instance_master_path ip_version ipxe_bootfile_name ipxe_bootfile_name_by_arch ipxe_config_template
        ipxe_enabled ipxe_timeout ipxe_use_swift loader_file_paths pxe_append_params pxe_bootfile_name
        pxe_bootfile_name_by_arch pxe_config_subdir pxe_config_template pxe_config_template_by_arch tftp_master_path
        tftp_root tftp_server uefi_ipxe_bootfile_name uefi_pxe_bootfile_name uefi_pxe_config_template""",
    "pxe_filter": "dhcp_hostsdir_purge supported_inspection_interfaces",
    "redfish": """
        boot_mode_config_timeout default_inspection_hooks enable_verify_bmc_clock file_permission firmware_source
        firmware_update_bmc_timeout firmware_update_bmc_version_check_interval firmware_update_fail_interval
        firmware_update_nic_starting_wait firmware_update_overall_timeout firmware_update_reboot_delay
        firmware_update_required_successes firmware_update_resource_validation_timeout firmware_update_status_interval
        firmware_update_validation_interval firmware_update_wait_unresponsive_bmc inspection_hooks
        kernel_append_params post_boot_retry_attempts post_boot_retry_delay power_on_conflict_retry_attempts
        power_on_conflict_retry_interval raid_config_fail_interval raid_config_status_interval
        swift_container swift_object_expiry_timeout use_swift""",
}.items()}


def is_known(group: str, name: str) -> bool:
    """Return whether Ironic or ironic-inspector has an option, which then means what it means there."""
    return name in NAMES.get(group, ()) or (group, name) in PROTECTIONS


_VENDOR = "Hardware types of vendors are not offered; BMCs of this vendor support Redfish or IPMI: use redfish or ipmi."
_REDFISH = "Interfaces of vendors are not offered: use redfish."
_NETWORK = "Ports are not moved between networks: use noop."
_DEPLOY = "Images are written by the agent: use direct, or custom-agent with steps of your own."
_CONSOLE = "Consoles are not offered: use no-console."

#: (group, option) -> value -> advice
VALUES: dict[tuple[str, str], dict[str, str]] = {
    ("inventory", "data_backend"): {
        "swift": "The object store of Ironic is not offered: use database, which holds inventories of any size."},
    ("redfish", "auth_type"): {
        "digest": "HTTP digest is not offered: use auto, session or basic, whichever the BMC has."},
    ("DEFAULT", "auth_strategy"): {
        "none": "Use noauth, on 127.0.0.1 only, or http_basic."},
    ("DEFAULT", "enabled_hardware_types"): {
        **dict.fromkeys(("idrac", "ilo", "ilo5", "irmc", "xclarity", "ibmc", "intel-ipmi"), _VENDOR),
        "snmp": "Power distribution units are not controlled: power these machines by hand, with fake-hardware.",
        "manual-management": "Use fake-hardware, which reports power states without a machine."},
    ("DEFAULT", "enabled_inspect_interfaces"): {
        "inspector": "An interface that uses a running ironic-inspector is not built, and Ironic has removed its own. "
                     "This service replaces ironic-inspector: use agent, and see the page 'Moving from "
                     "ironic-inspector'.",
        **dict.fromkeys(("idrac-redfish", "idrac", "ilo", "irmc"), "Use redfish (out of band) or agent (in band).")},
    ("DEFAULT", "enabled_boot_interfaces"): {
        **dict.fromkeys(("pxe", "http", "http-ipxe", "irmc-pxe", "ilo-pxe", "ilo-ipxe"),
                        "Machines load iPXE scripts: use ipxe, or redfish-virtual-media."),
        **dict.fromkeys(("idrac-redfish-virtual-media", "ilo-virtual-media", "irmc-virtual-media", "redfish-https",
                         "ilo-uefi-https"), "Use redfish-virtual-media.")},
    ("DEFAULT", "enabled_deploy_interfaces"): dict.fromkeys(
        ("ansible", "anaconda", "bootc", "autodetect"), _DEPLOY),
    ("DEFAULT", "enabled_network_interfaces"): dict.fromkeys(("flat", "neutron", "ironic-networking"), _NETWORK),
    ("DEFAULT", "enabled_console_interfaces"): dict.fromkeys(
        ("ipmitool-socat", "ipmitool-shellinabox", "ilo", "redfish-graphical", "fake-graphical"), _CONSOLE),
    ("DEFAULT", "enabled_storage_interfaces"): dict.fromkeys(
        ("cinder", "external"), "Remote volumes are not attached: use noop."),
    ("DEFAULT", "enabled_raid_interfaces"): {
        "agent": "Software RAID is not offered: use redfish or no-raid.",
        **dict.fromkeys(("idrac-redfish", "ilo5", "irmc"), _REDFISH)},
    ("DEFAULT", "enabled_bios_interfaces"): dict.fromkeys(("idrac-redfish", "ilo", "irmc"), _REDFISH),
    ("DEFAULT", "enabled_management_interfaces"): dict.fromkeys(("idrac-redfish", "ilo", "ilo5", "irmc"), _REDFISH),
    ("DEFAULT", "enabled_power_interfaces"): {
        **dict.fromkeys(("idrac-redfish", "ilo", "irmc"), _REDFISH),
        "snmp": "Power distribution units are not controlled: use fake."},
    ("DEFAULT", "enabled_vendor_interfaces"): dict.fromkeys(
        ("ipmitool", "redfish", "idrac-redfish", "ilo", "irmc"), "Vendor methods are not offered: use no-vendor."),
}


def advice(group: str, name: str, words: Iterable[str]) -> Iterator[str]:
    """Yield the advice on those ``words`` that are Ironic's, each text once."""
    advice_by_word = VALUES.get((group, name), {})
    yield from dict.fromkeys(advice_by_word[word] for word in words if word in advice_by_word)
