"""``ironic-pxe-filter``: which MAC addresses a dnsmasq beside it lets boot the inspection image."""
