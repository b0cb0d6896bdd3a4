"""Kea as the operator's page says: its commands are typed, its configurations used, and its options given."""

from __future__ import annotations

import configparser
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from ironic_rules.models import states
from tests.functional import databases
from tests.functional.processes import wait_for
from tests.functional.pxe_filter import kea as keas
from tests.functional.pxe_filter.network import network
from tests.functional.pxe_filter.site import Site
from tests.functional.pxe_filter.test_kea import follows
from tests.functional.pxe_filter.test_process import running

pytestmark = [pytest.mark.servers, pytest.mark.slow]

_ROOT = Path(__file__).parents[3]
_PAGE = (_ROOT / "doc" / "source" / "admin" / "pxe-filter.rst").read_text()
PART = _PAGE[_PAGE.index("\nKea instead of dnsmasq\n"):_PAGE.index("\nClients without an address\n")]
_SAMPLES = _ROOT / "etc" / "ironic-rules" / "kea"
SAMPLE = (_SAMPLES / "kea-dhcp4-closed.conf").read_text()


class Names:
    """The page's names of the database, its accounts and its host, as they are here."""

    def __init__(self, url: sa.URL) -> None:
        self.url, self.kea, self.filter = url, f"{url.database}_k", f"{url.database}_f"

    def __call__(self, text: str) -> str:
        # Not the tool, the target, and the folder of the sockets.
        text = re.sub(r"(?<![-\w])(?<!target = )kea(?![-\w]|/kea)", self.kea, text)
        text = re.sub(r"(USER |TO |//)filter\b", rf"\g<1>{self.filter}", text)
        return text.replace("192.0.2.12", str(self.url.host))


@pytest.fixture(scope="module")
def typed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Names]:
    """Names that nothing else on the server has, with what the page's commands make; all is removed afterwards."""
    keas.require()
    with databases.temporary_database("mysql") as url:
        made = Names(sa.make_url(url))
        try:
            type_commands(made, tmp_path_factory.mktemp("home"))
            yield made
        finally:
            with databases.engine(url) as engine, engine.begin() as conn:
                for what in (f"DATABASE IF EXISTS {made.kea}", f"USER IF EXISTS {made.kea}",
                             f"USER IF EXISTS {made.filter}"):
                    conn.execute(sa.text(f"DROP {what}"))


@pytest.fixture
def names(typed: Names) -> Iterator[Names]:
    """The names of ``typed``, whose host database is empty."""
    yield typed
    with databases.engine(typed.url.render_as_string(hide_password=False)) as engine, engine.begin() as conn:
        conn.execute(sa.text(f"DELETE FROM {typed.kea}.hosts"))


def type_commands(names: Names, home: Path) -> None:
    """Type what follows the ``#`` prompts, as an administrator of MariaDB."""
    commands = re.findall(r"^   # (.+)$", PART[:PART.index("code-block:: text")], re.MULTILINE)
    commands = [command for command in commands if re.match(r"mysql |kea-admin ", command)]
    assert len(commands) == 3
    url = names.url
    (home / ".my.cnf").write_text(f"[client]\nhost={url.host}\nport={url.port or 3306}\nuser={url.username}\n"
                                  f"password={url.password or ''}\n")
    done = subprocess.run(["bash", "-e", "-c", "\n".join(map(names, commands))], capture_output=True, text=True,
                          timeout=300, check=False, env={**os.environ, "PATH": keas.PATH, "HOME": str(home)})
    assert done.returncode == 0, done.stdout + done.stderr


def options(names: Names) -> dict[str, str]:
    """Return the page's options of ``[pxe_filter]``."""
    [block] = re.findall(r"^   (\[pxe_filter\]\n(?:   .+\n)+)", PART, re.MULTILINE)
    parsed = configparser.ConfigParser(interpolation=None)
    parsed.read_string(names(block.replace("\n   ", "\n")))
    return dict(parsed["pxe_filter"])


def test_the_lines_of_the_page_are_those_of_the_sample() -> None:
    block = PART[PART.index(".. code-block:: text"):PART.index("Closed policy (")]
    lines = [line.partition("(closed policy only,")[0].strip() for line in block.splitlines() if line.startswith("   ")]

    assert len(lines) == 5
    assert [line for line in lines if line not in SAMPLE] == []


def sample(names: Names, version: int, policy: str, folder: Path) -> str:
    """Return the sample as it can be served here.

    In its namespace the server reaches the database by a socket, and has another network and no folder for leases.
    """
    text = (_SAMPLES / f"kea-dhcp{version}-{policy}.conf").read_text()
    text = names(text.replace("192.0.2.12", "localhost")).replace("192.0.2.", "198.51.100.")
    text = text.replace('"type": "memfile"', '"type": "memfile", "persist": false')
    # Where the server keeps its own DUID.
    return text.replace('"valid-lifetime"', f'"data-directory": "{folder}", "valid-lifetime"') if version == 6 else text


def account(names: Names) -> str:
    """Return the URL of the host database as Kea uses it."""
    url = names.url.set(database=names.kea, username=names.kea, password="PASSWORD")
    return url.render_as_string(hide_password=False)


def clients_of(version: int, *macs: str) -> list[dict[str, Any]]:
    """Return a client for each address; with DHCPv6, its DUID has the address."""
    return [{"v": version, "mac": mac, "wait": 1.5,
             **({"duid": f"00030001{mac.replace(':', '')}"} if version == 6 else {})} for mac in macs]


@pytest.mark.parametrize("version", [4, 6])
def test_the_closed_policy_as_the_page_sets_it_up(site: Site, names: Names, tmp_path: Path, version: int) -> None:
    (node, mac), (_, other), stranger = site.machine(), site.machine(), site.mac()
    clients = clients_of(version, mac, other, stranger)
    given = options(names)
    assert given["deny_unknown_macs"] == "true"
    with network(tmp_path) as net:
        net.kea(version, account(names), "closed", sample(names, version, "closed", tmp_path))
        with running(site, **given, dhcp_hostsdir="") as process:
            assert net.wire.ask(*clients) == [False, False, False]
            site.move(node, states.INSPECTWAIT)
            wait_for("the allowed client to be answered", lambda: net.wire.ask(clients[0]) == [True])
            assert net.wire.ask(*clients) == [True, False, False]

            site.move(node, states.MANAGEABLE)
            wait_for("it to be answered no longer", lambda: net.wire.ask(clients[0]) == [False])
            assert "Cannot write" not in process.text()
        net.stop_keas()


def test_the_closed_policy_with_mariadb(site: Site, names: Names, tmp_path: Path) -> None:
    with network(tmp_path) as net:
        follows(site, net, names.url.set(database=names.kea).render_as_string(hide_password=False))
        site.close_all()
        net.stop_keas()


@pytest.mark.parametrize("version", [4, 6])
def test_the_sample_of_the_open_policy_with_its_server(site: Site, names: Names, tmp_path: Path, version: int) -> None:
    (node, mac), (_, other), stranger = site.machine(), site.machine(), site.mac()
    clients = clients_of(version, mac, other, stranger)
    given = {**options(names), "deny_unknown_macs": "false"}
    with network(tmp_path) as net:
        kea = net.kea(version, account(names), "open", sample(names, version, "open", tmp_path))
        with running(site, **given, dhcp_hostsdir="", kea_control_sockets=kea.control) as process:
            wait_for("all to be denied", lambda: net.wire.ask(*clients) == [False, False, False])
            site.move(node, states.INSPECTWAIT)
            # Who is unknown may be a machine that is to be discovered.
            wait_for("the allowed client to be answered", lambda: net.wire.ask(*clients) == [True, False, True])

            site.move(node, states.MANAGEABLE)
            wait_for("it to be answered no longer", lambda: net.wire.ask(*clients) == [False, False, False])
            assert "Cannot write" not in process.text()
        net.stop_keas()
