"""Facts: what templates of the rule language find in the data of an inspection, without database and configuration.

``check`` a definition as a user writes it, or take the ``built_in`` ones; a ``FactSet`` finds all facts of a node.
"""

from ironic_rules.facts.definitions import Checked, CompiledFact, built_in, check, compile_stored
from ironic_rules.facts.evaluation import FactSet

__all__ = ["Checked", "CompiledFact", "FactSet", "built_in", "check", "compile_stored"]
