install -d /var/lib/tftpboot
cp /usr/lib/ipxe/undionly.kpxe /usr/lib/ipxe/ipxe.efi /var/lib/tftpboot/
dnsmasq --test --conf-file=/etc/ironic-rules-dnsmasq.conf
