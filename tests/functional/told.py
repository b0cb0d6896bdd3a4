"""Hooks of tests in a conductor process: plug-ins that run the hooks which the test has put into a file.

The test and the conductor import the same classes; a hook of a test can be pickled, and has its results in files.
"""

from __future__ import annotations

import itertools
import os
import pickle
from pathlib import Path
from typing import Any

from ironic_rules.inspection.hooks.base import InspectionHook

#: Environment variable of the conductor: the folder with the files.
VARIABLE = "IRONIC_RULES_TEST_TOLD"


class Told(InspectionHook):
    """Runs the hook in its file, if there is one."""

    name: str

    def _hook(self) -> InspectionHook | None:
        file = Path(os.environ[VARIABLE], self.name)
        hook: InspectionHook | None = pickle.loads(file.read_bytes()) if file.exists() else None
        return hook

    def preprocess(self, task: Any, inventory: dict[str, Any], plugin_data: dict[str, Any]) -> None:
        if (hook := self._hook()) is not None:
            hook.preprocess(task, inventory, plugin_data)

    def __call__(self, task: Any, inventory: dict[str, Any], plugin_data: dict[str, Any]) -> None:
        if (hook := self._hook()) is not None:
            hook(task, inventory, plugin_data)


class FirstTold(Told):
    name = "told-first"


class SecondTold(Told):
    name = "told-second"


#: in the order in which they are enabled
HOOKS: dict[str, type[Told]] = {cls.name: cls for cls in (FirstTold, SecondTold)}


def tell(folder: Path, *hooks: InspectionHook) -> None:
    """Let conductors whose folder this is run ``hooks``, each in a hook of its own, from now on."""
    assert len(hooks) <= len(HOOKS)
    for name, hook in itertools.zip_longest(HOOKS, hooks):
        fresh = folder / f".{name}"
        fresh.write_bytes(pickle.dumps(hook))
        fresh.replace(folder / name)
