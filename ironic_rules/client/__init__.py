"""What users install on their machine: commands for ``openstack`` and a companion of openstacksdk.

Not part of the service, which never imports it. Needs the extra ``client``.
"""
