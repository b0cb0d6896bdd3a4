"""Runs several commands of ``openstack`` in one process, which takes as long to start as one command.

Usage::

    python openstack_driver.py < REQUEST     # JSON to the output

REQUEST is a list of argument lists. The output has one entry for each: ``[status, output, errors]``.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys

from openstackclient import shell


def run(arguments: list[str]) -> tuple[int, str, str]:
    """Run one command; return its status, output and errors."""
    output, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        # The shell takes its streams when it is made.
        status = shell.OpenStackShell().run(arguments)
    return status, output.getvalue(), errors.getvalue()


if __name__ == "__main__":
    print(json.dumps([run(arguments) for arguments in json.load(sys.stdin)]))
