"""The configuration files with which the suites find the service."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from tests.suites import identity

_ROLES = ("admin", "manager", "member", "reader")


def of_tempest(folder: Path, keystone: identity.Server) -> dict[str, str]:
    """Write ``tempest.conf`` and the accounts; return the environment that names them."""
    accounts = [{"username": f"{role}-{project}", "project_name": project, "password": identity.PASSWORD,
                 "roles": list(identity.ROLES[role]) if role == "admin" else [role],
                 "types": ["admin"] if role == "admin" else []}
                for project in ("one", "two") for role in _ROLES]
    accounts += [{"username": f"{role}-system", "system": "all", "password": identity.PASSWORD, "roles": [role]}
                 for role in _ROLES]
    (folder / "accounts.yaml").write_text(yaml.safe_dump(accounts))
    (folder / "tempest.conf").write_text(f"""\
[DEFAULT]
log_file = {folder}/tempest.log
[oslo_concurrency]
lock_path = {folder}/locks
[auth]
use_dynamic_credentials = false
test_accounts_file = {folder}/accounts.yaml
[identity]
uri_v3 = {keystone.url}
region = {identity.REGION}
[identity-feature-enabled]
api_v2 = false
[service_available]
ironic = true
cinder = false
glance = false
neutron = false
nova = false
swift = false
[enforce_scope]
ironic = true
[baremetal]
driver = fake-hardware
power_timeout = 60
unprovision_timeout = 60
enabled_hardware_types = fake-hardware
enabled_bios_interfaces = fake,no-bios
enabled_boot_interfaces = fake
enabled_console_interfaces = fake,no-console
enabled_deploy_interfaces = fake
enabled_inspect_interfaces = fake,no-inspect
enabled_management_interfaces = fake
enabled_power_interfaces = fake
enabled_raid_interfaces = fake,no-raid
enabled_rescue_interfaces = fake,no-rescue
default_rescue_interface = no-rescue
[compute]
build_interval = 1
build_timeout = 60
""")
    return {"TEMPEST_CONFIG_DIR": str(folder), "TEMPEST_CONFIG": "tempest.conf"}


def of_openstacksdk(folder: Path, keystone: identity.Server) -> dict[str, str]:
    """Write ``clouds.yaml`` with the clouds that its tests expect; return the environment."""
    def cloud(username: str, **scope: str) -> dict[str, Any]:
        return {"region_name": identity.REGION, "auth": {
            "auth_url": keystone.url, "username": username, "password": identity.PASSWORD,
            "user_domain_id": "default", **scope}}

    # Its tests of bare metal do not choose a cloud: they need an administrator of the system in the default one.
    clouds = {name: cloud("admin-system", system_scope="all")
              for name in ("devstack", "devstack-admin", "devstack-system-admin")}
    clouds["devstack-alt"] = cloud("admin-two", project_name="two", project_domain_id="default")
    file = folder / "clouds.yaml"
    file.write_text(yaml.safe_dump({"clouds": clouds}))
    # Its default is 5 seconds, which a busy computer exceeds.
    return {"OS_CLIENT_CONFIG_FILE": str(file), "OS_TEST_TIMEOUT": "300"}
