"""``ironic-rules-status upgrade check``: checks whether this installation is ready to run the new version."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Sequence
from typing import Any

from oslo_config import cfg
from oslo_upgradecheck import upgradecheck

from ironic_rules import conf as service_conf
from ironic_rules import policy, rules, service
from ironic_rules.cmd import lifecycle
from ironic_rules.conf import unread
from ironic_rules.conf.arguments import readable_files
from ironic_rules.db import conductors, inspection_rules, legacy_rules, migration, nodes
from ironic_rules.db.session import Database
from ironic_rules.exceptions import ConfigurationError, InvalidParameterValue
from ironic_rules.hardware.enabled import EnabledHardware
from ironic_rules.hardware.redfish import driver_info
from ironic_rules.inspection import discovery, hook_settings, rule_sets
from ironic_rules.inspection.hooks import loader
from ironic_rules.inspection.rule_sets import legacy_rule_problem
from ironic_rules.models.resources import different_pins
from ironic_rules.text import enumeration


class Checks(upgradecheck.UpgradeCommands):  # type: ignore[misc]
    """The checks in their order: for errors that would prevent processes from starting, or fail every inspection."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        super().__init__()
        self._conf = conf
        self._db: Database | None = None
        self._hardware: EnabledHardware | None = None

    def close(self) -> None:
        if self._db is not None:
            self._db.dispose()

    def _check_options(self) -> upgradecheck.Result:
        return _result(self._options)

    def _check_unread(self) -> upgradecheck.Result:
        return _result(self._unread)

    def _check_schema(self) -> upgradecheck.Result:
        return _result(self._schema)

    def _check_contractions(self) -> upgradecheck.Result:
        warnings: list[str] = []
        result = _result(lambda: self._contractions(warnings))
        return upgradecheck.Result(upgradecheck.Code.WARNING, result.details) if warnings else result

    def _check_hooks(self) -> upgradecheck.Result:
        return _result(self._hooks)

    def _check_hardware(self) -> upgradecheck.Result:
        return _result(self._types)

    def _check_rules(self) -> upgradecheck.Result:
        warned: list[str] = []
        result = _result(lambda: self._rules(warned))
        return upgradecheck.Result(upgradecheck.Code.WARNING, result.details) if (
            warned and result.code == upgradecheck.Code.SUCCESS) else result

    def _check_discovery(self) -> upgradecheck.Result:
        return _result(self._discovery)

    def _check_deploy_interfaces(self) -> upgradecheck.Result:
        uuids: list[str] = []
        result = _result(lambda: self._deploy_interfaces(uuids))
        # The service starts with such nodes.
        return upgradecheck.Result(upgradecheck.Code.WARNING, result.details) if uuids else result

    def _check_certificates(self) -> upgradecheck.Result:
        uuids: list[str] = []
        result = _result(lambda: self._certificates(uuids))
        # The conductors have the files, and this may be another machine.
        return upgradecheck.Result(upgradecheck.Code.WARNING, result.details) if uuids else result

    def _check_policies(self) -> upgradecheck.Result:
        warnings: list[str] = []
        result = _result(lambda: self._policies(warnings))
        # A file of Ironic has rules that are not here.
        return upgradecheck.Result(upgradecheck.Code.WARNING, result.details) if warnings else result

    def _check_pins(self) -> upgradecheck.Result:
        warnings: list[str] = []
        result = _result(lambda: self._pins(warnings))
        return upgradecheck.Result(upgradecheck.Code.WARNING, result.details) if warnings else result

    _upgrade_checks: Any = (
        ("Options", _check_options), ("Options that nothing reads", _check_unread), ("Database schema", _check_schema),
        ("Removal of what is no longer used", _check_contractions),
        ("Hardware types and interfaces", _check_hardware), ("Inspection hooks", _check_hooks),
        ("Inspection rules", _check_rules), ("Auto-discovery", _check_discovery), ("Pinned release", _check_pins),
        ("Deploy interfaces of nodes", _check_deploy_interfaces), ("Certificates of BMCs", _check_certificates),
        ("Policies", _check_policies))

    def _options(self) -> str:
        one_process = service.use_database_of_one_process(self._conf)
        # oslo.upgradecheck has registered fewer options than the processes do.
        folders = [f"--config-dir={folder}" for folder in self._conf.config_dirs]
        service.prepare_config(folders, config_files=self._conf.config_file or [], api=True, conductor=True,
                               one_process=one_process)
        return "all values are valid"

    def _unread(self) -> str:
        if problems := [*unread.repeated(self._conf), *unread.lines(self._conf)]:
            raise ConfigurationError("\n".join(problems))
        return "none"

    def _schema(self) -> str:
        self._db = service.make_database(self._conf)
        return f"revision {migration.version(self._db.engine)}"

    def _contractions(self, warnings: list[str]) -> str:
        """Return a text about migrations that wait for processes of earlier releases; add it to ``warnings``."""
        if self._db is None:
            return "not checked"
        waiting, alive = migration.contractions(self._db.engine, self._conf.conductor.heartbeat_timeout)
        if not waiting:
            return "nothing to remove"
        if alive:
            warnings.append(f"revision {waiting[-1]} has to wait: processes of an earlier release are alive: "
                            f"{enumeration(alive)}")
        else:
            warnings.append("no process of an earlier release is alive: run 'ironic-rules-dbsync upgrade --contract'")
        return warnings[0]

    def _types(self) -> str:
        self._hardware = EnabledHardware(self._conf)
        return ", ".join(self._hardware.describe())

    def _hooks(self) -> str:
        names = loader.parse(self._conf.inspector.hooks)
        loader.load(names, hook_settings.from_conf(self._conf))
        return ", ".join(names)

    def _rules(self, warned: list[str]) -> str:
        """Return a text about the rules; add lines to ``warned`` for problems by which nothing fails."""
        prepared = rule_sets.prepare_rules(self._conf, self._db)
        built_in = f"{len(prepared.built_in)} built-in rules"
        if self._db is None:
            return f"{built_in}; the stored ones were not checked"
        with self._db.reader() as conn:
            stored, of_inspector = inspection_rules.all_rules(conn), legacy_rules.all_rules(conn)
        broken: list[str] = []
        disabled: list[str] = []
        scoped: list[str] = []
        changed: list[str] = []
        for rule in stored:
            compiled = rules.compile_stored(rule, limits=prepared.limits)
            if isinstance(compiled, rules.BrokenRule):
                (broken if rule.enabled else disabled).append(str(compiled.failure()))
            elif rule.enabled:
                scoped += [f"Inspection rule {rule.uuid}: {problem}" for problem in compiled.problems]
                changed += [f"Inspection rule {rule.uuid}: {place}"
                            for place in rules.changed_meanings(rule.conditions, rule.actions)]
        broken += [f"Legacy rule {rule.uuid}: {problem}" for rule in of_inspector
                   if (problem := legacy_rule_problem(prepared.compile_legacy(rule))) is not None]
        if disabled:
            warned += ["stored ones that are not enabled are invalid:", *disabled]
        if scoped:
            warned += ["stored ones have a scope that is ignored:", *scoped]
        if changed:
            warned += ["stored ones may have had another meaning:", *changed]
        if broken:
            raise ConfigurationError("\n".join([*broken, *warned]))
        if warned:
            return "\n".join(warned)
        return f"{built_in}, and the stored ones are valid"

    def _discovery(self) -> str:
        discovery.check(self._conf)
        return f"on, with driver {self._conf.auto_discovery.driver}" if self._conf.auto_discovery.enabled else "off"

    def _pins(self, warnings: list[str]) -> str:
        """Return a text about the pinned release; add it to ``warnings`` if live conductors have different ones."""
        own: str = self._conf.conductor.pin_release_version or ""
        if self._db is None:
            return "not checked"
        with self._db.reader() as conn:
            pins = conductors.pins(conn, self._conf.conductor.heartbeat_timeout)
        if text := different_pins({**pins, "this configuration": own}):
            warnings.append(text)
        return text or own or "none"

    def _policies(self, warnings: list[str]) -> str:
        """Return a text about the policy files; add a line to ``warnings`` for each rule of them without effect."""
        if not policy.is_enforced(self._conf):
            return f"not enforced with auth_strategy = {self._conf.auth_strategy}"
        warnings += policy.load(self._conf)[1]
        return "\n".join(service.placed(line) for line in warnings) or "valid"

    def _deploy_interfaces(self, uuids: list[str]) -> str:
        """Return a text about the nodes that cannot be deployed with their deploy interface; add them to ``uuids``."""
        if self._db is None or self._hardware is None:
            return "not checked"
        with self._db.reader() as conn:
            for driver, kinds in self._hardware.describe().items():
                uuids += nodes.with_other_deploy_interfaces(conn, driver, kinds["deploy"]["enabled"])
        if not uuids:
            return "the hardware types of all nodes support theirs"
        return (f"{len(uuids)} nodes have a deploy interface that their hardware type does not support or that is not "
                "enabled, and cannot be deployed; those that were being deployed during the upgrade keep theirs until "
                f"it is changed. Set another one for: {enumeration(uuids, limit=100)}")

    def _certificates(self, uuids: list[str]) -> str:
        """Return a text about the nodes whose BMC cannot be verified with their ``redfish_verify_ca``; add them."""
        if self._db is None:
            return "not checked"
        with self._db.reader() as conn:
            paths = nodes.with_driver_info(conn, "redfish_verify_ca")
        for uuid, value in paths:
            try:
                driver_info.verification(value, self._conf.redfish.verify_ca_allowed_paths)
            except InvalidParameterValue:
                uuids.append(uuid)
        if not uuids:
            return "those that nodes name can be used on this machine"
        return (f"{len(uuids)} nodes have a driver_info/redfish_verify_ca that is no file or folder of this machine in "
                "[redfish]verify_ca_allowed_paths: conductors on such a machine cannot reach their BMCs. Add its "
                f"folder there, or change: {enumeration(uuids, limit=100)}")


def _result(check: Callable[[], str]) -> upgradecheck.Result:
    """Return the result of ``check``, or why it failed."""
    try:
        return upgradecheck.Result(upgradecheck.Code.SUCCESS, check())
    except lifecycle.REFUSALS as exc:
        return upgradecheck.Result(upgradecheck.Code.FAILURE, lifecycle.refusal(exc))


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``upgrade check``; return 0 (ready), 1 (warnings), 2 (failures, or it cannot start) or 255 (a bug)."""
    return lifecycle.guarded(_run, argv)


def _run(argv: Sequence[str]) -> int:
    if list(argv) == ["--version"]:  # oslo.upgradecheck does not support it
        print(service.version())
        return 0
    conf = cfg.ConfigOpts()
    service_conf.register_opts(conf)
    conf.register_cli_opt(service.STATE_DIR)
    with readable_files(), contextlib.closing(Checks(conf)) as checks:
        return int(upgradecheck.main(conf, service.PROJECT, checks, argv=list(argv)))


if __name__ == "__main__":
    sys.exit(main())
