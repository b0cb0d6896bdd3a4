"""``ironic-rules-import``: nodes, rules and others of an Ironic, or of another service of this kind, into the database.

Exit status: 0 everything is here, or can be imported; 1 something was refused; 2 the command could not run.
"""

from __future__ import annotations

import getpass
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from oslo_config import cfg
from oslo_log import log as logging

from ironic_rules import context, service
from ironic_rules.api import audit, versions
from ironic_rules.api.audit import Audit
from ironic_rules.cmd import lifecycle
from ironic_rules.db import conductors
from ironic_rules.db.rule_revisions import Author
from ironic_rules.db.session import Database
from ironic_rules.exceptions import ConfigurationError, IronicRulesError
from ironic_rules.hardware import selection
from ironic_rules.importing import plan
from ironic_rules.importing.hidden import AskedSecrets, IronicDatabase, Secrets, SecretsFile
from ironic_rules.importing.kinds import KINDS, OF_NODE
from ironic_rules.importing.plan import Action, Plan, Settings
from ironic_rules.importing.sources import Cloud, Files, Source
from ironic_rules.importing.writing import Writer
from ironic_rules.inspection import rule_sets
from ironic_rules.metrics.numbers import Numbers
from ironic_rules.models import documents
from ironic_rules.models.nodes import INTERFACE_FIELDS
from ironic_rules.rules import strict_yaml

LOG = logging.getLogger(__name__)

_REPLACEABLE = ("driver", "conductor_group", "resource_class", "owner", "lessee", *INTERFACE_FIELDS)
_CLI_OPTS: list[cfg.Opt] = [
    cfg.StrOpt("from-cloud", dest="cli_cloud", metavar="CLOUD", help="Read from the API of this cloud in clouds.yaml."),
    cfg.MultiStrOpt("cli_files", positional=True, metavar="FILE", default=[], required=False,
                    help="Read from files instead: replies of the API with all fields, or what the client prints with "
                         "'list --long -f json'."),
    cfg.BoolOpt("apply", dest="cli_apply", default=False, help="Write. Without it, only the report is printed."),
    cfg.BoolOpt("partly", dest="cli_partly", default=False,
                help="With --apply: write what can be imported even if something is refused."),
    cfg.StrOpt("database", dest="cli_database", metavar="URL",
               help="Database of the other cloud, from which hidden secrets are read, and nothing else. Nothing is "
                    "written to it. With '-' the URL is read from the terminal: no password is on the command line."),
    cfg.StrOpt("secrets", dest="cli_secrets", metavar="FILE",
               help="JSON or YAML file with hidden secrets by UUID or name of their object ('*': of all) and by JSON "
                    "pointer."),
    cfg.BoolOpt("ask", dest="cli_ask", default=False,
                help="Read hidden secrets from the terminal, once for each place."),
    cfg.MultiStrOpt("leave-out", dest="cli_left_out", metavar="POINTER", default=[],
                    help="Import objects without the secret at this JSON pointer, if it is hidden and not known, such "
                         "as /instance_info/configdrive. May be repeated."),
    cfg.MultiStrOpt("replace", dest="cli_replaced", metavar="FIELD:OLD=NEW", default=[],
                    help=f"Give nodes another value of one of {', '.join(_REPLACEABLE)}. May be repeated."),
    service.STATE_DIR,
]
#: Number of nodes after which the progress is printed.
_EVERY = 500
_REFUSED = "Nothing was written, because something is refused: --partly writes the rest."


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return the exit status."""
    return lifecycle.guarded(_run, argv)


def _run(argv: Sequence[str]) -> int:
    conf = service.prepare_config(argv, _CLI_OPTS, one_process=True)
    service.use_defaults_beside_one_process(conf)
    conf.set_default("use_stderr", True)
    service.setup_logging(conf)
    if (conf.cli_cloud is None) == (not conf.cli_files):
        raise ConfigurationError("give either --from-cloud or files")
    replaced = dict(map(_replacement, conf.cli_replaced))
    left_out = [documents.parse_pointer(pointer) for pointer in conf.cli_left_out]
    secrets = list(_secrets(conf))
    db = service.make_database(conf)
    trail = audit.make(conf, db, Numbers()) if conf.cli_apply else None
    try:
        source: Source = Files(conf.cli_files) if conf.cli_cloud is None else Cloud(conf.cli_cloud)
        prepared = rule_sets.prepare_rules(conf, db)
        import_plan = plan.make(db, source, Settings(
            secrets, left_out, replaced, _offered(conf, db), prepared.limits, prepared.default_scope,
            conf.api.disallow_deploy_steps, conf.infiniband_addresses))
        for line in (*_version_lines(source), *report(import_plan)):
            print(line)
        if not conf.cli_apply:
            print("Nothing was written: --apply writes.")
        elif import_plan.refused() and not conf.cli_partly:
            print(_REFUSED)
            _note(trail, error=_REFUSED)
        else:
            author = Author(None, conf.inspection_rules.keep_revisions)
            _apply(import_plan, Writer(db, source.name, source.inventory, author), trail)
    except BaseException as exc:  # whatever ends the command
        _note(trail, error=exc)
        raise
    finally:
        if trail is not None:
            trail.close()
        db.dispose()
    return int(bool(import_plan.refused()))


def _replacement(text: str) -> tuple[tuple[str, str], str]:
    field, _, values = text.partition(":")
    old, is_given, new = values.partition("=")
    if field not in _REPLACEABLE or not is_given:
        raise ConfigurationError(f"--replace {text}: must be FIELD:OLD=NEW, with one of {', '.join(_REPLACEABLE)}")
    return (field, old), new


def _secrets(conf: cfg.ConfigOpts) -> Iterator[Secrets]:
    if conf.cli_database is not None:
        yield IronicDatabase(getpass.getpass("URL of the database of the other cloud: ")
                             if conf.cli_database == "-" else conf.cli_database)
    if conf.cli_secrets is not None:
        try:
            document = strict_yaml.load(Path(conf.cli_secrets).read_text(encoding="utf-8"))
        except (OSError, ValueError) as exc:
            raise ConfigurationError(f"--secrets {conf.cli_secrets} cannot be read: {exc}") from exc
        yield SecretsFile(document, f"--secrets {conf.cli_secrets}")
    if conf.cli_ask:
        if not sys.stdin.isatty():
            raise ConfigurationError("--ask needs a terminal; use --secrets in a script")
        yield AskedSecrets(getpass.getpass)


def _offered(conf: cfg.ConfigOpts, db: Database) -> dict[str | None, selection.Description]:
    """Return the offers of the conductors that are alive, by their groups."""
    groups: dict[str | None, list[selection.Description]] = {}
    with db.reader() as conn:
        for row in conductors.alive(conn, conf.conductor.heartbeat_timeout):
            groups.setdefault(row.conductor_group, []).append(row.hardware_types)
    return {group: selection.union(types) for group, types in groups.items()}


def _version_lines(source: Source) -> Iterator[str]:
    if source.version is not None:
        yield f"{source.name}: API {source.version[0]}.{source.version[1]}; this service has {versions.MAX_STRING}."


def report(import_plan: Plan) -> Iterator[str]:
    """Yield the lines of the report: numbers, what is refused and why, and what would be lost."""
    for kind in KINDS:
        numbers = {action: import_plan.count(kind, action) for action in Action}
        if kind not in OF_NODE and any(numbers.values()):
            yield f"{kind.replace('_', ' ')}: " + ", ".join(
                f"{number} {_WORDS[action]}" for action, number in numbers.items() if number)
    for item in import_plan.refused():
        for problem in item.problems:
            yield f"refused: {item}: {problem}"
    if any(problem.text == plan.HIDDEN for item in import_plan.refused() for problem in item.problems):
        yield ("What is hidden can be given by --database, --secrets or --ask, or left out by --leave-out with its "
               "JSON pointer, such as /instance_info/configdrive.")
    for (kind, name), loss in import_plan.losses.items():
        yield f"not imported: {name} of {loss.count} {kind.replace('_', ' ')}s, such as {loss.example}: {loss.reason}"


_WORDS = {Action.CREATE: "to create", Action.UNCHANGED: "already here", Action.REFUSED: "refused"}


def _note(trail: Audit | None, changes: Sequence[context.Change] = (),
          error: BaseException | str | None = None) -> None:
    if trail is not None:
        trail.write(audit.of_command("ironic-rules-import", changes, error))


def _apply(import_plan: Plan, writer: Writer, trail: Audit | None) -> None:
    items = [item for item in import_plan.items if item.action is Action.CREATE]
    written = 0
    try:
        for item in items:
            try:
                with context.noting_changes() as changes:
                    writer.write(item)
            except ConfigurationError:
                raise
            except IronicRulesError as exc:  # another process created it first
                item.problems += plan.problems_of(exc)
                print(f"refused: {item}: {exc}")
                _note(trail, error=f"{item}: {exc}")
                continue
            _note(trail, changes)
            written += 1
            if written % _EVERY == 0:
                print(f"{written} of {len(items)} objects written", file=sys.stderr)
        writer.finish()
    finally:
        print(f"{written} of {len(items)} objects were written."
              + ("" if written == len(items) else " Run the command again to continue."))


if __name__ == "__main__":
    sys.exit(main())
