openstack baremetal node set first --boot-interface redfish-virtual-media
