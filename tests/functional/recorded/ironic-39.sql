CREATE TABLE chassis (
  id INTEGER NOT NULL,
  uuid VARCHAR(36),
  extra TEXT,
  description VARCHAR(255),
  version VARCHAR(15),
  created_at DATETIME,
  updated_at DATETIME,
  PRIMARY KEY (id),
  CONSTRAINT uniq_chassis0uuid UNIQUE (uuid)
);
INSERT INTO chassis ("id", "uuid", "extra", "description", "version", "created_at")
  VALUES (1, '986ab85f-6b81-41d1-8376-a4ff05695dc6', '{}', 'rack 7', '1.4', '2026-11-28 10:49:48.888466');
CREATE TABLE deploy_template_steps (
  id INTEGER NOT NULL,
  deploy_template_id INTEGER NOT NULL,
  interface VARCHAR(255) NOT NULL,
  step VARCHAR(255) NOT NULL,
  args TEXT NOT NULL,
  priority INTEGER NOT NULL,
  version VARCHAR(15),
  created_at DATETIME,
  updated_at DATETIME,
  PRIMARY KEY (id),
  FOREIGN KEY(deploy_template_id) REFERENCES deploy_templates (id)
);
INSERT INTO deploy_template_steps ("id", "deploy_template_id", "interface", "step", "args", "priority", "created_at")
  VALUES (1, 1, 'bios', 'apply_configuration', '{"settings": [{"name": "a", "value": "b"}], "password": "tpl"}', 150, '2026-11-28 10:49:54.398446');
CREATE TABLE deploy_templates (
  id INTEGER NOT NULL,
  uuid VARCHAR(36),
  name VARCHAR(255) NOT NULL,
  extra TEXT,
  version VARCHAR(15),
  created_at DATETIME,
  updated_at DATETIME,
  PRIMARY KEY (id),
  CONSTRAINT uniq_deploytemplates0uuid UNIQUE (uuid),
  CONSTRAINT uniq_deploytemplates0name UNIQUE (name)
);
INSERT INTO deploy_templates ("id", "uuid", "name", "extra", "version", "created_at")
  VALUES (1, '2919484e-2b73-45ae-960e-1f817601c4c4', 'CUSTOM_GOLD', '{}', '1.2', '2026-11-28 10:49:54.395876');
CREATE TABLE inspection_rules (
  id INTEGER NOT NULL,
  uuid VARCHAR(36) NOT NULL,
  priority INTEGER NOT NULL,
  description VARCHAR(255),
  scope VARCHAR(255),
  sensitive BOOLEAN,
  phase VARCHAR(16),
  conditions TEXT,
  actions TEXT NOT NULL,
  version VARCHAR(15),
  created_at DATETIME,
  updated_at DATETIME,
  PRIMARY KEY (id),
  CONSTRAINT uniq_inspection_rules0uuid UNIQUE (uuid)
);
INSERT INTO inspection_rules ("id", "uuid", "priority", "description", "sensitive", "phase", "conditions", "actions", "version", "created_at")
  VALUES (1, '557d0010-7ab8-4a49-91f1-98e4c6d03deb', 10, 'r1', 0, 'main', '[{"op": "eq", "args": {"values": ["{node.driver}", "x"]}}]', '[{"op": "set-attribute", "args": {"path": "/extra/a", "value": "b"}}]', '1.1', '2026-11-28 10:49:54.532134');
INSERT INTO inspection_rules ("id", "uuid", "priority", "description", "sensitive", "phase", "conditions", "actions", "version", "created_at")
  VALUES (2, 'ef36a228-e880-4fc9-8dc9-93ab28843cfd', 0, 'r2', 1, 'main', '[]', '[{"op": "set-attribute", "args": {"path": "/extra/pw", "value": "hidden"}}]', '1.1', '2026-11-28 10:49:54.599682');
CREATE TABLE nodes (
  id INTEGER NOT NULL,
  uuid VARCHAR(36),
  instance_uuid VARCHAR(36),
  instance_name VARCHAR(255),
  name VARCHAR(255),
  chassis_id INTEGER,
  power_state VARCHAR(15),
  target_power_state VARCHAR(15),
  provision_state VARCHAR(15),
  target_provision_state VARCHAR(15),
  provision_updated_at DATETIME,
  last_error TEXT,
  instance_info TEXT,
  properties TEXT,
  driver VARCHAR(255),
  driver_info TEXT,
  driver_internal_info TEXT,
  clean_step TEXT,
  deploy_step TEXT,
  resource_class VARCHAR(80),
  raid_config TEXT,
  target_raid_config TEXT,
  reservation VARCHAR(255),
  conductor_affinity INTEGER,
  conductor_group VARCHAR(255) DEFAULT '' NOT NULL,
  maintenance BOOLEAN,
  maintenance_reason TEXT,
  fault VARCHAR(255),
  console_enabled BOOLEAN,
  inspection_finished_at DATETIME,
  inspection_started_at DATETIME,
  extra TEXT,
  automated_clean BOOLEAN,
  protected BOOLEAN DEFAULT 0 NOT NULL,
  protected_reason TEXT,
  owner VARCHAR(255),
  lessee VARCHAR(255),
  allocation_id INTEGER,
  description TEXT,
  bios_interface VARCHAR(255),
  boot_interface VARCHAR(255),
  console_interface VARCHAR(255),
  deploy_interface VARCHAR(255),
  firmware_interface VARCHAR(255),
  inspect_interface VARCHAR(255),
  management_interface VARCHAR(255),
  network_interface VARCHAR(255),
  raid_interface VARCHAR(255),
  rescue_interface VARCHAR(255),
  retired BOOLEAN DEFAULT 0,
  retired_reason TEXT,
  network_data TEXT,
  storage_interface VARCHAR(255),
  power_interface VARCHAR(255),
  vendor_interface VARCHAR(255),
  boot_mode VARCHAR(16),
  secure_boot BOOLEAN,
  shard VARCHAR(255),
  parent_node VARCHAR(36),
  service_step TEXT,
  disable_power_off BOOLEAN DEFAULT 0,
  health VARCHAR(32),
  version VARCHAR(15),
  created_at DATETIME,
  updated_at DATETIME,
  PRIMARY KEY (id),
  CONSTRAINT uniq_nodes0uuid UNIQUE (uuid),
  CONSTRAINT uniq_nodes0instance_uuid UNIQUE (instance_uuid),
  CONSTRAINT uniq_nodes0name UNIQUE (name),
  FOREIGN KEY(chassis_id) REFERENCES chassis (id),
  CONSTRAINT nodes_conductor_affinity_fk FOREIGN KEY(conductor_affinity) REFERENCES conductors (id),
  FOREIGN KEY(allocation_id) REFERENCES allocations (id)
);
INSERT INTO nodes ("id", "uuid", "name", "chassis_id", "provision_state", "provision_updated_at", "instance_info", "properties", "driver", "driver_info", "driver_internal_info", "clean_step", "deploy_step", "resource_class", "raid_config", "target_raid_config", "conductor_affinity", "conductor_group", "maintenance", "console_enabled", "extra", "protected", "description", "bios_interface", "boot_interface", "console_interface", "deploy_interface", "firmware_interface", "inspect_interface", "management_interface", "network_interface", "raid_interface", "rescue_interface", "retired", "network_data", "storage_interface", "power_interface", "vendor_interface", "service_step", "disable_power_off", "version", "created_at", "updated_at")
  VALUES (1, '0219d004-1594-4286-b9ce-9000412a0d14', 'compute-1', 1, 'active', '2026-11-28 10:49:54.102231', '{"image_source": "http://x/y.raw", "image_checksum": "00000000000000000000000000000000", "root_gb": 10, "image_type": "whole-disk", "configdrive": "aGVsbG8="}', '{}', 'fake-hardware', '{"ipmi_address": "10.1.0.7", "ipmi_username": "root", "ipmi_password": "s3cret-compute-1"}', '{"is_whole_disk_image": true, "deploy_steps": null}', '{}', '{}', 'baremetal', '{}', '{}', 1, '', 0, 0, '{"rack": 7}', 0, 'first', 'fake', 'fake', 'fake', 'fake', 'fake', 'fake', 'fake', 'noop', 'fake', 'fake', 0, '{}', 'noop', 'fake', 'fake', '{}', 0, '1.44', '2026-11-28 10:49:48.948997', '2026-11-28 10:49:54.133704');
INSERT INTO nodes ("id", "uuid", "instance_uuid", "name", "power_state", "provision_state", "provision_updated_at", "instance_info", "properties", "driver", "driver_info", "driver_internal_info", "clean_step", "deploy_step", "resource_class", "raid_config", "target_raid_config", "conductor_affinity", "conductor_group", "maintenance", "console_enabled", "extra", "protected", "allocation_id", "bios_interface", "boot_interface", "console_interface", "deploy_interface", "firmware_interface", "inspect_interface", "management_interface", "network_interface", "raid_interface", "rescue_interface", "retired", "network_data", "storage_interface", "power_interface", "vendor_interface", "service_step", "disable_power_off", "version", "created_at", "updated_at")
  VALUES (2, '10617727-889d-458e-987f-f0073c076815', 'd5080caf-f46b-46a4-8b2e-b90a16ea7ec6', 'compute-2', 'power off', 'active', '2026-11-28 11:00:02.446080', '{"traits": [], "image_source": "http://x/y.raw", "image_checksum": "00000000000000000000000000000000", "root_gb": 10, "image_type": "whole-disk", "configdrive": "aGVsbG8="}', '{}', 'fake-hardware', '{"ipmi_address": "10.1.0.7", "ipmi_username": "root", "ipmi_password": "s3cret-compute-2"}', '{"last_power_state_change": "2026-11-28T10:59:54.414860", "is_whole_disk_image": true, "deploy_steps": null}', '{}', '{}', 'baremetal', '{}', '{}', 1, '', 0, 0, '{}', 0, 1, 'fake', 'fake', 'fake', 'fake', 'fake', 'fake', 'fake', 'noop', 'fake', 'fake', 0, '{}', 'noop', 'fake', 'fake', '{}', 0, '1.44', '2026-11-28 10:49:49.263760', '2026-11-28 11:00:02.790034');
INSERT INTO nodes ("id", "uuid", "name", "provision_state", "provision_updated_at", "instance_info", "properties", "driver", "driver_info", "driver_internal_info", "clean_step", "deploy_step", "resource_class", "raid_config", "target_raid_config", "conductor_group", "maintenance", "maintenance_reason", "console_enabled", "extra", "protected", "bios_interface", "boot_interface", "console_interface", "deploy_interface", "firmware_interface", "inspect_interface", "management_interface", "network_interface", "raid_interface", "rescue_interface", "retired", "network_data", "storage_interface", "power_interface", "vendor_interface", "service_step", "disable_power_off", "version", "created_at", "updated_at")
  VALUES (3, 'e2ccfc1c-9424-4fe0-b5a8-7f6b26f72260', 'compute-3', 'manageable', '2026-11-28 10:49:50.207760', '{}', '{}', 'fake-hardware', '{"ipmi_address": "10.1.0.7", "ipmi_username": "root", "ipmi_password": "s3cret-compute-3"}', '{}', '{}', '{}', 'baremetal', '{}', '{}', '', 1, 'fan', 0, '{}', 0, 'fake', 'fake', 'fake', 'fake', 'fake', 'fake', 'fake', 'noop', 'fake', 'fake', 0, '{}', 'noop', 'fake', 'fake', '{}', 0, '1.44', '2026-11-28 10:49:49.296579', '2026-11-28 10:49:54.346264');
INSERT INTO nodes ("id", "uuid", "name", "provision_state", "instance_info", "properties", "driver", "driver_info", "driver_internal_info", "clean_step", "deploy_step", "resource_class", "raid_config", "target_raid_config", "conductor_group", "maintenance", "console_enabled", "extra", "protected", "bios_interface", "boot_interface", "console_interface", "deploy_interface", "firmware_interface", "inspect_interface", "management_interface", "network_interface", "raid_interface", "rescue_interface", "retired", "network_data", "storage_interface", "power_interface", "vendor_interface", "service_step", "disable_power_off", "version", "created_at")
  VALUES (4, '4e246e09-c630-4193-b930-b87f622f7ce6', 'spare-1', 'enroll', '{}', '{}', 'fake-hardware', '{"ipmi_address": "10.1.0.7", "ipmi_username": "root", "ipmi_password": "s3cret-spare-1"}', '{}', '{}', '{}', 'baremetal', '{}', '{}', '', 0, 0, '{}', 0, 'fake', 'fake', 'fake', 'fake', 'fake', 'fake', 'fake', 'noop', 'fake', 'fake', 0, '{}', 'noop', 'fake', 'fake', '{}', 0, '1.44', '2026-11-28 10:49:49.321838');
INSERT INTO nodes ("id", "uuid", "name", "provision_state", "instance_info", "properties", "driver", "driver_info", "driver_internal_info", "clean_step", "deploy_step", "resource_class", "raid_config", "target_raid_config", "conductor_group", "maintenance", "console_enabled", "extra", "protected", "bios_interface", "boot_interface", "console_interface", "deploy_interface", "firmware_interface", "inspect_interface", "management_interface", "network_interface", "raid_interface", "rescue_interface", "retired", "network_data", "storage_interface", "power_interface", "vendor_interface", "service_step", "disable_power_off", "version", "created_at")
  VALUES (5, 'd5a850ef-5bb4-4d25-a9a2-66ba1617387f', 'enrolled-1', 'enroll', '{}', '{}', 'ipmi', '{"ipmi_address": "10.1.0.7", "ipmi_username": "root", "ipmi_password": "s3cret-enrolled-1"}', '{}', '{}', '{}', 'baremetal', '{}', '{}', '', 0, 0, '{}', 0, 'no-bios', 'ipxe', 'no-console', 'direct', 'no-firmware', 'agent', 'ipmitool', 'noop', 'no-raid', 'no-rescue', 0, '{}', 'noop', 'ipmitool', 'ipmitool', '{}', 0, '1.44', '2026-11-28 10:49:49.345387');
INSERT INTO nodes ("id", "uuid", "name", "provision_state", "instance_info", "properties", "driver", "driver_info", "driver_internal_info", "clean_step", "deploy_step", "resource_class", "raid_config", "target_raid_config", "conductor_group", "maintenance", "console_enabled", "extra", "protected", "bios_interface", "boot_interface", "console_interface", "deploy_interface", "firmware_interface", "inspect_interface", "management_interface", "network_interface", "raid_interface", "rescue_interface", "retired", "network_data", "storage_interface", "power_interface", "vendor_interface", "service_step", "disable_power_off", "version", "created_at")
  VALUES (6, 'd3be6098-69f0-4be0-8a6a-43fd50385153', 'flat-1', 'enroll', '{}', '{}', 'fake-hardware', '{"ipmi_address": "10.1.0.7", "ipmi_username": "root", "ipmi_password": "s3cret-flat-1"}', '{}', '{}', '{}', 'baremetal', '{}', '{}', '', 0, 0, '{}', 0, 'fake', 'fake', 'fake', 'fake', 'fake', 'fake', 'fake', 'flat', 'fake', 'fake', 0, '{}', 'noop', 'fake', 'fake', '{}', 0, '1.44', '2026-11-28 10:49:49.367380');
CREATE TABLE runbook_steps (
  id INTEGER NOT NULL,
  runbook_id INTEGER NOT NULL,
  interface VARCHAR(255) NOT NULL,
  step VARCHAR(255) NOT NULL,
  args TEXT NOT NULL,
  "order" INTEGER NOT NULL,
  version VARCHAR(15),
  created_at DATETIME,
  updated_at DATETIME,
  PRIMARY KEY (id),
  FOREIGN KEY(runbook_id) REFERENCES runbooks (id)
);
INSERT INTO runbook_steps ("id", "runbook_id", "interface", "step", "args", "order", "created_at")
  VALUES (1, 1, 'deploy', 'erase_devices_metadata', '{}', 1, '2026-11-28 10:49:54.471574');
CREATE TABLE runbooks (
  id INTEGER NOT NULL,
  uuid VARCHAR(36),
  name VARCHAR(255) NOT NULL,
  description VARCHAR(255),
  public BOOLEAN,
  owner VARCHAR(255),
  disable_ramdisk BOOLEAN,
  extra TEXT,
  version VARCHAR(15),
  created_at DATETIME,
  updated_at DATETIME,
  PRIMARY KEY (id),
  CONSTRAINT uniq_runbooks0uuid UNIQUE (uuid),
  CONSTRAINT uniq_runbooks0name UNIQUE (name)
);
INSERT INTO runbooks ("id", "uuid", "name", "public", "disable_ramdisk", "extra", "version", "created_at")
  VALUES (1, '72aad3d2-c7f3-4038-9dae-91c24ce81208', 'CUSTOM_WIPE', 0, 0, '{}', '1.2', '2026-11-28 10:49:54.466907');
CREATE TABLE volume_targets (
  id INTEGER NOT NULL,
  uuid VARCHAR(36),
  node_id INTEGER,
  volume_type VARCHAR(64),
  properties TEXT,
  boot_index INTEGER,
  volume_id VARCHAR(36),
  extra TEXT,
  version VARCHAR(15),
  created_at DATETIME,
  updated_at DATETIME,
  PRIMARY KEY (id),
  CONSTRAINT uniq_volumetargets0uuid UNIQUE (uuid),
  CONSTRAINT uniq_volumetargets0node_id0boot_index UNIQUE (node_id, boot_index),
  FOREIGN KEY(node_id) REFERENCES nodes (id)
);
INSERT INTO volume_targets ("id", "uuid", "node_id", "volume_type", "properties", "boot_index", "volume_id", "extra", "version", "created_at")
  VALUES (1, '6e6db82b-fc4d-440d-b7e5-faa801434f25', 3, 'iscsi', '{"auth_password": "vp"}', 0, 'v1', '{}', '1.1', '2026-11-28 10:49:54.745579');
