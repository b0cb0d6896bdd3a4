"""The browser of the functional tests."""

from tests.functional.ui.conftest import browser as browser
