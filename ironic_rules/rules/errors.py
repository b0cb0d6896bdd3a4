"""What evaluation raises inside the engine. Only ``exceptions.RuleFailed`` leaves it.

::

    IronicRulesError
    ├── CannotEvaluate          a condition: it and its inverse are false;  an action: the rule fails
    │   ├── MissingPath         a template names something that is not there
    │   └── OperandError        an argument turned out, at run time, to be of no use
    └── ActionError             an action could not do its work, or was ``fail``
"""

from __future__ import annotations

from ironic_rules.exceptions import IronicRulesError


class CannotEvaluate(IronicRulesError):
    """The data do not allow an answer."""

    message = "cannot be evaluated"


class MissingPath(CannotEvaluate):
    """``path`` is the template's own text, never data."""

    message = "{path} is missing"

    def __init__(self, path: str) -> None:
        super().__init__(path=path)


class OperandError(CannotEvaluate):
    """An argument is of no use; the text says what was expected, never what was found."""


class ActionError(IronicRulesError):
    """An action failed. Plug-ins raise it to fail the rule with a reason for the operator."""
