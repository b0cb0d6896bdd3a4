openstack baremetal node list --fields uuid provision_state properties
openstack baremetal port list --fields address node_uuid
