"""Errors of evaluation inside the engine. Only ``exceptions.RuleFailed`` leaves it.

::

    IronicRulesError
    ├── CannotEvaluate          a condition: it and its inverse are false;  an action: the rule fails
    │   ├── MissingPath         a template refers to a missing value
    │   │   └── Absent          it is all of a value that is compared
    │   └── OperandError        an argument is found to be invalid at run time
    └── ActionError             an action failed, or was ``fail``
"""

from __future__ import annotations

from ironic_rules.exceptions import IronicRulesError


class CannotEvaluate(IronicRulesError):
    """A condition or action cannot be evaluated for the data."""

    message = "cannot be evaluated"


class MissingPath(CannotEvaluate):
    """``path`` is the template's own text, never data."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} is missing", path=path)


class Absent(MissingPath):
    """A value that is compared is missing: it equals nothing."""


class OperandError(CannotEvaluate):
    """An argument is invalid; the text says what was expected, never what was found."""


class ActionError(IronicRulesError):
    """An action failed. Plug-ins raise it to fail the rule with a reason for the operator."""
