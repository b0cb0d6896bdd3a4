"""How the work on nodes tells the polls of hardware that a node begins to wait for one."""

from __future__ import annotations

from collections.abc import Callable


class StepWaits:
    """``begun`` is called with the id of each node that begins to wait, and calls the listener, if there is one."""

    def __init__(self) -> None:
        self._listener: Callable[[int], None] = lambda node_id: None

    def listen(self, listener: Callable[[int], None]) -> None:
        """Let ``listener`` be called from now on."""
        self._listener = listener

    def begun(self, node_id: int) -> None:
        """Tell the listener."""
        self._listener(node_id)
