"""The demo: the main use case for new users, over HTTP with the samples in the package.

Loads the example rules, enrolls a node per sample inventory, starts their inspection, lets simulated ramdisks report,
and shows what the hooks and the rules changed on each node. All names are fixed, so it can be run repeatedly. Then the
machines boot whenever another user inspects them, and the one that failed has been repaired.
"""

from __future__ import annotations

import json
import logging
import re
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ironic_rules import samples
from ironic_rules.models import states
from ironic_rules.models.documents import JSONObject
from ironic_rules.simulator import node_setup
from ironic_rules.simulator.client import ApiError, Client, ClientError, Retry
from ironic_rules.simulator.inventories import Sample, SimulatedMachine, machine

LOG = logging.getLogger(__name__)

DRIVER = "fake-hardware"
_TIMEOUT_S = 60.0
#: Width in characters that the wide table needs, and the one that is used without a terminal.
_WIDE = 112
_LOG_WIDTH = 140
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
#: In events about rules; others may contain a UUID for other reasons.
_INSPECTION_EVENT = "inspection"
#: Seconds between two looks at which machines are to boot.
_BOOT_S = 2.0
#: The disk that the machine without one gets.
_DISK = {"name": "/dev/sda", "model": "MZ7KH480HAHQ0D3", "size": 480103981056, "rotational": False, "vendor": "SAMSUNG",
         "wwn": "0x5002538e00a1b2c3", "serial": "S47RNA0N100064", "hctl": "0:0:0:0", "logical_sectors": 512,
         "physical_sectors": 4096, "by_path": "/dev/disk/by-path/pci-0000:00:17.0-ata-1"}
_REST = {states.MANAGEABLE, states.INSPECTFAIL}
_PASSING = {states.INSPECTWAIT, states.INSPECTING}


@dataclass(frozen=True)
class ShownPort:
    """One port as the demo shows it."""

    address: str
    pxe_enabled: bool
    physical_network: str | None


@dataclass
class Row:
    """The result of the demo for one node.

    :param rules: descriptions of the rules that matched, in the order in which they ran
    :param seconds: from the ramdisk's POST to the end of its processing
    :param error: the node's ``last_error``, or why the demo could not continue with it
    """

    node: str
    expected_state: str
    state: str = ""
    rules: list[str] = field(default_factory=list)
    traits: list[str] = field(default_factory=list)
    properties: dict[str, Any] = field(default_factory=dict)
    ports: list[ShownPort] = field(default_factory=list)
    seconds: float | None = None
    error: str = ""


def run(endpoint: str, console: Console, authority: str | None = None) -> list[Row]:
    """Run the demo at ``endpoint`` and print its table on ``console``.

    :param authority: path of the certificate that is trusted in place of the system's
    :returns: one row per sample inventory, in the order of their names
    :raises ClientError: the service does not respond, or refuses the rules; errors of a node are in its row
    """
    machines = [machine(Sample(name, samples.inventory(name)), f"demo-{name}") for name in samples.inventory_names()]
    with Client(endpoint, retry=Retry(base_delay_s=0.5), connections=len(machines), authority=authority) as client:
        client.check()
        created = load_rules(client)
        console.print(f"[bold]1.[/bold] {len(samples.rules())} example rules loaded ({created} of them new).")
        console.print(f"[bold]2.[/bold] {len(machines)} sample nodes; simulated ramdisks report their inventories.")
        names = rule_names(client)
        with ThreadPoolExecutor(len(machines)) as pool:
            rows = list(pool.map(lambda item: inspect(client, item, names), machines))
    console.print("[bold]3.[/bold] What the hooks and rules changed:")
    if not console.is_terminal:
        console.width = max(console.width, _LOG_WIDTH)  # a file or pipe has no width
    console.print(table(rows, console.width))
    return rows


def boot_machines(endpoint: str, stop: threading.Event, authority: str | None = None) -> None:
    """Let the ramdisks of the demo report when their nodes wait for them, until ``stop`` is set.

    A node in maintenance is left alone, for those who want to report for it themselves.
    """
    machines = {f"demo-{name}": repaired(samples.inventory(name)) for name in samples.inventory_names()}
    with Client(endpoint, connections=1, authority=authority) as client:
        while not stop.wait(_BOOT_S):
            try:
                waiting = client.get("/v1/nodes", provision_state=states.INSPECTWAIT, maintenance=False, fields="name")
                for node in waiting["nodes"]:
                    if node["name"] in machines:
                        client.send_inventory(json.dumps(machines[node["name"]]).encode())
            except ClientError as exc:  # the service may be busy, or stop
                LOG.debug("The machines of the demo do not boot: %s", exc)


def repaired(body: JSONObject) -> JSONObject:
    """Return the report of a machine without faults: no error, and a disk if it had none."""
    inventory = {**body["inventory"], "disks": body["inventory"]["disks"] or [_DISK]}
    return {**{key: value for key, value in body.items() if key != "error"}, "inventory": inventory}


def load_rules(client: Client) -> int:
    """Create the missing example rules; return how many were created. Existing rules are unchanged."""
    created = 0
    for rule in samples.rules():
        try:
            client.call("POST", "/v1/inspection_rules", rule, retry_conflict=False)
        except ApiError as exc:
            if exc.status != 409:
                raise
        else:
            created += 1
    return created


def rule_names(client: Client) -> dict[str, str]:
    """Return UUID -> name, else description, else the UUID, of all rules of the service."""
    rules = client.pages("/v1/inspection_rules", "inspection_rules")
    return {rule["uuid"]: rule.get("name") or rule.get("description") or rule["uuid"] for rule in rules}


def inspect(client: Client, item: SimulatedMachine, names: Mapping[str, str]) -> Row:
    """Take one machine through its inspection and read the result."""
    row = Row(node=item.name, expected_state=item.expected_state)
    try:
        node_setup.enrol(client, item, DRIVER)
        node_setup.start_inspection(client, item, _TIMEOUT_S)
        before = {event["uuid"] for event in _history(client, item.name)}
        begin = time.perf_counter()
        callback = client.send_inventory(item.content)
        if not callback.accepted and not callback.uncertain:
            row.error = f"the ramdisk was refused: {callback.reason}"
        else:
            node_setup.wait_for(client, item.name, _REST, _PASSING, _TIMEOUT_S)
            row.seconds = time.perf_counter() - begin
        _read(client, row)
        news = [event for event in _history(client, item.name) if event["uuid"] not in before]
        row.rules = matched_rules(news, names)
    except ClientError as exc:
        row.error = str(exc)
    return row


def matched_rules(events: Any, names: Mapping[str, str]) -> list[str]:
    """Return the names of the rules that matched according to the node's history, in that order and each once.

    :param events: items of ``GET /v1/nodes/{node}/history``
    :param names: rule UUID -> name; other UUIDs in the text are not rules
    """
    matched: dict[str, None] = {}
    for event in events:
        text = str(event.get("event") or "")
        if _INSPECTION_EVENT in f"{event.get('event_type') or ''} {text}".lower():
            matched |= dict.fromkeys(uuid.lower() for uuid in _UUID.findall(text) if uuid.lower() in names)
    return [names[uuid] for uuid in matched]


def table(rows: list[Row], width: int = _LOG_WIDTH) -> Table:
    """Return the rows as a table for a terminal of ``width`` characters; in a narrow one the parts are stacked."""
    shown = Table(show_lines=True)
    if width < _WIDE:
        shown.add_column("Node", overflow="fold", max_width=28)
        shown.add_column("What the hooks and rules changed", overflow="fold")
        for row in rows:
            shown.add_row(_node_cell(row, seconds=True), _changes_cell(row))
        return shown
    for title in ("Node", "Rules that matched", "Traits", "Properties", "Ports"):
        shown.add_column(title, overflow="fold", max_width=33)
    shown.add_column("Seconds", justify="right")
    for row in rows:
        cells = [_lines(texts) or "-" for texts in (row.rules, row.traits, _property_texts(row), _port_texts(row))]
        shown.add_row(_node_cell(row), *cells, _seconds_text(row))
    return shown


def _node_cell(row: Row, seconds: bool = False) -> str:
    colour = "green" if row.state == row.expected_state else "red"
    texts = [f"[bold]{escape(row.node)}[/bold]", f"[{colour}]{escape(row.state or 'not inspected')}[/{colour}]"]
    if row.error:
        texts.append(f"[yellow]{escape(row.error)}[/yellow]")
    if seconds:
        texts.append(f"{_seconds_text(row)} seconds")
    return "\n".join(texts)


def _changes_cell(row: Row) -> str:
    parts = {"Rules that matched": row.rules, "Traits": row.traits, "Properties": _property_texts(row),
             "Ports": _port_texts(row)}
    return "\n".join(f"[bold]{title}:[/bold] {escape(', '.join(texts) or '-')}" for title, texts in parts.items())


def _property_texts(row: Row) -> list[str]:
    """Return ``key: value`` for each property, and ``name:value`` for each capability, which are one string."""
    texts = [f"{key}: {value}" for key, value in sorted(row.properties.items()) if key != "capabilities"]
    return texts + [text for text in str(row.properties.get("capabilities") or "").split(",") if text]


def _port_texts(row: Row) -> list[str]:
    texts = []
    for port in row.ports:
        notes = [note for note in ("pxe" if port.pxe_enabled else "", port.physical_network) if note]
        texts.append(port.address + (f" ({'; '.join(notes)})" if notes else ""))
    return texts


def _seconds_text(row: Row) -> str:
    return "-" if row.seconds is None else f"{row.seconds:.2f}"


def _read(client: Client, row: Row) -> None:
    node = client.get(f"/v1/nodes/{row.node}", fields="provision_state,last_error,properties,traits")
    row.state = node["provision_state"]
    row.error = row.error or node.get("last_error") or ""
    row.properties = node.get("properties") or {}
    row.traits = sorted(node.get("traits") or [])
    ports = client.pages("/v1/ports/detail", "ports", node=row.node)
    shown = [ShownPort(port["address"], bool(port.get("pxe_enabled")), port.get("physical_network")) for port in ports]
    row.ports = sorted(shown, key=lambda port: port.address)


def _history(client: Client, node: str) -> list[JSONObject]:
    return list(client.pages(f"/v1/nodes/{node}/history", "history", detail="true"))


def _lines(texts: list[str]) -> str:
    return escape("\n".join(texts))
