"""A UDP relay in front of a simulated BMC: it loses packets, and adds a command that OpenIPMI's simulator lacks."""

from __future__ import annotations

import contextlib
import random
import select
import socket
import threading
from collections.abc import Callable, Iterator

#: RMCP, then an IPMI 2.0 session header without a session and the payload IPMI; the request begins after 16 bytes.
_HEADER = bytes.fromhex("0600ff0706000000000000000000")
_GET_CIPHER_SUITES = 0x54
#: Channel 1, and a record of cipher suite 3: HMAC-SHA1, HMAC-SHA1-96, AES-CBC-128
_SUITES = bytes.fromhex("01c003014181")


def one_in_three(seed: int) -> Callable[[], bool]:
    """Return a function that says of each packet whether it is lost: at random, and the same in every run."""
    numbers = random.Random(seed)
    return lambda: numbers.random() < 1 / 3


class Link:
    """The relay: a client's packets to it go to the BMC unless they are lost, and the BMC's replies to the client."""

    def __init__(self, bmc_port: int, is_lost: Callable[[], bool], answers_suites: bool) -> None:
        self._bmc = ("127.0.0.1", bmc_port)
        self._is_lost = is_lost
        self._answers_suites = answers_suites
        self._near = _bound()
        self._clients: dict[socket.socket, tuple[str, int]] = {}
        self.port: int = self._near.getsockname()[1]
        self.passed = self.lost = self.asked = 0

    def run(self, until: threading.Event) -> None:
        while not until.is_set():
            for one in select.select([self._near, *self._clients], [], [], 0.05)[0]:
                packet, sender = one.recvfrom(2048)
                if one is not self._near:
                    self._near.sendto(packet, self._clients[one])
                elif self._is_lost():
                    self.lost += 1
                else:
                    self.passed += 1
                    self._take(packet, sender)

    def _take(self, packet: bytes, sender: tuple[str, int]) -> None:
        if packet.startswith(_HEADER) and packet[21] == _GET_CIPHER_SUITES:
            self.asked += 1
            if self._answers_suites:
                self._near.sendto(_suites_reply(packet), sender)
            return
        far = next((one for one, client in self._clients.items() if client == sender), None)
        if far is None:
            far = _bound()
            self._clients[far] = sender
        far.sendto(packet, self._bmc)

    def close(self) -> None:
        for one in (self._near, *self._clients):
            one.close()


def _bound() -> socket.socket:
    one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    one.bind(("127.0.0.1", 0))
    return one


def _suites_reply(packet: bytes) -> bytes:
    head = bytes([0x81, 0x1C])
    body = bytes([0x20, packet[20], _GET_CIPHER_SUITES, 0]) + _SUITES
    message = head + bytes([-sum(head) & 0xFF]) + body + bytes([-sum(body) & 0xFF])
    return _HEADER + len(message).to_bytes(2, "little") + message


@contextlib.contextmanager
def link(bmc_port: int, is_lost: Callable[[], bool] = lambda: False, answers_suites: bool = False) -> Iterator[Link]:
    """Relay packets to a BMC on 127.0.0.1."""
    relay, end = Link(bmc_port, is_lost, answers_suites), threading.Event()
    thread = threading.Thread(target=relay.run, args=(end,), daemon=True)
    thread.start()
    try:
        yield relay
    finally:
        end.set()
        thread.join()
        relay.close()
