systemctl daemon-reload
systemctl enable --now nginx ironic-rules ironic-rules-dnsmasq
# nginx runs since it was installed: it has not read its new file.
systemctl reload nginx
