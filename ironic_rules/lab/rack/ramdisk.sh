/opt/ironic-rules/bin/ironic-rules-ramdisk build --output /var/lib/ironic-rules/httpboot
