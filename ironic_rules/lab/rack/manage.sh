openstack baremetal node set "$NODE" --name first \
    --driver-info redfish_address="$BMC" ${SYSTEM:+--driver-info redfish_system_id="$SYSTEM"} \
    --driver-info redfish_username="$BMC_USER" --driver-info redfish_password="$BMC_PASSWORD"
openstack baremetal node manage --wait 300 first
