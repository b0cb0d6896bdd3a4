"""A report of the maximum size that the API accepts, over a broker and into database servers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.functional.brokers import temporary_vhost
from tests.functional.clients import machines
from tests.functional.databases import migrated_database
from tests.functional.processes import Cluster

#: The default of ``[api]max_json_body_size``.
LIMIT = 10 * 1024 * 1024
#: One of hardware-detect's findings. A report has at most a value per 40 bytes of the maximum size: shorter ones would
#: not reach it.
DETECTED = ["network", "ens2f0np0", "offloads",
            "tx-checksum-ip-generic [fixed], tx-scatter-gather, tx-tcp-segmentation, tx-udp_tnl-csum-segmentation, "
            "rx-gro-hw [fixed], rx-vlan-filter, rx-hashing, hw-tc-offload [off], tls-hw-tx-offload [fixed], ntuple"]


def report(machine: Any, size: int, filling: Any, repeated: bool) -> bytes:
    """Return the report of a machine, of ``size`` bytes: as many fillers as there is room for, and then blanks."""
    body = {"inventory": machine.inventory}
    empty = len(dump({**body, "filling": [] if repeated else ""}))
    if repeated:
        filled = [filling] * ((size - empty) // (len(dump(filling)) + 1))
    else:
        filled = filling * ((size - empty) // (len(dump(filling)) - 2))
    content = dump({**body, "filling": filled})
    assert size - len(content) <= 512
    return content.ljust(size)


def dump(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["mysql", pytest.param("postgresql", marks=pytest.mark.long)])
def test_m_39_a_report_just_under_the_limit_arrives_and_one_above_it_is_refused(tmp_path: Path, kind: str) -> None:
    with migrated_database(kind) as database, temporary_vhost() as transport:
        # Reports are limited more than other bodies by default.
        cluster = Cluster(tmp_path, database, transport, f"[api]\nmax_anonymous_body_size = {LIMIT}\n")
        try:
            cluster.conductor("conductor-1")
            endpoint = cluster.api("api-1")[1]
            # A text, one with four-byte characters, one that grows when it is quoted, and a list.
            for number, (filling, repeated) in enumerate([("x", False), ("\U0001f4bb", False), ('"key": 1; ', False),
                                                          (DETECTED, True)]):
                machine = machines.machine(7000 + number)
                content = report(machine, LIMIT, filling, repeated)
                machines.enrol(endpoint, f"large-{number}", machine)
                machines.start_inspection(endpoint, machine.uuid)

                above = httpx.post(f"{endpoint}/v1/continue_inspection", content=content + b" " * LIMIT, timeout=120)
                assert above.status_code == 413
                assert len(content) == LIMIT
                reply = httpx.post(f"{endpoint}/v1/continue_inspection", content=content, timeout=120)

                assert (reply.status_code, reply.json()) == (200, {"uuid": machine.uuid}), (number, reply.text)
                assert machines.wait_for_state(endpoint, machine.uuid, "manageable")["last_error"] is None
                stored = httpx.get(f"{endpoint}/v1/nodes/{machine.uuid}/inventory", timeout=120,
                                   headers={"X-OpenStack-Ironic-API-Version": "1.81"}).json()
                assert stored["plugin_data"]["filling"] == json.loads(content)["filling"]
        finally:
            cluster.close()
