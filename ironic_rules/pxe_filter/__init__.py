"""``ironic-pxe-filter``: controls which MAC addresses a local dnsmasq allows to boot the inspection image."""
