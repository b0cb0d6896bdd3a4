"""``ironic-rules``: the whole service in one process, with SQLite and an in-memory message transport."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from oslo_config import cfg
from oslo_log import log as logging

from ironic_rules import certificates, service
from ironic_rules.api import authorization
from ironic_rules.cmd import lifecycle, systemd
from ironic_rules.exceptions import ConfigurationError
from ironic_rules.metrics.numbers import Numbers
from ironic_rules.rpc import transport as rpc_transport

LOG = logging.getLogger(__name__)

_CLI_OPTS: list[cfg.Opt] = [
    *lifecycle.LISTEN_OPTS,
    cfg.StrOpt("state-dir", dest="cli_state_dir", metavar="FOLDER",
               help="Folder for the database and the log (overrides state_path; default ./ironic-rules-data, and "
                    "./ironic-rules-demo with --demo)."),
    cfg.BoolOpt("tls", dest="cli_tls", default=False,
                help="Try TLS: make a certificate in the state folder, valid for 30 days and for this machine only, "
                     "and serve the API with it (overrides [api]ssl_cert_file)."),
    cfg.BoolOpt("demo", dest="cli_demo", default=False,
                help="Run a demo: load example rules, enroll sample nodes, let simulated ramdisks send their "
                     "inventories, show what changed, and continue to serve."),
]

#: A separate folder, so that the sample nodes do not mix with machines that are enrolled later.
_DEMO_FOLDER = "ironic-rules-demo"

#: Arguments of curl, openstack and ironic-rules-simulate for each auth_strategy: the login, and where the service is.
#: With Keystone, openstack takes both from its environment and the catalog.
_ARGUMENTS = {
    "noauth": ("{url}", "--os-auth-type none --os-endpoint {url}", "--endpoint {url}"),
    "http_basic": ("-u USER:PASSWORD {url}",
                   "--os-auth-type http_basic --os-username USER --os-password PASSWORD --os-endpoint {url}",
                   '--header "Authorization: Basic $(printf USER:PASSWORD | base64)" --endpoint {url}'),
    "keystone": ("-H 'X-Auth-Token: TOKEN' {url}", "", "--header 'X-Auth-Token: TOKEN' --endpoint {url}"),
}

_WELCOME = """\
ironic-rules listens on {url}   (data: {state}, log: {log})
Try next:
  {commands}
Ctrl-C stops it."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the service until SIGTERM or Ctrl-C; return the exit status: 3 if another process took over its host name."""
    return lifecycle.guarded(_run, argv, unavailable=lifecycle.UNAVAILABLE)


def _run(argv: Sequence[str]) -> int:
    conf = service.prepare_config(argv, _CLI_OPTS, api=True, conductor=True, one_process=True)
    lifecycle.apply_listen_opts(conf)
    if conf.cli_demo:
        if conf.auth_strategy != "noauth":
            raise ConfigurationError(
                f"[DEFAULT]auth_strategy is {conf.auth_strategy}, but --demo enrolls its nodes without a login: start "
                "ironic-rules without --demo, or without a configuration file to see the demo.")
        conf.set_default("state_path", _DEMO_FOLDER)
    if conf.cli_state_dir is not None:
        conf.set_override("state_path", conf.cli_state_dir)
    service.use_one_process_defaults(conf)
    if not (conf.log_file or conf.log_dir or conf.log_config_append or conf.use_syslog or conf.use_journal
            or conf.use_stderr):
        conf.set_override("log_dir", conf.state_path)
        conf.set_override("log_file", "ironic-rules.log")
    service.setup_logging(conf)
    lifecycle.give_memory_back()
    signals = lifecycle.StopSignals(conf)
    lock = lifecycle.lock_folder(conf.state_path)
    authority = _trial_certificate(conf) if conf.cli_tls else None
    db = service.make_database(conf, upgrade=True)
    transport = rpc_transport.get_transport(conf)
    lifecycle.reach_broker(conf)
    numbers = Numbers()
    rules = service.make_rules(conf, db, numbers)
    own_filter, messages = service.make_own_filter(conf, db, transport)
    api = service.make_api(conf, db, transport, rules, numbers, pxe_filter=messages)
    conductor = service.make_conductor_service(conf, db, transport, displaced=signals.stop, rules=rules,
                                               numbers=numbers, pxe_filter=messages)
    def is_well() -> bool:
        return api.is_answering() and conductor.is_well()

    service.serve_metrics(numbers, conf, "api", is_well=is_well)
    if own_filter is not None:
        own_filter.start()  # before a machine is started
    presence = service.be_present(conf, db, "ironic-rules")
    try:
        conductor.start()
        for warning in filter(None, (authorization.warn_if_open(conf), *_without_effect(conf))):
            print(f"WARNING: {warning}", file=sys.stderr, flush=True)  # the log is a file
        api.start()
        log = os.path.join(conf.log_dir or "", conf.log_file or "") or "stderr"
        commands = "\n  ".join(_suggestions(api.url, conf.auth_strategy, authority))
        print(_WELCOME.format(url=api.text, state=conf.state_path, log=log, commands=commands), flush=True)
        if conf.cli_demo:
            threading.Thread(target=_demo, args=(api.url, conf.api.enable_ui, authority), name="demo",
                             daemon=True).start()
        lifecycle.settle()
        systemd.ready(is_well)
        signals.wait()
        systemd.tell("STOPPING=1")
        api.stop()
    finally:
        finished = conductor.stop()
        presence.stop()
        if own_filter is not None:
            own_filter.stop()
            own_filter.wait(2)
        lock.close()
    print("ironic-rules has stopped." if finished else
          "ironic-rules has stopped; unfinished work is stored and continues at the next start.")
    lifecycle.end_of_conductor(conf, is_displaced=conductor.is_displaced)
    return 0


def _without_effect(conf: cfg.ConfigOpts) -> Iterator[str]:
    """Log and yield what is set for several processes."""
    for group in ("api", "conductor"):
        if (number := conf[group].workers) > 1:
            text = service.placed(
                f"[{group}]workers is {number}, which has no effect: ironic-rules is one process. Several processes "
                f"are started by ironic-rules-{group}, which needs a database and a broker that processes can share.")
            LOG.warning("%s", text)
            yield text


def _trial_certificate(conf: cfg.ConfigOpts) -> str:
    """Serve with a certificate of our own; return its path, which is that of its authority, too."""
    names = list(dict.fromkeys(("localhost", "127.0.0.1", conf.api.host_ip)))
    files = certificates.make_trial_pair(Path(conf.state_path), names)
    conf.set_override("ssl_cert_file", files.certificate, group="api")
    conf.set_override("ssl_key_file", files.key, group="api")
    return files.certificate


def _suggestions(url: str, auth_strategy: str, authority: str | None) -> Iterator[str]:
    """Yield commands to try that are installed, as they must be typed here, with placeholders for a login.

    :param authority: path of the certificate that clients have to trust
    """
    curl, openstack, simulate = (arguments.format(url=url) for arguments in _ARGUMENTS[auth_strategy])
    if authority is not None:
        path = shlex.quote(authority)
        curl, openstack, simulate = f"--cacert {path} {curl}", f"--os-cacert {path} {openstack}", (
            f"--cacert {path} {simulate}")
    yield f"curl -s {curl}/v1/nodes"
    # The folder as it was typed, such as .venv/bin; that of the interpreter for "python -m".
    folders = os.pathsep.join((os.path.dirname(sys.argv[0]), os.path.dirname(sys.executable)))
    for name, arguments in (("openstack", f"{openstack} baremetal node list".lstrip()),
                            ("ironic-rules-simulate", f"{simulate} --nodes 20 --cleanup")):
        command = name if shutil.which(name) else shutil.which(name, path=folders)
        if command:
            yield f"{command} {arguments}"


def _demo(url: str, has_page: bool, authority: str | None) -> None:
    from rich.console import Console

    from ironic_rules.simulator import demo
    from ironic_rules.simulator.client import ClientError

    console = Console()
    failed: list[str] = []
    try:
        failed = [row.node for row in demo.run(url, console, authority) if row.error]
    except ClientError as exc:
        console.print(f"The demo could not be shown: {exc}", markup=False)
    console.print(f"Still serving on {url}; Ctrl-C stops it.")
    if has_page:
        # The URL of the machine that failed, if there is one. Not wrapped: terminals make a link of it.
        console.print(f"Why it failed: {url}/ui/#/node/{failed[0]}?guide" if failed else f"The page: {url}/ui/",
                      soft_wrap=True, markup=False, highlight=False)
    demo.boot_machines(url, threading.Event(), authority)  # as long as the process runs


if __name__ == "__main__":
    sys.exit(main())
