"""``ironic-rules-simulate``: a fleet of simulated ramdisks for any endpoint.

Exit status: 0 all nodes ended as expected, 1 some did not, 2 the run could not start, 130 interrupted.
"""

from __future__ import annotations

import importlib.metadata
import itertools
import json
import math
import secrets
import sys
from collections.abc import Sequence

from oslo_config import cfg
from rich.console import Console
from rich.markup import escape

from ironic_rules import samples
from ironic_rules.cmd import output
from ironic_rules.conf import arguments
from ironic_rules.exceptions import ConfigurationError
from ironic_rules.simulator import inventories, report
from ironic_rules.simulator.client import Client, ClientError, Retry
from ironic_rules.simulator.fleet import Fleet
from ironic_rules.simulator.progress import Bars

PROG = "ironic-rules-simulate"
OPTS: list[cfg.Opt] = [
    cfg.StrOpt("endpoint", default="http://127.0.0.1:6385", metavar="URL",
               help="URL of the API. Default: http://127.0.0.1:6385."),
    cfg.IntOpt("nodes", default=20, min=1, max=inventories.MAX_MACHINES, metavar="N",
               help="Number of simulated nodes. Default: 20."),
    cfg.IntOpt("concurrency", default=8, min=1, max=500, metavar="C",
               help="Number of nodes that are prepared, and ramdisks that report, at the same time. Default: 8."),
    cfg.MultiStrOpt("inventory", default=[], metavar="FILE",
                    help="Files with the data that a ramdisk POSTs, one or more after the option, used in turn. The "
                         "inspection of nodes from a file with an error text is expected to fail. Default: the samples "
                         "in the package, without the failing one."),
    cfg.StrOpt("driver", default="fake-hardware", help="Driver of the nodes. Default: fake-hardware."),
    cfg.StrOpt("api-version", default="1.96", metavar="1.N",
               help="Microversion of the operator's requests. Default: 1.96."),
    cfg.MultiStrOpt("header", default=[], metavar="'NAME: VALUE'", secret=True,
                    help="A header for every request, such as X-Auth-Token; may be repeated."),
    cfg.StrOpt("cacert", metavar="FILE",
               help="PEM file with the authorities that are trusted for https, in place of the system's."),
    cfg.FloatOpt("timeout", default=300.0, min=1, metavar="SECONDS",
                 help="Maximum wait in seconds for a state change of one node, and for all nodes after the last "
                      "callback. Default: 300."),
    cfg.FloatOpt("retry-delay", default=1.0, min=0.01, metavar="SECONDS",
                 help="First delay in seconds before a failed request is retried, up to 5 tries. Default: 1; the "
                      "real agent uses 5."),
    cfg.StrOpt("run-id", metavar="ID", regex="^[a-z0-9]{1,32}$",
               help="Part of the nodes' names (sim-ID-0 and so on), MAC addresses and serials. Default: a random one."),
    cfg.BoolOpt("json", default=False, help="Print only the report, as JSON, on standard output."),
    cfg.BoolOpt("cleanup", default=False, help="Delete the nodes at the end, even after failures."),
]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    return output.written(PROG, lambda: _run(sys.argv[1:] if argv is None else argv))


def _run(argv: Sequence[str]) -> int:
    errors = Console(stderr=True, highlight=False, soft_wrap=True)
    conf = cfg.ConfigOpts()
    conf.register_cli_opts(OPTS)
    try:
        _parse(conf, argv)
        return simulate(conf, errors)
    except (cfg.Error, ConfigurationError, inventories.InventoryFileError, ClientError, ValueError) as exc:
        errors.print(f"[red]{PROG}: {escape(str(exc))}[/red]")
        return 2


def _parse(conf: cfg.ConfigOpts, argv: Sequence[str]) -> None:
    try:
        arguments.parse(
            conf, one_option_per_value(argv, "--inventory"), project="ironic-rules", prog=PROG,
            version=importlib.metadata.version("ironic-rules"),
            description="Enroll nodes, inspect them with simulated ramdisks, and measure the service's performance.")
    except arguments.WrongArguments as exc:
        raise exc.end() from exc
    for option in OPTS:
        if isinstance(option, cfg.FloatOpt) and not math.isfinite(conf[option.dest]):
            raise ValueError(f"--{option.name} must be a finite number of seconds")


def simulate(conf: cfg.ConfigOpts, errors: Console) -> int:
    """Run the simulation configured by ``conf``; print messages and progress on ``errors``, the report on stdout."""
    kinds = [inventories.load(path) for path in conf.inventory] or shipped_samples()
    run_id = conf.run_id or secrets.token_hex(3)
    with Client(conf.endpoint, conf.api_version, retry=Retry(base_delay_s=conf.retry_delay),
                connections=conf.concurrency, headers=headers(conf.header), authority=conf.cacert) as client:
        client.check()
        machines = [inventories.vary(kind, run_id, index)
                    for index, kind in enumerate(itertools.islice(itertools.cycle(kinds), conf.nodes))]
        status = 130
        with Bars(errors) as bars:
            fleet = Fleet(client, machines, concurrency=conf.concurrency, driver=conf.driver, timeout_s=conf.timeout,
                          progress=bars)
            undeleted: list[str] = []
            try:
                fleet.run()
                status = 0
            except KeyboardInterrupt:
                errors.print(f"[red]{PROG}: interrupted[/red]")
            finally:
                if conf.cleanup:
                    undeleted = fleet.clean_up()
        result = report.make(fleet.outcome, run_id, client.endpoint, conf.concurrency)
        for line in undeleted:
            errors.print(f"[red]not deleted:[/red] {escape(line)}")
        if status == 0 and conf.json:
            print(json.dumps(result.to_json(), indent=2))
        elif status == 0:
            report.show(result, Console(highlight=False, soft_wrap=True))
            if not conf.cleanup and any(run.callback for run in fleet.outcome.runs):
                errors.print(f"The nodes sim-{run_id}-* were not deleted; --cleanup deletes them.")
        return status or int(not result.ok or bool(undeleted))


def shipped_samples() -> list[inventories.Sample]:
    """Return the samples in the package whose inspection should succeed."""
    bodies = {name: samples.inventory(name) for name in samples.inventory_names()}
    return [inventories.Sample(name, body) for name, body in bodies.items() if not body.get("error")]


def headers(lines: Sequence[str]) -> dict[str, str]:
    """Parse ``Name: value`` lines.

    :raises ValueError: a line without a colon
    """
    pairs = [line.partition(":") for line in lines]
    if not all(name.strip() and colon for name, colon, _ in pairs):
        raise ValueError("--header takes 'Name: value'")
    return {name.strip(): value.strip() for name, _, value in pairs}


def one_option_per_value(argv: Sequence[str], option: str) -> list[str]:
    """Repeat ``option`` before each of the values that follow it, as oslo.config requires.

    ``--inventory a b --json`` becomes ``--inventory a --inventory b --json``. Without a value it stays as it is,
    which is an error.
    """
    result: list[str] = []
    following = False
    for word, after in itertools.pairwise([*argv, "-"]):
        if word == option:
            following = True
            if after.startswith("-"):
                result.append(word)
        elif word.startswith("-"):
            following = False
            result.append(word)
        else:
            result += [option, word] if following else [word]
    return result


if __name__ == "__main__":
    sys.exit(main())
