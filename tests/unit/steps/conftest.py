from tests.unit.hardware.conftest import conf, hardware  # noqa: F401  (fixtures)
