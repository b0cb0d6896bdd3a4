import pytest

from ironic_rules.simulator.client import Client, Retry
from tests.unit.simulator import stand_in


@pytest.fixture
def service():
    """Give a stand-in for the service that answers over HTTP."""
    with stand_in.running() as running:
        yield running


@pytest.fixture
def client(service):
    """Give a client of the stand-in that waits next to nothing between tries."""
    with Client(service.url, retry=Retry(base_delay_s=0.001)) as made:
        yield made
