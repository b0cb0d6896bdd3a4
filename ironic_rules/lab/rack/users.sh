/opt/ironic-rules/bin/ironic-rules-units --prefix /opt/ironic-rules
systemd-sysusers
install -d -o root -g ironic -m 750 /etc/ironic-rules
install -d -o ironic -g ironic /var/lib/ironic-rules /var/lib/ironic-rules/httpboot /var/lib/ironic-rules/dhcp-hosts
