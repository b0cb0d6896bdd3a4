"""``ironic-rules-import``, from what an Ironic 39 has replied, and from another service of this kind.

``recorded/ironic-39.json`` has the replies of one to requests for all objects with all fields, in version 1.115, and
``recorded/ironic-39.sql`` the tables of its database that have what the replies hide.
"""

from __future__ import annotations

import collections
import contextlib
import copy
import json
import sqlite3
import threading
import urllib.parse
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

import pytest
import sqlalchemy as sa

from ironic_rules import service
from ironic_rules.cmd import import_cloud
from ironic_rules.db import conductors
from ironic_rules.db.rule_revisions import Author
from ironic_rules.db.session import Database
from ironic_rules.db.tables import (
    allocations,
    chassis,
    deploy_template_steps,
    events,
    inspection_rules,
    node_history,
    node_inventory,
    node_traits,
    nodes,
    operations,
    portgroups,
    ports,
    runbooks,
    volume_targets,
)
from ironic_rules.hardware.enabled import EnabledHardware
from ironic_rules.importing import plan, sources
from ironic_rules.importing.hidden import IronicDatabase
from ironic_rules.importing.plan import Action, Settings
from ironic_rules.importing.writing import Writer
from ironic_rules.inspection import fact_sets
from ironic_rules.rpc import transport as rpc_transport
from tests.functional import databases, whole

# openstacksdk calls what it has itself deprecated.
pytestmark = pytest.mark.filterwarnings("ignore::PendingDeprecationWarning:openstack")

RECORDED = Path(__file__).parent / "recorded"
IRONIC = json.loads((RECORDED / "ironic-39.json").read_text())
#: Arguments with which everything that was recorded can be imported.
ALL = ("--replace", "vendor_interface:ipmitool=no-vendor", "--replace", "network_interface:flat=noop")
TYPES = "[DEFAULT]\nenabled_hardware_types = fake-hardware,ipmi\nenabled_power_interfaces = fake,ipmitool\n" \
        "enabled_management_interfaces = fake,ipmitool\nenabled_deploy_interfaces = fake,direct\n" \
        "enabled_boot_interfaces = fake,ipxe\nenabled_bios_interfaces = fake,no-bios\n" \
        "enabled_firmware_interfaces = fake,no-firmware\nenabled_raid_interfaces = fake,no-raid\n" \
        "enabled_inspect_interfaces = fake,no-inspect,agent\n"
COUNTED = (nodes, ports, portgroups, allocations, chassis, deploy_template_steps, runbooks, inspection_rules,
           node_inventory, node_traits, volume_targets, node_history, operations)


class Here:
    """A service into whose database is imported: one conductor is alive, and none works."""

    def __init__(self, url: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._file = folder / "here.conf"
        self._file.write_text(f"{TYPES}transport_url = ironic-rules-memory://\n[database]\nconnection = {url}\n"
                              "sqlite_synchronous = false\n[events]\nwebhooks = true\n")
        self.conf = conf = service.prepare_config(["--config-file", str(self._file)])
        self.db: Database = databases.open_database(url)
        described = EnabledHardware(conf).describe()
        self.db.write(lambda conn: conductors.register(conn, "conductor-1", "", described, "run-1"))
        fact_sets.install_built_in(self.db)
        self._capsys = capsys

    def run(self, *arguments: str) -> tuple[int, str]:
        """Run the command; return its status and what it has printed."""
        self._capsys.readouterr()
        status = import_cloud.main(["--config-file", str(self._file), *arguments])
        out = self._capsys.readouterr()
        return status, out.err + out.out

    def rows(self, table: sa.Table) -> list[Any]:
        with self.db.reader() as conn:
            return list(conn.execute(sa.select(table).order_by(*table.primary_key)))

    def numbers(self) -> dict[str, int]:
        return {table.name: len(self.rows(table)) for table in COUNTED}


@contextlib.contextmanager
def here_in(kind: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Here]:
    with databases.migrated_database(kind) as url:
        made = Here(url, folder, capsys)
        try:
            yield made
        finally:
            made.db.dispose()


@pytest.fixture
def here(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Here]:
    with here_in("sqlite", tmp_path, capsys) as made:
        yield made


@pytest.fixture
def ironic() -> dict[str, Any]:
    """The recorded replies; a test may change them."""
    return copy.deepcopy(IRONIC)


@pytest.fixture
def database(tmp_path: Path) -> str:
    """The URL of the recorded Ironic's database, which cannot be written."""
    file = tmp_path / "ironic.sqlite"
    with contextlib.closing(sqlite3.connect(file)) as conn:
        conn.executescript((RECORDED / "ironic-39.sql").read_text())
    file.chmod(0o400)
    return f"sqlite:///{file}"


class _Quiet(WSGIRequestHandler):
    def log_message(self, *args: object) -> None:
        """Print nothing."""


@pytest.fixture
def cloud(ironic: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Serve what was recorded as cloud ``old``, two objects a page; yield the paths of the requests."""
    asked: list[str] = []

    def reply(path: str, query: dict[str, list[str]]) -> Any:
        parts = path.removeprefix("/v1/").strip("/").split("/")
        if path in ("/", "/v1", "/v1/"):
            known = {"id": "v1", "status": "CURRENT", "min_version": "1.1", "version": ironic["version"],
                     "links": [{"rel": "self", "href": f"{url}/v1/"}]}
            return {"versions": [known], "default_version": known, "version": known, "id": "v1"}
        if parts[-1] == "inventory":
            return ironic["inventories"].get(parts[1])
        key = next(key for key in reversed(parts) if key != "detail")
        if key not in ironic:
            return None
        uuids = [each["uuid"] for each in ironic[key]]
        start = uuids.index(query["marker"][0]) + 1 if "marker" in query else 0
        page = ironic[key][start:start + 2]
        more = len(ironic[key]) > start + 2
        return {key: page} | ({"next": f"http://elsewhere/v1/x?limit=2&marker={page[-1]['uuid']}"} if more else {})

    def app(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        asked.append(environ["PATH_INFO"])
        found = reply(environ["PATH_INFO"], urllib.parse.parse_qs(environ["QUERY_STRING"]))
        start_response("200 OK" if found is not None else "404 Not Found", [("Content-Type", "application/json")])
        return [json.dumps(found or {"error_message": "missing"}).encode()]

    with make_server("127.0.0.1", 0, app, handler_class=_Quiet) as server:
        url = f"http://127.0.0.1:{server.server_port}"
        clouds = tmp_path / "clouds.yaml"
        clouds.write_text(json.dumps({"clouds": {"old": {"auth_type": "none", "baremetal_endpoint_override": url}}}))
        monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(clouds))
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield asked
        finally:
            server.shutdown()
            thread.join()


def written(folder: Path, document: object, name: str = "cloud.json") -> str:
    file = folder / name
    file.write_text(json.dumps(document))
    return str(file)


def without_version(ironic: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in ironic.items() if name != "version"}


@pytest.mark.parametrize("kind", [
    "sqlite", pytest.param("mysql", marks=pytest.mark.servers), pytest.param("postgresql", marks=pytest.mark.servers)])
def test_everything_of_a_running_ironic_is_imported_once(kind, tmp_path, capsys, cloud, database, ironic):
    with here_in(kind, tmp_path, capsys) as here:
        dry = here.run("--from-cloud", "old", "--database", database, *ALL)
        nothing = here.numbers()
        first = here.run("--from-cloud", "old", "--database", database, *ALL, "--apply")
        stored, numbers = {row.name: row for row in here.rows(nodes)}, here.numbers()
        traits = [row.trait for row in here.rows(node_traits)]
        again = here.run("--from-cloud", "old", "--apply", "--partly")
        after = here.numbers()
        rules = {row.description: row for row in here.rows(inspection_rules)}
        template, volume, data = (here.rows(table)[0] for table in (deploy_template_steps, volume_targets,
                                                                    node_inventory))
        allocation = {row.name: row for row in here.rows(allocations)}["inst-b"]
        in_group = [port.portgroup_id for port in here.rows(ports)]
        finding = [row.kind for row in here.rows(operations)]
        told = collections.Counter(row.type for row in here.rows(events) if row.type.endswith(".create.end"))

    assert told["baremetal.node.create.end"] == numbers["nodes"] and len(told) == 9
    assert (told["baremetal.port.create.end"], told["baremetal.portgroup.create.end"]) == (
        numbers["ports"], numbers["portgroups"])
    assert (dry[0], first[0]) == (0, 0)
    assert "cloud old: API 1.115; this service has 1.96.\n" in dry[1]
    assert "node: 6 to create\n" in dry[1]
    assert dry[1].endswith("Nothing was written: --apply writes.\n")
    assert set(nothing.values()) == {0}
    assert "not imported: /driver_internal_info of 2 nodes" in first[1]
    active, other = stored["compute-2"], stored["flat-1"]
    assert (active.provision_state, active.power_state, active.resource_class) == ("active", "power off", "baremetal")
    assert active.driver_info["ipmi_password"] == "s3cret-compute-2"
    assert active.instance_info["configdrive"] == "aGVsbG8="
    assert active.instance_uuid == active.allocation_uuid == allocation.uuid
    assert (allocation.state, allocation.node_id) == ("active", active.id)
    assert stored["compute-3"].maintenance_reason == "fan"
    assert (other.network_interface, stored["enrolled-1"].vendor_interface) == ("noop", "no-vendor")
    assert stored["compute-1"].created_at.isoformat() == next(
        each["created_at"] for each in ironic["nodes"] if each["name"] == "compute-1")
    assert traits == ["CUSTOM_GOLD", "HW_CPU_X86_VMX"]
    assert rules["r2"].actions == [{"op": "set-attribute", "args": {"path": "/extra/pw", "value": "hidden"}}]
    assert rules["r2"].sensitive
    assert (template.args["password"], volume.properties) == ("tpl", {"auth_password": "vp"})
    assert data.inventory_data["memory"] == {"physical_mb": 65536}
    assert (data.status, data.plugin_data) == ("processed", {"root_disk": {"name": "/dev/sda"}})
    assert len(in_group) == 2 and None in in_group and any(in_group)
    assert finding == ["find_facts"]
    # Replaced objects differ; nothing else needs the secrets again.
    assert after == numbers
    assert again[1].count("refused: ") == 2
    assert '/network_interface: is "flat", and here "noop"' in again[1]


def test_a_service_of_this_kind_is_imported_with_its_own_database(here, tmp_path, capsys, database, ironic):
    assert here.run(written(tmp_path, without_version(ironic)), "--database", database, *ALL, "--apply")[0] == 0
    printed = {}
    with whole_api(here) as client:
        for kind, listed in sources.LISTS.items():
            separator = "&" if listed.path.rstrip("?").count("?") else "?"
            printed[listed.key] = client.get(f"/v1{listed.path.rstrip('?')}{separator}limit=1000").json[listed.key]
            assert printed[listed.key], kind
    other = tmp_path / "other"
    other.mkdir()
    with here_in("sqlite", other, capsys) as there:
        masked = there.run(written(tmp_path, printed, "printed.json"))
        url = here.db.engine.url.render_as_string(hide_password=False)
        status, out = there.run(written(tmp_path, printed, "printed.json"), "--database", url, "--apply")
        copied = {table.name: [comparable(row) for row in there.rows(table)]
                  for table in (nodes, inspection_rules, ports)}

    assert masked[0] == 1 and "is hidden by the other cloud" in masked[1]
    assert status == 0, out
    assert copied == {table.name: [comparable(row) for row in here.rows(table)]
                      for table in (nodes, inspection_rules, ports)}


def comparable(row: Any) -> dict[str, Any]:
    left = {"id", "revision", "position", "updated_at", "created_at", "node_id", "portgroup_id"}
    return {name: value for name, value in row._asdict().items() if name not in left}


@contextlib.contextmanager
def whole_api(here: Here) -> Iterator[whole.Client]:
    transport = rpc_transport.get_transport(here.conf)
    try:
        yield whole.Client(service.make_wsgi_app(here.conf, here.db, transport))
    finally:
        databases.stop_counting(here.db)
        transport.cleanup()


@pytest.mark.parametrize(("change", "expected"), [
    (lambda node: node.update(provision_state="clean wait"), '/provision_state: is clean wait: wait until'),
    (lambda node: node.update(provision_state="melting"), "/provision_state: is melting, which this version"),
    (lambda node: node.update(reservation="old-1"), "/reservation: the node is locked by old-1"),
    (lambda node: node.update(target_power_state="rebooting"), "/target_power_state: is rebooting: wait"),
    (lambda node: node.update(driver="ilo"), "/driver: No conductor without a group supports the hardware type ilo"),
    (lambda node: node.update(conductor_group="rack1"), "/driver: No conductor in the group rack1 is alive"),
    (lambda node: node.update(raid_interface="agent"), "/raid_interface: is agent, and enabled here for fake-hardware"),
    (lambda node: node.update(chassis_uuid=str(uuid.UUID(int=7))), "/chassis_uuid: chassis 0000"),
    (lambda node: node.update(traits=["gold"]), "/traits/0: must be a standard trait"),
    (lambda node: node.update(extra="x"), "/extra: must be an object"),
    (lambda node: node.update(created_at="yesterday"), "/created_at: "),
    (lambda node: node.update(power_state=7), "/power_state: must be of the type string"),
])
def test_a_node_that_cannot_be_taken_over_is_refused_with_the_reason(here, tmp_path, ironic, change, expected):
    node = ironic["nodes"][3]
    change(node)
    node["driver_info"] = {}
    status, out = here.run(written(tmp_path, {"nodes": [node]}), "--apply")

    assert status == 1
    assert f"refused: node {node['uuid']} (spare-1): {expected}" in out
    assert "Nothing was written, because something is refused" in out
    assert here.rows(nodes) == []


def test_an_import_is_in_the_audit_log_and_so_is_a_failed_one(here, tmp_path, ironic):
    log = tmp_path / "audit.log"
    with (tmp_path / "here.conf").open("a") as file:
        file.write(f"[audit]\nlog_file = {log}\nevents = true\n")
    new = {"uuid": str(uuid.uuid4()), "name": "new", "driver": "fake-hardware", "provision_state": "enroll",
           "driver_info": {"ipmi_password": "s3cret"}}
    source = written(tmp_path, {"nodes": [new]})
    assert here.run(source)[0] == 0
    assert not log.exists() or log.read_text() == ""
    assert here.run(source, "--apply")[0] == 0
    new |= {"uuid": str(uuid.uuid4()), "name": "other", "driver": "no-such"}
    assert here.run(written(tmp_path, {"nodes": [new]}), "--apply")[0] == 1
    assert here.run(str(tmp_path / "missing.json"), "--apply")[0] == 2

    done, refused, missing = (json.loads(line) for line in log.read_text().splitlines())
    [change] = done["changes"]
    assert (done["outcome"], change["object"], change["action"]) == ("success", "node", "create")
    assert {done["command"], refused["command"], missing["command"]} == {"ironic-rules-import"}
    assert (refused["outcome"], "something is refused" in refused["error"]) == ("failure", True)
    assert (missing["outcome"], "missing.json" in missing["error"]) == ("failure", True)
    assert "s3cret" not in log.read_text()
    assert [row.type.rpartition(".")[2] for row in here.rows(events) if ".audit." in row.type] == [
        "end", "error", "error"]


def test_what_exists_here_is_named_and_kept(here, tmp_path, ironic, database):
    taken = {"uuid": str(uuid.uuid4()), "name": "compute-2", "driver": "fake-hardware", "provision_state": "enroll"}
    mac = {"uuid": str(uuid.uuid4()), "address": ironic["ports"][0]["address"], "node_uuid": taken["uuid"]}
    assert here.run(written(tmp_path, {"nodes": [taken], "ports": [mac]}), "--apply")[0] == 0
    status, out = here.run(written(tmp_path, without_version(ironic)), "--database", database, *ALL, "--apply",
                           "--partly")

    assert status == 1
    assert f"compute-2): name compute-2 is that of the node {taken['uuid']} here" in out
    assert f"compute-1): /ports: address {mac['address']} is that of the port {mac['uuid']} here" in out
    assert "(inst-b): /node_uuid: node 10617727-889d-458e-987f-f0073c076815 cannot be imported" in out
    assert sorted(row.name for row in here.rows(nodes)) == ["compute-2", "compute-3", "enrolled-1", "flat-1", "spare-1"]


def test_a_node_that_was_changed_since_is_refused_with_what_differs(here, tmp_path, ironic, database):
    file = written(tmp_path, without_version(ironic))
    assert here.run(file, "--database", database, *ALL, "--apply")[0] == 0
    node = ironic["nodes"][0]
    node["extra"] = {"rack": 8, "api_key": "new"}
    node["traits"] = ["CUSTOM_GOLD"]
    ironic["ports"][0]["physical_network"] = "lab"
    before = here.numbers()
    status, out = here.run(written(tmp_path, without_version(ironic)), "--apply", "--partly", *ALL)

    assert status == 1
    name = f"refused: node {node['uuid']} (compute-1): "
    assert f"{name}/extra/rack: is 8, and here 7\n" in out
    assert f"{name}/extra/api_key: is another secret here\n" in out
    assert f"{name}/traits: here they differ: CUSTOM_GOLD, HW_CPU_X86_VMX\n" in out
    assert f'{name}/ports/52:54:00:aa:00:01/physical_network: is "lab", and here null\n' in out
    assert out.count("refused: ") == 4
    assert here.numbers() == before


def test_secrets_come_from_a_file_or_are_left_out(here, tmp_path, ironic):
    cut = {"nodes": ironic["nodes"][:2]}
    uuids = [node["uuid"] for node in cut["nodes"]]
    cut["nodes"][0]["chassis_uuid"] = None
    secrets = written(tmp_path, {uuids[0]: {"/driver_info/ipmi_password": "one"},
                                 "*": {"/driver_info/ipmi_password": "all"}}, "secrets.json")
    refused = here.run(written(tmp_path, cut), "--secrets", secrets)
    status, out = here.run(written(tmp_path, cut), "--secrets", secrets, "--leave-out", "/instance_info/configdrive",
                           "--apply")

    assert refused[0] == 1
    assert "/instance_info/configdrive: is hidden by the other cloud" in refused[1]
    assert "one" not in refused[1].replace("none", "").replace("one of", "").split("refused")[0]
    assert status == 0
    assert "not imported: /instance_info/configdrive of 2 nodes" in out
    assert [row.driver_info["ipmi_password"] for row in here.rows(nodes)] == ["one", "all"]
    assert all("configdrive" not in row.instance_info for row in here.rows(nodes))


def test_fields_of_a_newer_version_are_reported(here, tmp_path, cloud, ironic, database):
    ironic["version"] = "1.201"
    ironic["nodes"][0]["cooling"] = {"kind": "liquid"}
    ironic["ports"][1]["description"] = "uplink"
    ironic["runbooks"][0]["description"] = "wipes"
    status, out = here.run("--from-cloud", "old", "--database", database, *ALL)

    assert status == 0
    assert "cloud old: API 1.201; this service has 1.96.\n" in out
    for text in ("/cooling of 1 nodes", "/description of 1 ports", "/description of 1 runbooks"):
        assert f"not imported: {text}" in out
    assert out.count("not imported: ") == 4


@pytest.mark.parametrize(("document", "expected"), [
    ({"servers": []}, "/servers is none of"), ({"nodes": {}}, "/nodes must be a list of objects"),
    ({"nodes": [{}]}, "/nodes/0/uuid must be a text"), (7, "neither an object nor a list"),
    ({"nodes": [], "next": "http://x"}, "has one page of a list"), ([{"a": 1}], "/0 is not known as an object"),
    ({"inventories": {"a": 1}}, "/inventories must be an object"),
])
def test_a_file_of_another_form_is_refused(here, tmp_path, document, expected):
    status, out = here.run(written(tmp_path, document))

    assert status == 2
    assert expected in out


def test_a_list_that_a_client_has_printed_is_imported(here, tmp_path, ironic):
    node = {**ironic["nodes"][3], "driver_info": {}}
    files = [written(tmp_path, [node], "nodes.json"), written(tmp_path, ironic["inspection_rules"][:1], "rules.json"),
             written(tmp_path, ironic["runbooks"], "runbooks.json")]
    status, out = here.run(*files, "--apply")

    assert (status, "3 of 3 objects were written." in out) == (0, True)


class _Stopped(BaseException):
    """Stands for the death of the process: no code catches it."""


@pytest.mark.slow
def test_an_import_that_is_interrupted_anywhere_is_continued(here, tmp_path, ironic, database):
    settings = dict.fromkeys([("vendor_interface", "ipmitool")], "no-vendor") | {("network_interface", "flat"): "noop"}
    source = sources.Files([written(tmp_path, without_version(ironic))])
    with here.db.reader() as conn:
        offered = {row.conductor_group: row.hardware_types for row in conductors.list_conductors(conn)}
    ready = Settings([IronicDatabase(database)], replaced=settings, offered=offered)
    empty = databases.Rows(here.db)
    made: list[str] = []
    limit = [0]

    def count(conn: object, cursor: object, statement: str, *rest: object) -> None:
        if statement.startswith(("INSERT", "UPDATE")):
            made.append(statement)
            if len(made) == limit[0]:
                raise _Stopped

    def whole_import() -> None:
        found = plan.make(here.db, source, ready)
        assert not found.refused()
        writer = Writer(here.db, source.name, source.inventory, Author())
        for item in found.items:
            if item.action is Action.CREATE:
                writer.write(item)
        writer.finish()

    whole_import()
    complete = here.numbers()
    # The service's own statements are not SQLAlchemy's, unless it is watched.
    sa.event.listen(here.db.engine, "before_cursor_execute", count)
    is_interrupted = True
    while is_interrupted:
        here.db.write(empty.put)
        made.clear()
        limit[0] += 1
        try:
            whole_import()
            is_interrupted = False
        except _Stopped:
            partial = here.numbers()
            assert partial != complete or made[-1].startswith("INSERT INTO operation")
            limit[0], at = 0, limit[0]
            whole_import()
            limit[0] = at
        assert here.numbers() == complete
    assert limit[0] > sum(complete.values())


@pytest.mark.slow
def test_thousands_of_nodes_are_imported_in_parts(here, tmp_path, ironic):
    node = {**ironic["nodes"][3], "driver_info": {"ipmi_address": "10.1.0.7"}}
    many = [{**node, "uuid": str(uuid.UUID(int=number)), "name": f"n{number}"} for number in range(1200)]
    macs = [{"uuid": str(uuid.UUID(int=number + 5000)), "node_uuid": each["uuid"],
             "address": f"52:54:00:00:{number // 256:02x}:{number % 256:02x}"} for number, each in enumerate(many)]
    file = written(tmp_path, {"nodes": many, "ports": macs})
    status, out = here.run(file, "--apply")
    again = here.run(file, "--apply")

    assert (status, "1200 of 1200 objects were written." in out) == (0, True)
    assert again[0] == 0 and "node: 1200 already here" in again[1]
    assert here.numbers()["ports"] == 1200
