"""Metrics for Prometheus: numbers in its formats, with the library of the extra ``metrics``, and a server for them.

The server also says whether the process works, for the probes of those that run it: a conductor and a PXE filter have
no other port.

The server has a port of its own, is small, and bounded whatever connects to it. A request is a line and some headers,
and is there at once. So a connection beyond the maximum number takes the place of the oldest one, and none lives longer
than a few seconds: clients that send nothing do not keep others from the metrics.
"""

from __future__ import annotations

import contextlib
import http.server
import logging
import socket
import socketserver
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from ironic_rules.certificates import Certificates
from ironic_rules.exceptions import ConfigurationError, cannot_listen
from ironic_rules.metrics.catalog import PREFIX
from ironic_rules.metrics.numbers import Numbers
from ironic_rules.text import installation_of

LOG = logging.getLogger(__name__)

#: Returns content type and text of the metrics, for the value of a header ``Accept``.
Page: TypeAlias = Callable[[str], tuple[str, bytes]]


class NumbersCollector:
    """Gives the library the numbers of a process."""

    def __init__(self, numbers: Numbers) -> None:
        self._numbers = numbers

    def collect(self) -> Iterator[Any]:
        """Yield the current metrics; the library calls this for each request."""
        from prometheus_client import core

        for family, values in self._numbers.counters():
            counter = core.CounterMetricFamily(PREFIX + family.name, family.text, labels=family.labels)
            for labels, value in values.items():
                counter.add_metric(labels, value)
            yield counter
        for family, values in self._numbers.gauges():
            gauge = core.GaugeMetricFamily(PREFIX + family.name, family.text, labels=family.labels)
            for labels, value in values.items():
                gauge.add_metric(labels, value)
            yield gauge
        for family, timed in self._numbers.histograms():
            histogram = core.HistogramMetricFamily(PREFIX + family.name, family.text, labels=family.labels)
            for labels, times in timed.items():
                buckets, total = [], 0
                for bound, number in zip((*family.bounds, None), times.counts, strict=True):
                    total += number
                    buckets.append(("+Inf" if bound is None else f"{bound:g}", float(total)))
                histogram.add_metric(labels, buckets, times.sum_s)
            yield histogram


def page_of(collector: Any, needed_by: str) -> Page:
    """Return the function that makes the page of a collector.

    :param collector: has a method ``collect`` that yields metrics
    :param needed_by: the option that needs the library, for the error
    :raises ConfigurationError: the library is not installed
    """
    try:
        import prometheus_client
        from prometheus_client import exposition
    except ImportError as exc:
        raise ConfigurationError(f"{needed_by} needs prometheus_client; {installation_of('metrics')}") from exc
    registry = prometheus_client.CollectorRegistry(auto_describe=False)
    registry.register(collector)

    def page(accept: str) -> tuple[str, bytes]:
        encode, content_type = exposition.choose_encoder(accept)
        return content_type, encode(registry)

    return page


#: The path of the health check, as in the API.
_LIVE = "/healthcheck/live"
#: Maximum number of connections, each of which has a thread.
_MOST = 8
#: Seconds after which a connection is closed, whatever happens on it.
_LIFETIME_S = 10.0
#: Seconds between two looks at their age.
_LOOK_EVERY_S = 0.5


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Exporter
    timeout = _LIFETIME_S

    def do_GET(self) -> None:
        """Reply with the metrics, or whether the process works."""
        path, is_well = self.path.partition("?")[0], self.server.is_well
        if path == _LIVE and is_well is not None:
            status, text = (200, b'{"status":"OK"}') if is_well() else (503, b'{"status":"STUCK"}')
            self._reply(status, "application/json", text)
            return
        if path not in ("/", "/metrics"):
            self._reply(404, "text/plain; charset=utf-8", b"The metrics are at /metrics.\n")
            return
        content_type, text = self.server.page(self.headers.get("Accept", ""))
        self._reply(200, content_type, text)

    do_HEAD = do_GET

    def _reply(self, status: int, content_type: str, text: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)

    def version_string(self) -> str:
        return "ironic-rules"

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: Prometheus asks every few seconds, and anybody can send nonsense."""


class Exporter(socketserver.ThreadingTCPServer):
    """Serves one page and a health check; ``server_port`` is its port, ``shutdown`` ends it."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128

    def __init__(self, page: Page, host: str, port: int, certificates: Certificates | None = None,
                 is_well: Callable[[], bool] | None = None) -> None:
        self.page = page
        self.is_well = is_well
        self._certificates = certificates
        self._guard = threading.Lock()
        #: the connections, the oldest first, and since when they are open
        self._open: dict[socket.socket, float] = {}
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), _Handler)
        self.server_port: int = self.server_address[1]  # type: ignore[assignment]  # of an address it is a number

    def get_request(self) -> tuple[socket.socket, object]:
        """Accept a connection. A handshake is part of its first read, in its own thread.

        :raises OSError: the client has gone
        """
        request, address = super().get_request()
        if self._certificates is not None:
            request = self._certificates.context.wrap_socket(request, server_side=True, do_handshake_on_connect=False)
        return request, address

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._guard:
            if len(self._open) >= _MOST:
                _end(next(iter(self._open)))
                del self._open[next(iter(self._open))]
            self._open[request] = time.monotonic()
        super().process_request(request, client_address)

    def service_actions(self) -> None:
        """End the connections that are too old; called between requests, and twice per second."""
        if self._certificates is not None:
            self._certificates.refresh()
        before = time.monotonic() - _LIFETIME_S
        with self._guard:
            for request in [request for request, since in self._open.items() if since < before]:
                _end(request)

    def shutdown_request(self, request: Any) -> None:
        with self._guard:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: object, client_address: object) -> None:
        """Log what is no error of a connection: clients that have gone, or are too slow, are none of our business."""
        if not isinstance(sys.exc_info()[1], OSError):
            LOG.exception("The metrics cannot be served")


def serve(page: Page, host: str, port: int, group: str = "api", certificates: Certificates | None = None,
          is_well: Callable[[], bool] | None = None) -> Exporter:
    """Serve a page of metrics from a thread.

    :param port: 0 for any free one
    :param group: the group of options that has ``metrics_host`` and ``metrics_port``, for an error
    :param certificates: None: with http
    :param is_well: tells whether the process works, for the health check; None: there is none
    :raises ConfigurationError: the address cannot be bound
    """
    try:
        exporter = Exporter(page, host, port, certificates, is_well)
    except (OSError, OverflowError) as exc:
        raise cannot_listen(f"The metrics cannot be served at {host}:{port}", f"[{group}]metrics_host",
                            f"[{group}]metrics_port", exc) from exc
    threading.Thread(target=exporter.serve_forever, args=(_LOOK_EVERY_S,), name="metrics", daemon=True).start()
    return exporter


def _end(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
