"""``[legacy_rules]``: what happens to values that rules of ironic-inspector have set and would not set again."""

from __future__ import annotations

from oslo_config import cfg

GROUP = cfg.OptGroup("legacy_rules", title="Legacy rules", help="Rules of ironic-inspector, at /v1/rules.")
OPTS: list[cfg.Opt] = [
    cfg.StrOpt("cleanup", default="own",
               choices=[("own", "what a rule has written is taken back, unless someone has changed it since; the value "
                                "that was there before returns"),
                        ("any", "what a rule that does not match would write is deleted, no matter who wrote it"),
                        ("off", "nothing is taken back, as in ironic-inspector 12")],
               help="What an inspection does about legacy rules that do not match."),
]
