"""The browser of the functional tests, and its driver."""

from tests.functional.ui.conftest import browser as browser
from tests.functional.ui.conftest import playwright_driver as playwright_driver
