from __future__ import annotations

import json

from ironic_rules.rpc.serializer import Serializer
from tests.walking import walking

HARDLY_COMPRESSIBLE = [f'"{number * 7919 % 1_000_003}"' for number in range(80_000)]


@walking("entity", [
    None, 7, "text", [], {}, {"interfaces": [{"mac_address": "52:54:00:12:34:ab", "lldp": None}]},
    {"logs": '"' * 4_000_000}, HARDLY_COMPRESSIBLE, {"ümlaut": "\u0000 \U0001f600"}])
def test_what_is_sent_arrives(entity):
    serializer = Serializer()
    sent = json.loads(json.dumps(serializer.serialize_entity(None, entity)))
    assert serializer.deserialize_entity(None, sent) == entity


def test_a_very_large_report_takes_no_more_on_the_wire_than_it_has():
    report = {"logs": 'a "quoted" text, ' * 500_000}
    layers = json.dumps(json.dumps(Serializer().serialize_entity(None, report)))
    assert len(layers) < len(json.dumps(report)) / 4
