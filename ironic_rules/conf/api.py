"""``[api]``: where the API listens, and limits for requests."""

from __future__ import annotations

from oslo_config import cfg, types

from ironic_rules.conf.value_types import HostPattern, HttpUrlType, StepName

GROUP = cfg.OptGroup("api", title="API", help="The REST API.")
OPTS: list[cfg.Opt] = [
    cfg.HostAddressOpt("host_ip", default="127.0.0.1", help="Address that the API listens on."),
    cfg.PortOpt("port", default=6385, help="TCP port that the API listens on."),
    cfg.PortOpt("public_port", min=0,
                help="TCP port of a second listener, for ramdisks. It serves only /v1/lookup, /v1/heartbeat, "
                     "/v1/continue_inspection, the documents of versions (/ and /v1) and /healthcheck/live, with "
                     "whatever credentials. The ramdisk endpoints then do not exist on the other port. Each "
                     "listener has threads, and limits of connections and bytes, of its own. "
                     "[inspector]callback_endpoint_override must be its URL. Default: no second listener."),
    cfg.HostAddressOpt("public_host_ip", default="0.0.0.0", help="Address of the listener on public_port."),
    cfg.BoolOpt("public_use_tls", default=True,
                help="Use https on public_port, with ssl_cert_file. Ramdisks need no certificate, whatever "
                     "ssl_ca_file is."),
    cfg.StrOpt("ssl_cert_file",
               help="PEM file with the certificate of the API's own HTTP server, followed by those of its chain. "
                    "With it, the API uses https instead of http, with TLS 1.2 or 1.3. If the files of these three "
                    "options change, the API reads them again within two seconds. If it cannot use them, it keeps "
                    "the former ones, and the log contains the reason. The API rejects an expired certificate."),
    cfg.StrOpt("ssl_key_file",
               help="PEM file with the key of ssl_cert_file, without a passphrase. Default: it is in ssl_cert_file."),
    cfg.StrOpt("ssl_ca_file",
               help="PEM file with authorities: only clients with a certificate of one of them may connect, in "
                    "addition to auth_strategy. Default: clients need no certificate."),
    cfg.Opt("public_endpoint", type=HttpUrlType(),
            help="URL under which clients reach the API, used in links. Default: the URL of the request."),
    cfg.ListOpt("allowed_hosts", default=[], item_type=HostPattern(),
                help="Names and addresses, without ports, under which clients reach the API. The API rejects a "
                     "request with another one in the header Host with 421, so that web pages cannot use the API by "
                     "DNS rebinding. Write .example.org for every name that ends with it, and * for every name. The "
                     "API always accepts localhost, loopback addresses, host_ip, and the hosts of public_endpoint, "
                     "[inspector]callback_endpoint_override and [deploy]external_callback_url. Default: only these "
                     "if host_ip is a loopback address; every name if it is not, or if another WSGI server listens."),
    cfg.IntOpt("workers", default=1, min=1, max=256,
               help="Number of processes of ironic-rules-api, with its own HTTP server. They share the port. Each "
                    "has its own threads and database connections. The limits max_connections, "
                    "max_connections_per_source, max_large_bodies, max_bodies_size and max_replies_size apply to "
                    "each. A new process replaces one that dies. In ironic-rules, the service in one process, this "
                    "option only causes a warning."),
    cfg.IntOpt("threads", default=10, min=1, max=500,
               help="Number of requests that one API process serves at the same time."),
    cfg.FloatOpt("lock_patience", default=3.0, min=0.0, max=30.0,
                 help="Maximum number of seconds that a request waits for a locked node, before it gets 409. 0: it "
                      "gets 409 at once. At most a quarter of the threads wait at the same time."),
    cfg.IntOpt("max_limit", default=1000, min=1, help="Maximum number of items in one page of a collection."),
    cfg.IntOpt("max_json_body_size", default=10 * 1024 * 1024, min=1024,
               help="Maximum size of a request body in bytes, whatever its content type."),
    cfg.IntOpt("max_anonymous_body_size", default=4 * 1024 * 1024, min=1024,
               help="Maximum size in bytes of a body of /v1/lookup, /v1/heartbeat or /v1/continue_inspection, which "
                    "need no credentials; at most max_json_body_size. It may have one JSON value per 40 bytes of "
                    "this size, and at least 50,000. Reports of real machines are below 1 MiB."),
    cfg.IntOpt("max_large_bodies", default=2, min=1,
               help="Number of requests with a body of more than 256 KiB that the API's own HTTP server processes at "
                    "the same time. Others wait, without a thread."),
    cfg.IntOpt("max_bodies_size", default=256 * 1024 * 1024, min=1024 * 1024,
               help="Maximum size in bytes of all bodies that the API's own HTTP server has received and has yet to "
                    "process. Bodies of more than 256 KiB are in temporary files (TMPDIR). Beyond it, the server "
                    "rejects the incomplete body that began first, with 503."),
    cfg.IntOpt("max_replies_size", default=64 * 1024 * 1024, min=16 * 1024 * 1024,
               help="Maximum size in bytes of all replies that the API's own HTTP server has in memory for slow "
                    "clients. Beyond it, the server closes connections of the address with the most bytes in such "
                    "replies, the slowest clients first."),
    cfg.IntOpt("head_timeout", default=10, min=1,
               help="Maximum number of seconds in which the API's own HTTP server must receive the first line and "
                    "the headers of a request."),
    cfg.IntOpt("min_bytes_per_second", default=16 * 1024, min=1,
               help="Minimum rate in bytes per second at which clients of the API's own HTTP server must send "
                    "bodies and receive replies. The first head_timeout seconds do not count."),
    cfg.IntOpt("keep_alive_timeout", default=60, min=1,
               help="Number of seconds that the API's own HTTP server keeps a connection between two requests."),
    cfg.IntOpt("max_connections", default=2000, min=10,
               help="Maximum number of connections to the API's own HTTP server. Beyond it, the server closes "
                    "connections of the address with the most, first those that have waited longest for their "
                    "client. If all of them have sent a request, it closes those whose request has not begun."),
    cfg.IntOpt("max_connections_per_source", default=1200, min=1,
               help="Maximum number of connections from one address to the API's own HTTP server. Beyond it, the "
                    "server closes the connections of the address that have waited longest for their client. If all "
                    "of them have sent a request, it closes those that have sent more than one, or else the new "
                    "connection. A proxy, or a NAT gateway before the ramdisks, is one address."),
    cfg.IntOpt("max_json_depth", default=100, min=5, max=500, help="Maximum nesting depth of a JSON body."),
    cfg.BoolOpt("restrict_lookup", default=True,
                help="Restrict lookup by ramdisks to nodes in states that expect a ramdisk."),
    cfg.BoolOpt("enable_ramdisk_endpoints", default=True,
                help="Serve /v1/lookup, /v1/heartbeat and /v1/continue_inspection, which need no authentication."),
    cfg.IntOpt("ramdisk_heartbeat_timeout", default=300, min=10,
               help="Maximum interval in seconds between two heartbeats of a ramdisk."),
    cfg.Opt("disallow_deploy_steps", type=types.List(StepName()), default=["vendor.send_raw"],
            help="Steps, INTERFACE.STEP, that deploy templates and requests must not contain, also for cleaning "
                 "and servicing. The API "
                 "refuses them; conductors refuse to deploy with existing templates that contain them."),
    cfg.IntOpt("max_flavor_extra_specs", default=128, min=1, max=1024,
               help="Maximum number of extra specs of one flavor."),
    cfg.BoolOpt("enable_compute_flavors", default=True,
                help="Serve the flavors also below /compute/v2.1, as Nova does, for its clients."),
    cfg.BoolOpt("enable_ui", default=False,
                help="Serve the page for people at /ui/. Its files are public; it requests its data from the API "
                     "with the credentials of its user. In ironic-rules, the default is true."),
    cfg.BoolOpt("ui_password_login", default=False,
                help="Let users of the page log in with a password, which the API forwards to the identity service "
                     "([keystone_authtoken]www_authenticate_uri) and does not keep. Without it they paste a token. "
                     "Only with auth_strategy = keystone; use TLS."),
    cfg.BoolOpt("enable_healthcheck", default=True, help="Serve /healthcheck (no authentication)."),
    cfg.HostAddressOpt("metrics_host", default="127.0.0.1", help="Address of the Prometheus metrics."),
    cfg.PortOpt("metrics_port", default=0, min=0,
                help="TCP port for the metrics of ironic-rules-api, or of ironic-rules. The second process of "
                     "[api]workers has the next port, and so on. No authentication. 0: none. Requires the extra "
                     "'metrics'."),
    cfg.BoolOpt("metrics_tls", default=False,
                help="Serve the metrics on metrics_port with https: the certificate, and the authorities of clients, "
                     "are those of ssl_cert_file, ssl_key_file and ssl_ca_file."),
    cfg.BoolOpt("serve_metrics", default=False,
                help="Serve /metrics in the API as well, to users whom the policy baremetal:metrics:get permits it. "
                     "Of several processes, the one that replies sends its own metrics. Requires the extra "
                     "'metrics'."),
]
