openstack baremetal node unrescue --wait 1800 first
