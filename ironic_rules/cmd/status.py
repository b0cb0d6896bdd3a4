"""``ironic-rules-status upgrade check``: is this installation ready to run the new version?"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from oslo_config import cfg
from oslo_upgradecheck import upgradecheck

from ironic_rules import conf as service_conf
from ironic_rules import service
from ironic_rules.db import migration
from ironic_rules.exceptions import ConfigurationError
from ironic_rules.inspection.hooks import loader


class Checks(upgradecheck.UpgradeCommands):  # type: ignore[misc]
    """The checks, in the order in which they run."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        super().__init__()
        self._conf = conf

    def _check_schema(self) -> upgradecheck.Result:
        try:
            engine = service.make_database(self._conf).engine
        except ConfigurationError as exc:
            return upgradecheck.Result(upgradecheck.Code.FAILURE, str(exc))
        return upgradecheck.Result(upgradecheck.Code.SUCCESS, f"revision {migration.version(engine)}")

    def _check_hooks(self) -> upgradecheck.Result:
        names = loader.parse(self._conf.inspector.hooks)
        try:
            loader.load(names)
        except ConfigurationError as exc:
            return upgradecheck.Result(upgradecheck.Code.FAILURE, str(exc))
        return upgradecheck.Result(upgradecheck.Code.SUCCESS, ", ".join(names))

    _upgrade_checks: Any = (("Database schema", _check_schema), ("Inspection hooks", _check_hooks))


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``upgrade check``; return 0 (ready), 1 (warnings), 2 (failures) or 255."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments == ["--version"]:  # oslo.upgradecheck does not know it
        print(service.version())
        return 0
    conf = cfg.ConfigOpts()
    service_conf.register_opts(conf)
    service.db_options.set_defaults(conf)
    return int(upgradecheck.main(conf, service.PROJECT, Checks(conf), argv=arguments))


if __name__ == "__main__":
    sys.exit(main())
