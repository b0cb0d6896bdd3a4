"""Lets this process write bytecode if its environment does: multiprocessing passes on what the tests' process does.

The first module that the process of :mod:`tests.functional.forking` imports.
"""

import os
import sys

sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
