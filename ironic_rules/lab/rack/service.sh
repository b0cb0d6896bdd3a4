cat > /etc/ironic-rules/ironic-rules.conf <<'END'
[DEFAULT]
auth_strategy = http_basic
enabled_hardware_types = redfish
enabled_bios_interfaces = redfish,no-bios
enabled_boot_interfaces = ipxe,redfish-virtual-media
enabled_management_interfaces = redfish
enabled_power_interfaces = redfish
enabled_rescue_interfaces = agent,no-rescue
default_rescue_interface = agent

[api]
host_ip = 192.0.2.10

[auto_discovery]
enabled = true
driver = redfish

[deploy]
http_url = http://192.0.2.10:8080
http_access_log = /var/log/nginx/access.log
deploy_kernel = http://192.0.2.10:8080/vmlinuz
deploy_ramdisk = http://192.0.2.10:8080/initrd
deploy_iso = http://192.0.2.10:8080/ipa.iso
# Cleaning removes the partition tables; it does not overwrite whole disks.
erase_devices_priority = 0

[inspector]
callback_endpoint_override = http://192.0.2.10:6385
extra_kernel_params = console=tty0 console=ttyS0,115200

[pxe_filter]
in_process = true
dhcp_hostsdir = /var/lib/ironic-rules/dhcp-hosts
dnsmasq_pid_file = /run/ironic-rules-dnsmasq/pid
END
/opt/ironic-rules/bin/python -c 'import bcrypt, sys; print("admin:" + bcrypt.hashpw(sys.argv[1].encode(), bcrypt.gensalt()).decode())' SECRET \
    > /etc/ironic-rules/htpasswd
chown root:ironic /etc/ironic-rules/ironic-rules.conf /etc/ironic-rules/htpasswd
chmod 640 /etc/ironic-rules/ironic-rules.conf /etc/ironic-rules/htpasswd
