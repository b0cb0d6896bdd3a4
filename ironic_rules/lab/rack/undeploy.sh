openstack baremetal node undeploy --wait 1800 first
