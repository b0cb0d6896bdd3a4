"""JSON texts of others, and the places that parse them: what is nested too deeply is refused there."""

from __future__ import annotations

import json
import socket
import threading

import orjson
import pytest

from ironic_rules.exceptions import ConfigurationError
from ironic_rules.hardware.agent import instance
from ironic_rules.hardware.redfish import connections
from ironic_rules.legacy import conversion
from ironic_rules.models import json_text
from ironic_rules.policy_files import _parsed
from ironic_rules.pxe_filter.targets import kea
from ironic_rules.rules import ActionError
from ironic_rules.simulator import inventories
from tests.walking import walking

LEVELS = 100_000
DEEP = ["[" * LEVELS + "]" * LEVELS, '{"a":' * LEVELS + "1" + "}" * LEVELS, "[" * LEVELS, '[{"a":' * LEVELS,
        '{"x": 1, "result": ' + "[" * LEVELS + "]" * LEVELS + "}"]


def nested(levels: int) -> str:
    """Return a text with so many levels, brackets in strings, and many short lists beside each other."""
    return '[["]", "}", "\\\\", "\\"]"],' * (levels - 1) + json.dumps([[{"[": "{"}]] * 9)[1:-1] + "]" * (levels - 1)


@walking("text", DEEP)
def test_a_deep_text_is_refused(text):
    with pytest.raises(ValueError, match="nested deeper than 100 levels"):
        json_text.parse(text)


@pytest.mark.parametrize("window", [1, 2, 3, 7, 65536])
def test_levels_are_counted(monkeypatch, window):
    monkeypatch.setattr(json_text, "_WINDOW", window)
    text = nested(40)
    levels = 41

    assert json_text.parse(text, levels) == json.loads(text)
    with pytest.raises(ValueError, match=f"deeper than {levels - 1} levels"):
        json_text.parse(text, levels - 1)


def test_a_wide_text_is_not_deep():
    wide = [[{}]] * 50_000

    assert json_text.parse(json.dumps(wide), 3) == wide


@walking("text", ["", "{", "]" * 500, '"' + "[" * 500, "[}" * 90, "nonsense"])
def test_what_is_no_json_is_refused(text):
    with pytest.raises(ValueError):
        json_text.parse(text)


@pytest.mark.parametrize("text", DEEP)
class TestPlaces:
    """The places beside the clients of agents and BMCs, which are tested with theirs."""

    def test_a_document_of_a_bmc(self, text):
        with pytest.raises(ValueError, match="nested deeper"):
            connections.document(text.encode(), "utf-8")

    def test_capabilities_of_an_instance(self, text):
        with pytest.raises(ActionError, match="no valid JSON"):
            instance._parsed({"capabilities": '{"a":' + text + "}"})

    def test_a_file_of_legacy_rules(self, text):
        with pytest.raises(conversion.BadRuleFile, match=r"nested deeper|JSON nor YAML"):
            conversion.parse(text)

    def test_an_inventory_of_the_simulator(self, text, tmp_path):
        (tmp_path / "machine.json").write_text(text)

        with pytest.raises(inventories.InventoryFileError, match="not JSON"):
            inventories.load(str(tmp_path / "machine.json"))

    def test_a_policy_file(self, text, tmp_path):
        (tmp_path / "policy.yaml").write_text(text)

        with pytest.raises(ConfigurationError, match=r"nested too deeply|is not YAML"):
            _parsed("policy_file", str(tmp_path / "policy.yaml"))

    def test_an_answer_of_kea(self, text, tmp_path):
        path = str(tmp_path / "socket")
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path)
            server.listen()

            def answer():
                connection, _ = server.accept()
                with connection:
                    connection.recv(65536)
                    connection.sendall(text.encode())

            thread = threading.Thread(target=answer)
            thread.start()
            with pytest.raises(kea.KeaError, match="is not one of Kea's"):
                kea.command(path, "list-commands")
            thread.join()


@walking("content, encoding, value", [
    (b'{"a": "\xe9"}', None, {"a": "\ufffd"}), (b'{"a": "\xe9"}', "iso-8859-1", {"a": "\u00e9"}),
    (b'\xef\xbb\xbf{"a": 1}', "utf-8", {"a": 1}), (b'{"a": "\xc3\xa9"}', "no-such", {"a": "\u00e9"}),
])
def test_documents_of_bmcs_may_have_another_encoding(content, encoding, value):
    assert connections.document(content, encoding) == value


@walking("raw, value, odd", [
    (b'{"a": 1}', {"a": 1}, {}),
    (b"\xef\xbb\xbf[1]", [1], {}),
    (b'["a\tb"]', ["a\tb"], {}),
    (b"NaN", "NaN", {"": True}),
    (b'[NaN, -Infinity, 1e999, 18446744073709551615, 18446744073709551616, -9223372036854775809]',
     ["NaN", "-Infinity", "1e999", 2**64 - 1, "18446744073709551616", "-9223372036854775809"],
     {"/0": True, "/1": True, "/2": True, "/4": True, "/5": True}),
    (b'{"a": {"b": 1, "b": [NaN]}}', {"a": {"b": ["NaN"]}}, {"/a": False, "/a/b/0": True}),
    (b'["\xff\xfe\xc3\xa9", "\\ud83d\\ude00", "\\ud83d"]', ["\\xff\\xfe\xe9", "\U0001f600", "\\ud83d"],
     {"/0": False, "/2": False}),
    (b'{"\xff": {"\xff": 1}}', {"\\xff": {"\\xff": 1}}, {"": False, "/\\xff": False}),
    (b'{"a/~b": NaN}', {"a/~b": "NaN"}, {"/a~1~0b": True}),
])
def test_a_text_that_is_nearly_json_is_read_and_what_is_odd_is_named(raw, value, odd):
    found, oddities = json_text.read_tolerantly(raw, 10)

    assert found == value
    assert {each.where: each.is_unusable for each in oddities} == odd
    assert json.loads(orjson.dumps(found)) == found
    assert not oddities or all(each.problem for each in oddities)


@walking("raw", [b"", b"{", b"{'a': 1}", b"[1,]", b"[" * 12 + b"]" * 12, b"nan", b"[1] x", b"\x00"])
def test_a_text_that_is_not_nearly_json_is_refused(raw):
    with pytest.raises(ValueError):
        json_text.read_tolerantly(raw, 10)
