openstack baremetal node create --driver redfish --name "$NAME" --boot-interface "$BOOT" \
    --driver-info redfish_address="$BMC" ${SYSTEM:+--driver-info redfish_system_id="$SYSTEM"} \
    --driver-info redfish_username="$BMC_USER" --driver-info redfish_password="$BMC_PASSWORD"
openstack baremetal port create --node "$(openstack baremetal node show "$NAME" -f value -c uuid)" "$MAC"
openstack baremetal node manage --wait 300 "$NAME"
