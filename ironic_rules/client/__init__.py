"""The client package for users' machines: commands for ``openstack`` and an addition to openstacksdk.

Not part of the service, which never imports it. Requires the extra ``client``.
"""
