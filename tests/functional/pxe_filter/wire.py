"""DHCP clients on the wire: run in a client's network namespace, one request for each line of standard input.

A line is a JSON object: ``number``, ``v`` (4 or 6), ``mac``, and optionally ``duid`` and ``client_id`` (hexadecimal),
``hardware`` (the hardware type), ``relay`` (the relay's own address: the request comes from there) with ``server``,
``wait`` (seconds), ``arch`` (the architecture of a firmware that boots over the network), ``ipxe`` (whether iPXE is
that client). Each is answered by a line with ``number``, ``offered``, ``after`` (seconds from the request to the
offer), ``boot`` (the boot file of the offer), ``vendor_class`` and ``tftp`` (the server of the boot file, DHCPv4 only).
Requests do not wait for each other.

Usage: wire.py INTERFACE
"""

from __future__ import annotations

import itertools
import json
import select
import socket
import struct
import sys
import threading
import time
from typing import Any

_BROADCAST = b"\xff" * 6


def checksum(data: bytes) -> int:
    """Return the Internet checksum (RFC 1071)."""
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


#: The architectures of firmware that loads its boot program by HTTP.
_HTTP = frozenset({15, 16, 18, 19})


def vendor_class(arch: int) -> bytes:
    """Return the class of a firmware (PXE specification 2.1, UEFI specification 24.7)."""
    return f"{'HTTP' if arch in _HTTP else 'PXE'}Client:Arch:{arch:05}:UNDI:003016".encode()


def discover(xid: int, mac: bytes, client_id: bytes, relay: bytes = b"\0" * 4, kind: int = 1,
             booting: bytes = b"") -> bytes:
    """Return a DHCPDISCOVER (RFC 2131).

    :param kind: the hardware type, 32 for InfiniBand (RFC 4390)
    :param booting: options of a client that boots over the network
    """
    address = b"" if kind == 32 else mac
    options = b"\x63\x82\x53\x63" + b"\x35\x01\x01" + booting
    options += b"\x37\x07\x01\x03\x06\x2b\x3c\x42\x43" if booting else b"\x37\x03\x01\x03\x06"
    if client_id:
        options += bytes((61, len(client_id))) + client_id
    return struct.pack("!BBBBIHH4s4s4s4s16s64s128s", 1, kind, len(address), 1 if any(relay) else 0, xid, 0, 0x8000,
                       b"", b"", b"", relay, address, b"", b"") + options + b"\xff"


def booting4(arch: int | None, *, ipxe: bool) -> bytes:
    """Return the options of a client that boots over the network: of its class, its architecture, and iPXE's own."""
    if arch is None:
        return b""
    name = vendor_class(arch)
    return (bytes((60, len(name))) + name + struct.pack("!BBH", 93, 2, arch)
            + (b"\xaf\x03\x13\x01\x01" + b"\x4d\x04iPXE" if ipxe else b""))


def booting6(arch: int | None, *, ipxe: bool) -> bytes:
    """Return the same options in DHCPv6 (RFC 5970), and a request for those of the answer."""
    if arch is None:
        return b""
    name = vendor_class(arch)
    return (struct.pack("!HHIH", 16, 6 + len(name), 343, len(name)) + name + struct.pack("!HHH", 61, 2, arch)
            + struct.pack("!HHHHH", 6, 6, 59, 60, 16)
            + (struct.pack("!HHH", 15, 6, 4) + b"iPXE" if ipxe else b""))


def options4(message: bytes) -> dict[int, bytes]:
    """Return the options of a DHCPv4 message by number."""
    found, at = {}, 240
    while at < len(message) and message[at] != 255:
        if message[at]:
            length = message[at + 1]
            found[message[at]] = message[at + 2:at + 2 + length]
            at += length + 1
        at += 1
    return found


def options6(message: bytes) -> dict[int, bytes]:
    """Return the options of a DHCPv6 message by number."""
    found, at = {}, 4
    while at + 4 <= len(message):
        number, length = struct.unpack_from("!HH", message, at)
        found[number] = message[at + 4:at + 4 + length]
        at += 4 + length
    return found


def frame(payload: bytes, mac: bytes) -> bytes:
    """Return an Ethernet frame from a client without an address to every server."""
    udp = struct.pack("!HHHH", 68, 67, 8 + len(payload), 0) + payload
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0, b"\0" * 4, b"\xff" * 4)
    head = head[:10] + struct.pack("!H", checksum(head)) + head[12:]
    return _BROADCAST + mac + b"\x08\x00" + head + udp


def solicit(xid: int, duid: bytes, booting: bytes = b"") -> bytes:
    """Return a DHCPv6 Solicit for one address (RFC 8415)."""
    ia_na = struct.pack("!HHIII", 3, 12, 1, 0, 0)
    return bytes((1, *xid.to_bytes(3, "big"))) + struct.pack("!HH", 1, len(duid)) + duid + ia_na + struct.pack(
        "!HHH", 8, 2, 0) + booting


def relayed(message: bytes, link: str, peer: bytes, mac: bytes) -> bytes:
    """Return a Relay-forward with the client's link-layer address (RFC 6939)."""
    options = struct.pack("!HHH", 79, 8, 1) + mac + struct.pack("!HH", 9, len(message)) + message
    return b"\x0c\0" + socket.inet_pton(socket.AF_INET6, link) + peer + options


def link_local(mac: bytes) -> bytes:
    """Return the link-local address of an interface with that MAC address."""
    return b"\xfe\x80" + b"\0" * 6 + bytes((mac[0] ^ 2,)) + mac[1:3] + b"\xff\xfe" + mac[3:]


class Clients:
    """All requests that are on their way, by transaction id."""

    def __init__(self, interface: str) -> None:
        self._interface = interface
        self._xids = itertools.count(0x10000)
        self._open: dict[int, tuple[dict[str, Any], float]] = {}
        self._lock = threading.Lock()
        self._raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
        self._raw.bind((interface, 0))
        self._relays: dict[tuple[int, str], socket.socket] = {}
        self._printing = threading.Lock()

    def ask(self, request: dict[str, Any]) -> None:
        xid = next(self._xids)
        mac = bytes.fromhex(request["mac"].replace(":", ""))
        with self._lock:
            self._open[xid] = (request, time.monotonic())
        relay = request.get("relay")
        if request["v"] == 4:
            client_id = bytes.fromhex(request.get("client_id", ""))
            kind = request.get("hardware", 1)
            booting = booting4(request.get("arch"), ipxe=request.get("ipxe", False))
            if relay:
                message = discover(xid, mac, client_id, socket.inet_aton(relay), kind, booting)
                self._relay(4, relay).sendto(message, (request["server"], 67))
            else:
                self._raw.send(frame(discover(xid, mac, client_id, kind=kind, booting=booting), mac))
            return
        message = solicit(xid, bytes.fromhex(request.get("duid", "") or (b"\0\3\0\1" + mac).hex()),
                          booting6(request.get("arch"), ipxe=request.get("ipxe", False)))
        if relay:
            self._relay(6, relay).sendto(relayed(message, relay, link_local(mac), mac), (request["server"], 547))
        else:
            to = ("ff02::1:2", 547, 0, socket.if_nametoindex(self._interface))
            self._relay(6, "").sendto(message, to)

    def _relay(self, version: int, address: str) -> socket.socket:
        key = (version, address)
        if key not in self._relays:
            family = socket.AF_INET if version == 4 else socket.AF_INET6
            made = socket.socket(family, socket.SOCK_DGRAM)
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.bind((address, 67 if version == 4 else 547 if address else 546))
            self._relays[key] = made
        return self._relays[key]

    def listen(self) -> None:
        """Print the answers, and for requests without one that there was none."""
        while True:
            ready, _, _ = select.select([self._raw, *self._relays.values()], [], [], 0.02)
            for one in ready:
                data = one.recv(4096)
                self._received(data[14:] if one is self._raw else data, is_packet=one is self._raw,
                               version=4 if one is self._raw or one.family == socket.AF_INET else 6)
            now = time.monotonic()
            with self._lock:
                late = [xid for xid, (request, sent) in self._open.items() if now - sent > request.get("wait", 1)]
                given_up = [self._open.pop(xid) for xid in late]
            for request, _ in given_up:
                self._print(request, None)

    def _received(self, data: bytes, *, is_packet: bool, version: int) -> None:
        if is_packet:
            head = (data[0] & 15) * 4
            if data[9] != 17 or data[head + 2:head + 4] != b"\0\x44":
                return
            data = data[head + 8:]
        if version == 4:
            # An offer, not a refusal: message type (option 53) 2.
            if data[:1] == b"\2" and b"\x35\x01\x02" in data[236:]:
                found = options4(data)
                file = found.get(67) or data[108:236]
                self._answered(int.from_bytes(data[4:8], "big"), file, found.get(60), data[20:24])
            return
        if data[:1] == b"\x0d":  # Relay-reply: the message is in option 9
            start = data.index(b"\0\x09", 34)
            data = data[start + 4:]
        # An advertisement with an address (option 5), not one with the status "no addresses".
        if data[:1] == b"\2" and b"\0\x05\0\x18" in data:
            options = options6(data)
            self._answered(int.from_bytes(data[1:4], "big"), options.get(59, b""), options.get(16, b"")[6:])

    def _answered(self, xid: int, file: bytes, name: bytes | None, server: bytes = b"") -> None:
        with self._lock:
            found = self._open.pop(xid, None)
        if found is not None:
            self._print(found[0], time.monotonic() - found[1], file, name, server)

    def _print(self, request: dict[str, Any], after: float | None, file: bytes = b"", name: bytes | None = b"",
               server: bytes = b"") -> None:
        answer = {"number": request["number"], "offered": after is not None, "after": after,
                  "boot": file.rstrip(b"\0").decode(), "vendor_class": (name or b"").rstrip(b"\0").decode(),
                  "tftp": socket.inet_ntoa(server) if server else ""}
        with self._printing:
            print(json.dumps(answer), flush=True)


def main(interface: str) -> None:
    clients = Clients(interface)
    threading.Thread(target=clients.listen, daemon=True).start()
    print("ready", flush=True)
    for line in sys.stdin:
        clients.ask(json.loads(line))


if __name__ == "__main__":
    main(sys.argv[1])
