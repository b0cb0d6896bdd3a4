"""The check of ``/healthcheck`` against a real broker that is unavailable for a time."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from ironic_rules import exceptions, service
from ironic_rules.rpc import transport as rpc_transport
from ironic_rules.rpc.api import ConductorAPI
from tests.functional.brokers import temporary_vhost
from tests.functional.processes import wait_for
from tests.functional.relay import Relay


@pytest.mark.slow
def test_a_broker_is_missed_while_it_is_away(tmp_path):
    with temporary_vhost() as url:
        parts = urlsplit(url)
        relay = Relay(parts.hostname, parts.port or 5672)
        file = tmp_path / "rpc.conf"
        away = url.replace(parts.netloc.rpartition("@")[2], f"127.0.0.1:{relay.port}")
        file.write_text(f"[DEFAULT]\ntransport_url = {away}\n[oslo_messaging_rabbit]\nrabbit_retry_interval = 1\n")
        conf = service.prepare_config([], config_files=[str(file)])
        transport = rpc_transport.get_transport(conf)
        api = ConductorAPI(transport, conf)

        def answers() -> bool:
            try:
                api.ping_broker()
            except exceptions.Unavailable:
                return False
            return True

        assert answers()
        relay.cut()
        with pytest.raises(exceptions.Unavailable):
            api.ping_broker()
        relay.mend()
        wait_for("the broker", answers)
        transport.cleanup()
        relay.cut()
