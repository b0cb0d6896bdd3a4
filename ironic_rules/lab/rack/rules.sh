openstack baremetal inspection rule import "$RULES"
