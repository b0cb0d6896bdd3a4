import pytest

from ironic_rules.simulator.client import Client, Retry
from tests.unit.simulator import stand_in


@pytest.fixture
def service():
    """Yield a stand-in for the service that answers over HTTP."""
    with stand_in.running() as running:
        yield running


@pytest.fixture
def client(service):
    """Yield a client of the stand-in that hardly waits between tries."""
    with Client(service.url, retry=Retry(base_delay_s=0.001)) as made:
        yield made
