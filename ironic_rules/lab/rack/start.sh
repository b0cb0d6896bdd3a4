systemctl daemon-reload
systemctl enable --now nginx ironic-rules ironic-rules-dnsmasq
