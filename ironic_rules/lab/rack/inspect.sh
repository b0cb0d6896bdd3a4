openstack baremetal node inspect --wait 1800 "$NAME"
