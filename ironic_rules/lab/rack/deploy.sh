openstack baremetal deploy template create CUSTOM_EMPTY_DISKS \
    --steps '[{"interface": "deploy", "step": "erase_devices_metadata", "args": {}, "priority": 95}]'
openstack baremetal node add trait first CUSTOM_EMPTY_DISKS
openstack baremetal node set first \
    --instance-info image_source="$IMAGE" --instance-info image_checksum="$CHECKSUM" \
    --instance-info traits='["CUSTOM_EMPTY_DISKS"]'
openstack baremetal node deploy --wait 1800 first \
    --config-drive '{"meta_data": {"name": "first-instance", "uuid": "6d3e0a54-4b7e-4c0c-9f35-7d1c7c2d9a11"}}'
