"""Configurations with which a process does not start, and what it says of each mistake: one line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

#: Process -> its module.
MODULES = {name: f"ironic_rules.cmd.{name}" for name in (
    "standalone", "api", "conductor", "pxe_filter", "dbsync", "status")}


class Start(NamedTuple):
    """A process that is started once, with one or several mistakes.

    In all texts, ``{folder}`` is the folder of the test, ``{file}`` the configuration file there, ``{busy}`` a port
    that is in use, ``{free}`` one that is not, ``{broker}`` the address of RabbitMQ, ``{mysql_host}`` and
    ``{postgresql_host}`` those of the other servers, whose URLs without a database are ``{mysql}`` and
    ``{postgresql}``, and ``{sqlite}`` the URL of a database that has the schema.

    :ivar told: of each mistake, two or more parts of its line: the first one begins the line after the process
    :ivar needs: servers without which the test is skipped
    :ivar make: writes further files into the folder
    :ivar status: of its end; 75 for what may be available later
    """

    name: str
    process: str
    config: str | bytes | None
    told: tuple[tuple[str, ...], ...]
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = {}
    needs: tuple[str, ...] = ()
    make: Callable[[Path], object] = lambda folder: None
    status: int = 2


_STATE = ("--port", "0", "--state-dir", "{folder}/state")
_DEFAULT = "{file}: [DEFAULT]"
#: The options of a process of several, so far as they are right.
_RABBIT = "[DEFAULT]\ntransport_url = rabbit://{broker}/\n"
_DATABASE = "[database]\nconnection = {sqlite}\nmax_retries = 0\n"
_FILTER = "[DEFAULT]\ntransport_url = fake://\n" + _DATABASE
_KEYSTONE = "[DEFAULT]\nauth_strategy = keystone\n[keystone_authtoken]\n"

VALUES = """\
[DEFAULT]
debug = maybe
auth_strategy = basic
default_log_levels = amqp=LOUD
enabled_hardware_types = redfis
state_path = $nope
transport_url = rabit://{broker}/
[api]
port = http
threads = many
enable_ui = perhaps
enable_ssl_api = true
[agent]
require_tls = true
[conductor]
workers = 0
heartbeat_timeout = 5
file_url_allowed_paths = images
[database]
connection = mysql+pymsql://ironic:secret@127.0.0.1/ironic
[deploy]
http_url = 8080
deploy_kernel = ipa.kernel
external_callback_url = host:6385
image_url_denied_networks = 10.0.0.0/99
[inspector]
hooks = $default_hooks,raid
[ipmi]
cipher_suite_versions = three
"""


def _of_file(*parts: str) -> tuple[str, ...]:
    return ("{file}: " + parts[0], *parts[1:])


_VALUES_TOLD = (
    _of_file("[DEFAULT]debug = maybe: ", "true or false is required"),
    _of_file("[DEFAULT]auth_strategy = basic: ", "noauth, keystone, http_basic"),
    _of_file("[DEFAULT]default_log_levels = amqp=LOUD: ", "CRITICAL"),
    _of_file("[DEFAULT]enabled_hardware_types = redfis: ", "not installed: redfis; installed are fake-hardware"),
    _of_file("[DEFAULT]state_path = $nope: ", "there is no option nope"),
    _of_file("[DEFAULT]transport_url = (not shown): ", "there is no transport rabit", "rabbit://USER:PASSWORD@HOST"),
    _of_file("[api]port = http: ", "a whole number from 0 to 65535"),
    _of_file("[api]threads = many: ", "a whole number from 1 to 500"),
    _of_file("[api]enable_ui = perhaps: ", "true or false"),
    _of_file("[api]enable_ssl_api = true: ", "no process reads this option", "ssl_cert_file"),
    _of_file("[agent]require_tls = true: ", "no process reads this option", "keep the network of the ramdisks"),
    _of_file("[conductor]workers = 0: ", "a whole number from 1 to 256"),
    _of_file("[conductor]heartbeat_timeout = 5: ", "more than [conductor]heartbeat_interval"),
    _of_file("[conductor]file_url_allowed_paths = images: ", "absolute paths"),
    _of_file("[database]connection = (not shown): ", "there is no driver mysql+pymsql", "mysql+pymysql://"),
    _of_file("[deploy]http_url = 8080: ", "http:// or https://"),
    _of_file("[deploy]deploy_kernel = ipa.kernel: ", "a URL with a host"),
    _of_file("[deploy]external_callback_url = host:6385: ", "http or https URL"),
    _of_file("[deploy]image_url_denied_networks = 10.0.0.0/99: ", "CIDR"),
    _of_file("[inspector]hooks = $default_hooks,raid: ", "not installed: raid", "raid-device"),
    _of_file("[ipmi]cipher_suite_versions = three: ", "separated by commas", "from 0 to 17"),
)

INTERFACES = ("bios", "rescue", "inspect", "management", "power", "raid")

STARTS = [
    Start("values that are not allowed", "standalone", VALUES, _VALUES_TOLD, _STATE),
    Start("hardware types without interfaces", "standalone",
          "[DEFAULT]\nenabled_hardware_types = redfish\n" + "".join(
              f"enabled_{kind}_interfaces = fake\n" for kind in INTERFACES),
          tuple((f"{_DEFAULT}enabled_{kind}_interfaces is fake", "hardware type redfish needs one of")
                for kind in INTERFACES), _STATE),

    # Configuration files
    Start("no file", "standalone", None, (("{folder}/none.conf: ", "there is no such configuration file"),
                                          ("{folder}/other.conf: ", "there is no such configuration file")),
          ("--config-file", "{folder}/none.conf", "--config-file", "{folder}/other.conf")),
    Start("a folder as file", "api", None, (("{folder}: ", "Is a directory"),), ("--config-file", "{folder}")),
    Start("no folder", "conductor", None, (("{folder}/none: ", "there is no such folder of configuration files"),),
          ("--config-dir", "{folder}/none")),
    Start("a byte order mark", "dbsync", b"\xef\xbb\xbf[DEFAULT]\ndebug = true\n",
          (("{file}, line 1: ", "byte order mark", "save it as UTF-8 without one"),), ("version",)),
    Start("UTF-16", "pxe_filter", "[DEFAULT]\n".encode("utf-16"), (("{file}: ", "not UTF-8 at byte 0, in line 1"),)),
    Start("tabs", "dbsync", "[DEFAULT]\n\tdebug = true\n",
          (("{file}, line 2: ", "continuation", "remove the indentation"),), ("version",)),
    Start("no section", "dbsync", "debug = true\n",
          (("{file}, line 1: ", "write [DEFAULT] or another section"),), ("version",)),
    Start("no equals sign", "dbsync", "[DEFAULT]\r\ndebug\r\n",
          (("{file}, line 2: ", "write OPTION = VALUE"),), ("version",)),
    Start("no bracket", "dbsync", "[DEFAULT\ndebug = true\n",
          (("{file}, line 1: ", "write [SECTION] alone"),), ("version",)),
    Start("an indented option", "api", "[api]\nthreads = 5\n  port = 77\n",
          (("{file}: [api]threads = 5\\nport = 77: ", "a whole number", "an indented line continues"),)),
    Start("the environment", "conductor", "",
          (("OS_API__THREADS: [api]threads = many: ", "a whole number"),
           ("OS_API__ENABLE_SSL_API: [api]enable_ssl_api = true: ", "ssl_cert_file")),
          environment={"OS_API__THREADS": "many", "OS_API__ENABLE_SSL_API": "true"}),
    Start("no log", "dbsync", "[DEFAULT]\nlog_file = {folder}/none/log\n",
          ((f"{_DEFAULT}log_file cannot be written", "No such file or directory"),), ("version",)),

    # The database
    Start("no database", "conductor", "[DEFAULT]\n",
          (("{file}: [database]connection is not set", "sqlite:////FOLDER/ironic-rules.sqlite"),)),
    Start("no URL of a database", "dbsync", "[database]\nconnection = ironic.sqlite\n",
          (("{file}: [database]connection = (not shown): ", "DRIVER://USER:PASSWORD@HOST:PORT/DATABASE"),),
          ("version",)),
    Start("a port that is no number", "dbsync", "[database]\nconnection = mysql+pymysql://u:p@ss@localhost:p/x\n",
          (("{file}: [database]connection = (not shown): ", "%40 for @"),), ("version",)),
    Start("another driver", "dbsync", "[database]\nconnection = postgresql+asyncpg://u@localhost/x\n",
          (("{file}: [database]connection = (not shown): ", "postgresql+asyncpg is not supported", "+psycopg://"),),
          ("version",)),
    Start("no folder of SQLite", "dbsync", "[database]\nconnection = sqlite:///{folder}/none/x.sqlite\n",
          (("{file}: [database]connection = sqlite:///{folder}/none/x.sqlite: ", "there is no folder {folder}/none"),),
          ("upgrade",)),
    Start("a folder of SQLite", "dbsync", "[database]\nconnection = sqlite:///{folder}\n",
          (("{file}: [database]connection = sqlite:///{folder}: ", "is a folder: add the name of a file"),),
          ("upgrade",)),
    Start("no file of SQLite", "conductor",
          "[DEFAULT]\nlog_file = {folder}/log\n[database]\nconnection = sqlite:///{file}\n",
          (("{file}: [database]connection: {file} is not a SQLite database", "Set the option to a file of its own"),)),
    Start("no schema", "api", "[database]\nconnection = sqlite:///{folder}/x.sqlite\n",
          (("The database schema is not the current one", "ironic-rules-dbsync upgrade"),)),
    Start("MariaDB's password", "conductor",
          "[DEFAULT]\nlog_file = {folder}/log\n[database]\nconnection = mysql+pymysql://root:secret@{mysql_host}/ironic\n",
          (("{file}: [database]connection = mysql+pymysql://root:******@{mysql_host}/ironic: ", "refuses the login",
            "Access denied"),), needs=("mysql",), status=75),
    Start("MariaDB's database", "api", "[database]\nconnection = {mysql}/nosuch\n",
          (("{file}: [database]connection = mysql+pymysql://", "/nosuch: ",
            "no database of this name: create the database"),), needs=("mysql",), status=75),
    Start("MariaDB's port", "conductor",
          "[database]\nconnection = mysql+pymysql://root@127.0.0.1:{free}/x\nmax_retries = 0\n",
          (("{file}: [database]connection = mysql+pymysql://root@127.0.0.1:{free}/x: ", "cannot be reached",
            "Connection refused"),), status=75),
    Start("PostgreSQL's user", "pxe_filter",
          _FILTER.replace("{sqlite}", "postgresql+psycopg://nosuch@{postgresql_host}/postgres")
          + "[pxe_filter]\ndhcp_hostsdir = {folder}\n",
          (("{file}: [database]connection = postgresql+psycopg://nosuch@{postgresql_host}/postgres: ", "nosuch"),),
          needs=("postgresql",), status=75),
    Start("PostgreSQL's database", "dbsync",
          "[database]\nconnection = {postgresql}/nosuch\n",
          (("{file}: [database]connection = postgresql+psycopg://", "/nosuch: ", "no database of this name"),),
          ("upgrade",), needs=("postgresql",)),

    Start("MariaDB's certificate", "dbsync",
          "[database]\nconnection = mysql+pymysql://root@127.0.0.1:{free}/x?ssl_ca={folder}/none.pem\n",
          (("{file}: [database]connection = (not shown): ", "ssl_ca, {folder}/none.pem, cannot be read"),),
          ("version",)),

    Start("a dollar sign in passwords", "conductor",
          "[database]\nconnection = mysql+pymysql://root:pa$word@127.0.0.1/x\n"
          "[DEFAULT]\ntransport_url = rabbit://guest:pa$word@127.0.0.1/\nlog_dir = $word/log\n", (
              ("{file}: [database]connection = (not shown): ", "there is no option word", "write $$"),
              ("{file}: [DEFAULT]transport_url = (not shown): ", "there is no option word", "write $$"),
              ("{file}: [DEFAULT]log_dir = $word/log: ", "there is no option word", "write $$"))),
    Start("a dollar sign in the password of the database", "standalone",
          "[database]\nconnection = mysql+pymysql://root:pa$word@127.0.0.1/x\n",
          (("{file}: [database]connection = (not shown): ", "there is no option word", "write $$"),), _STATE),
    Start("a dollar sign in Keystone's password", "standalone",
          _KEYSTONE + "auth_type = password\nauth_url = http://127.0.0.1:{free}\npassword = pa$word\n",
          (("{file}: [keystone_authtoken]password: ", "there is no option word", "write $$"),), _STATE),

    # RabbitMQ
    Start("a transport that needs a package", "api", "[DEFAULT]\ntransport_url = kafka://{free}/\n" + _DATABASE,
          ((f"{_DEFAULT}transport_url = (not shown): ", "the transport kafka cannot be used", "rabbit://"),)),
    Start("no transport", "api", _DATABASE,
          ((f"{_DEFAULT}transport_url is not set", "set the URL of RabbitMQ", "ironic-rules"),)),
    Start("no URL of a transport", "conductor", "[DEFAULT]\ntransport_url = rabbit://localhost:port/\n",
          ((f"{_DEFAULT}transport_url = (not shown): ", "no URL of a transport"),)),
    Start("RabbitMQ's password", "conductor",
          "[DEFAULT]\nlog_file = {folder}/log\ntransport_url = rabbit://guest:secret@{broker}/\n" + _DATABASE,
          ((f"{_DEFAULT}transport_url: RabbitMQ at {{broker}}", "refuses the login of user guest", "ACCESS_REFUSED"),),
          needs=("broker",)),
    Start("RabbitMQ's virtual host", "api",
          "[DEFAULT]\nlog_file = {folder}/log\ntransport_url = rabbit://guest:guest@{broker}/nosuch\n" + _DATABASE,
          ((f"{_DEFAULT}transport_url: RabbitMQ at {{broker}}", "has no virtual host nosuch", "add_vhost"),),
          needs=("broker",)),
    Start("RabbitMQ's TLS", "conductor",
          "[DEFAULT]\nlog_file = {folder}/log\ntransport_url = rabbit://guest:guest@{broker}/\n" + _DATABASE
          + "[oslo_messaging_rabbit]\nssl = true\n",
          ((f"{_DEFAULT}transport_url: RabbitMQ at {{broker}}", "[oslo_messaging_rabbit]ssl do not fit together",
            "WRONG_VERSION_NUMBER"),), needs=("broker",)),

    Start("RabbitMQ's certificate", "conductor",
          "[DEFAULT]\nlog_file = {folder}/log\ntransport_url = rabbit://guest:guest@{broker}/\n" + _DATABASE
          + "[oslo_messaging_rabbit]\nssl = true\nssl_ca_file = {folder}/none.pem\n",
          (("{file}: [oslo_messaging_rabbit]ssl_ca_file: ", "{folder}/none.pem cannot be read"),)),

    # Addresses
    Start("a port that is in use", "standalone", "[api]\nport = {busy}\n",
          (("{file}: [api]port: Cannot listen on 127.0.0.1, port {busy}: ", "in use", "set another port"),),
          ("--state-dir", "{folder}/state"), status=75),
    Start("an argument with such a port", "standalone", "",
          (("command line: [api]port: Cannot listen on 127.0.0.1, port {busy}: ", "set another port"),),
          ("--state-dir", "{folder}/state", "--port", "{busy}"), status=75),
    Start("an address of another machine", "standalone", "[api]\nhost_ip = 192.0.2.7\nport = {free}\n",
          (("WARNING: [DEFAULT]auth_strategy is noauth", "every client"),
           ("{file}: [api]host_ip: Cannot listen on 192.0.2.7, port {free}: ", "no interface of this machine")),
          ("--state-dir", "{folder}/state"), status=75),
    Start("a port of metrics that is in use", "standalone", "[api]\nmetrics_port = {busy}\n",
          (("{file}: [api]metrics_port: The metrics cannot be served at 127.0.0.1:{busy}: ", "in use"),), _STATE,
          status=75),

    # Files of ironic-rules and of the API
    Start("a state folder that is a file", "standalone", "",
          (("command line: [DEFAULT]state_path: the state folder {file} cannot be made", "--state-dir"),),
          ("--port", "0", "--state-dir", "{file}")),
    Start("no built-in rules", "standalone", "[inspection_rules]\nbuilt_in = {folder}/none.yaml\n",
          (("{file}: [inspection_rules]built_in: ", "{folder}/none.yaml: there is no such file"),), _STATE),
    Start("broken built-in rules", "standalone", "[inspection_rules]\nbuilt_in = {folder}/rules.yaml\n",
          (("{file}: [inspection_rules]built_in: ", "{folder}/rules.yaml: /0/uuid: must be a UUID"),
           ("{file}: [inspection_rules]built_in: ", "{folder}/rules.yaml: /0/actions/0/op: there is no such action"),
           ("{file}: [inspection_rules]built_in: ", "{folder}/rules.yaml: /1/actions/0/args: missing: msg")), _STATE,
          make=lambda folder: (folder / "rules.yaml").write_text(
              "- {uuid: a, actions: [{op: nope}]}\n- actions: [{op: fail}]\n")),
    Start("no file of users", "standalone",
          "[DEFAULT]\nauth_strategy = http_basic\nhttp_basic_auth_user_file = {folder}/none\n",
          ((f"{_DEFAULT}http_basic_auth_user_file cannot be read", "No such file"),), _STATE),
    Start("a file without users", "standalone",
          "[DEFAULT]\nauth_strategy = http_basic\nhttp_basic_auth_user_file = {folder}/users\n",
          ((f"{_DEFAULT}http_basic_auth_user_file: ", "no user with a bcrypt hash", "htpasswd -B"),), _STATE,
          make=lambda folder: (folder / "users").write_text("admin:$apr1$salt$hash\n")),
    Start("no identity service", "standalone", "[DEFAULT]\nauth_strategy = keystone\n",
          (("{file}: [keystone_authtoken]auth_type is not set", "another auth_strategy"),), _STATE),
    Start("an unknown plug-in of Keystone", "standalone", _KEYSTONE + "auth_type = pasword\n",
          (("{file}: [keystone_authtoken]auth_type: ", "pasword could not be found", "password"),), _STATE),
    Start("no address of Keystone", "standalone", _KEYSTONE + "auth_type = password\nusername = ironic\n",
          (("{file}: [keystone_authtoken]auth_type: ", "required: auth_url"),), _STATE),
    Start("no certificate of Keystone", "standalone",
          _KEYSTONE + "auth_type = password\nauth_url = https://127.0.0.1:{free}\ncafile = {folder}/none.pem\n",
          (("{file}: [keystone_authtoken]cafile: ", "{folder}/none.pem cannot be read"),), _STATE),
    Start("no policies", "standalone",
          _KEYSTONE + "auth_type = password\nauth_url = http://127.0.0.1:{free}\n"
          "[oslo_policy]\npolicy_file = /none.yaml\n",
          (("{file}: [oslo_policy]policy_file: ", "/none.yaml does not exist"),), _STATE),

    # The PXE filter
    Start("no folder of dnsmasq", "pxe_filter", _FILTER + "[pxe_filter]\n",
          (("{file}: [pxe_filter]dhcp_hostsdir is not set",),)),
    Start("a folder of dnsmasq that does not exist", "pxe_filter",
          _FILTER + "[pxe_filter]\ndhcp_hostsdir = {folder}/none\n",
          (("{file}: [pxe_filter]dhcp_hostsdir", "{folder}/none"),)),
    Start("a file as folder of dnsmasq", "pxe_filter", _FILTER + "[pxe_filter]\ndhcp_hostsdir = {file}\n",
          (("{file}: [pxe_filter]dhcp_hostsdir", "{file}"),)),
    Start("an unknown target", "pxe_filter", _FILTER + "[pxe_filter]\ntarget = iptables\n",
          (("{file}: [pxe_filter]target names 'iptables'", "Installed: 'hostsdir', 'kea'"),)),
    Start("no URL of Kea", "pxe_filter", _FILTER + "[pxe_filter]\ntarget = kea\nkea_connection = kea\n",
          (("{file}: [pxe_filter]kea_connection", "not the URL of a database"),)),
    Start("two targets in one folder", "pxe_filter",
          _FILTER + "[pxe_filter]\ntargets = a,b\ndhcp_hostsdir = {folder}\n[pxe_filter:a]\ndhcp_hostsdir = {folder}\n"
          "[pxe_filter:b]\ndhcp_hostsdir = {folder}\n",
          (("{file}: [pxe_filter:b]dhcp_hostsdir has {folder}", "[pxe_filter:a] uses"),)),
]
