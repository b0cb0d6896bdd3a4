"""Errors that have been handled, and the variables of the frames they came through."""

from __future__ import annotations

import traceback


def forget_locals(error: BaseException) -> None:
    """Clear the variables of the frames that an error and its causes have passed.

    Some of those frames refer to the error (SQLAlchemy's do), which refers to the frames: cycles, with all data of a
    request or a report, which stay in memory until the garbage collector runs.
    """
    cause: BaseException | None = error
    while cause is not None:
        traceback.clear_frames(cause.__traceback__)
        cause = cause.__cause__ or cause.__context__
