"""Polling the BMCs of 1,000 waiting nodes: ``tox -e perf -- polls`` prints the CPU time of one round.

The BMCs are one process of their own, so that its time does not count.
"""

from __future__ import annotations

import subprocess
import sys
import time

import pytest
from rich.console import Console

from ironic_rules.conductor.step_polls import StepPolls
from ironic_rules.db import clock, nodes
from ironic_rules.hardware.redfish import client
from ironic_rules.models import states
from ironic_rules.steps import procedures
from tests.functional.test_slow_hardware import OPTIONS, Machine
from tests.functional.whole import running
from tests.unit.hardware.redfish_bmc import close_all

_NODES, _ROUNDS = 1000, 5
#: Maximum CPU time of a round in seconds.
_BAR = 1.0
_BMC = """
import http.server, json
BIOS = json.dumps({"Id": "Bios", "Name": "Bios",
                   "Attributes": {**{f"Setting{number}": number for number in range(150)}, "VMX": "off"}}).encode()
ROOT = json.dumps({"Id": "Root", "Name": "Root", "RedfishVersion": "1.6.0"}).encode()

class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def do_GET(self):
        body = BIOS if self.path.endswith("Bios") else ROOT
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 256

server = Server(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"""


@pytest.fixture
def bmc():
    process = subprocess.Popen([sys.executable, "-c", _BMC], stdout=subprocess.PIPE, text=True)
    try:
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


def test_a_round_of_a_thousand_nodes(bmc, tmp_path, monkeypatch):
    monkeypatch.setattr(client, "CONNECTIONS", client.Connections())
    spent = []
    with running(tmp_path, OPTIONS, {"redfish": Machine}) as ironic:

        def create(conn):
            for number in range(_NODES):
                path, internal = f"/redfish/v1/Systems/{number}", {}
                procedures.begin_poll(internal, "bios",
                                      {"path": f"{path}/Bios", "settings": {"VMX": "on"}, "told_before": None},
                                      clock.now(), 1800, "[redfish]configuration_timeout")
                nodes.create(conn, {
                    "driver": "redfish", "conductor_group": "", "provision_state": states.DEPLOYWAIT,
                    "bios_interface": "redfish", "driver_internal_info": internal,
                    "driver_info": {"redfish_address": bmc, "redfish_system_id": path, "redfish_username": "u",
                                    "redfish_password": "p"}})

        ironic.db.write(create)
        rounds = StepPolls(ironic.conductor)
        for _ in range(_ROUNDS):
            begun = time.process_time()
            assert rounds.poll_all() == _NODES
            assert rounds.wait(60)
            spent.append(time.process_time() - begun)
        rounds.stop()
        close_all(client.CONNECTIONS)
    Console().print(f"a round of {_NODES} nodes: {min(spent):.2f} s of CPU, with the logins {spent[0]:.2f} s (bar: "
                    f"{_BAR:.0f} s)")
