openstack baremetal node provide --wait 1800 first
