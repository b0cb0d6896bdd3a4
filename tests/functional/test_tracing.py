"""Tracing of a running process, with a collector that reads what it sends."""

from __future__ import annotations

import http.server
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from ironic_rules.rpc import memory
from tests.functional.databases import write_sqlite
from tests.functional.installations import only_in_one_process
from tests.functional.processes import answers, free_port, standalone, wait_for
from tests.functional.test_wsgi_servers import serve

pytestmark = [only_in_one_process("it starts the process itself"), pytest.mark.slow]
TRACE = "0af7651916cd43dd8448eb211c80319c"


class _Collector(http.server.BaseHTTPRequestHandler):
    spans: list[Any] = []

    def do_POST(self) -> None:
        content = ExportTraceServiceRequest.FromString(self.rfile.read(int(self.headers["Content-Length"])))
        for resource in content.resource_spans:
            for scope in resource.scope_spans:
                self.spans.extend(scope.spans)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


def test_a_trace_leads_from_the_request_to_the_statements_of_its_work(tmp_path: Path) -> None:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Collector)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    config = f"[tracing]\nenabled = true\nendpoint = http://127.0.0.1:{server.server_address[1]}/v1/traces\n"
    headers = {"X-OpenStack-Ironic-API-Version": "1.96", "traceparent": f"00-{TRACE}-b7ad6b7169203331-01"}
    with standalone(tmp_path, config=config) as (_, url), httpx.Client(base_url=url, trust_env=False) as client:
        uuid = client.post("/v1/nodes", json={"driver": "fake-hardware", "driver_info": {"a_password": "s3cret"}},
                           headers=headers).json()["uuid"]
        reply = client.put(f"/v1/nodes/{uuid}/states/power", json={"target": "power on"}, headers=headers)
        assert reply.status_code == 202

        def found() -> dict[str, Any] | None:
            mine = [span for span in _Collector.spans if span.trace_id.hex() == TRACE]
            names = {span.name: span for span in mine}
            work = names.get("work")
            is_whole = work is not None and any(span.parent_span_id == work.span_id for span in mine)
            return names if is_whole and "change_power_state" in names else None

        names = wait_for("the trace", found)
    parents = {span.span_id: span for span in names.values()}
    assert names["work"].parent_span_id == names["change_power_state"].span_id
    assert parents[names["change_power_state"].parent_span_id].name == "PUT baremetal:node:set_power_state"
    assert not any(b"s3cret" in span.SerializeToString() for span in _Collector.spans)
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("name", ["gunicorn-preload", "uwsgi"])
def test_statements_are_traced_in_a_process_that_a_wsgi_server_has_forked(tmp_path: Path, name: str) -> None:
    _Collector.spans.clear()
    write_sqlite(tmp_path / "database")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Collector)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    (tmp_path / "api.conf").write_text(
        f"[DEFAULT]\ntransport_url = {memory.DEFAULT_URL}\n[database]\nconnection = sqlite:///{tmp_path}/database\n"
        f"[tracing]\nenabled = true\nendpoint = http://127.0.0.1:{server.server_address[1]}/v1/traces\n")
    url = f"http://127.0.0.1:{(port := free_port())}"
    process = serve(str(tmp_path / "api.conf"), name, tmp_path, port)
    try:
        wait_for(f"{name} to answer", lambda: process.is_running() and answers(url + "/"))
        httpx.get(f"{url}/v1/nodes", headers={"traceparent": f"00-{TRACE}-b7ad6b7169203331-01"}).raise_for_status()

        def statements() -> list[Any]:
            requests = [span for span in _Collector.spans if span.name.startswith("GET baremetal:node")]
            parents = {span.span_id for span in requests}
            return [span for span in _Collector.spans if span.parent_span_id in parents and span.name != "connect"]

        wait_for("spans of statements", statements)
    finally:
        process.terminate()
        process.close()
        server.shutdown()
        server.server_close()


def test_nothing_of_it_is_imported_unless_it_is_on() -> None:
    code = ("import sys\nimport ironic_rules.cmd.standalone\nimport ironic_rules.conductor.service\n"
            "import ironic_rules.api.app\nprint([name for name in sys.modules if name.startswith('opentelemetry')])")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
