apt-get install -y --no-install-recommends python3-venv dnsmasq-base nginx-light ipxe \
    mmdebstrap zstd xorriso mtools grub-common grub-pc-bin shim-signed grub-efi-amd64-signed
python3 -m venv /opt/ironic-rules
/opt/ironic-rules/bin/pip install '.[redfish,http-basic,client]'
