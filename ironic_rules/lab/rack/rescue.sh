openstack baremetal node rescue --wait 1800 --rescue-password SECRET first
