"""Rules of phase ``early``: they run before anything is done with a ramdisk's data.

Only the query of the lookup comes before them, because it also reads the revision of the rule set; what it has found is
used after them.
"""

from __future__ import annotations

from oslo_log import log as logging

from ironic_rules.exceptions import LookupFailed, RuleFailed
from ironic_rules.inspection.payload import Payload
from ironic_rules.rules import Facts, RuleSet
from ironic_rules.text import printable

LOG = logging.getLogger(__name__)


def run(rules: RuleSet, sent: Payload) -> str | None:
    """Run the early rules over ``sent``, whose plugin data they may change.

    :returns: None; if one of them is broken, why the inspection has to fail: then none of them is run
    :raises LookupFailed: 404, a rule refuses the machine
    """
    try:
        rules.check("early", None)
    except RuleFailed as exc:
        return printable(exc)
    facts = Facts(None, sent.inventory, sent.plugin_data)
    try:
        rules.run("early", facts)
    except RuleFailed as exc:
        raise LookupFailed.because(printable(exc), "early rule") from exc
    finally:
        for level, text in facts.messages:
            LOG.log(getattr(logging, level.upper(), logging.INFO), "Early inspection rule: %s", printable(text))
    return None
