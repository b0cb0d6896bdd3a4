"""Forms of URLs that lead to the machine that requests them, or to its neighbours, and forms that programs read
differently. ``{port}`` is that of a server on loopback, which none of them may reach.
"""

from __future__ import annotations

_HOSTS = (
    # loopback and unspecified addresses, as resolvers read them
    "127.0.0.1", "0.0.0.0", "0", "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.1", "0X7F.0.0.1", "017700000001",
    "0177.0.0.1", "127.0.0.001", "127.0.0.1.", "0.", "127.255.255.254", "0.1.2.3", "localhost", "any.localhost",
    "LOCALHOST", "localhost.",
    "[::1]", "[::]", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]", "[::ffff:0.0.0.0]", "[::FFFF:7F00:1]",
    # IPv4 addresses in IPv6 addresses: translated, compatible, NAT64, 6to4, Teredo (server, client)
    "[::ffff:0:127.0.0.1]", "[::127.0.0.1]", "[64:ff9b::127.0.0.1]", "[64:ff9b::]", "[64:ff9b:1::7f00:1]",
    "[2002:7f00:1::1]", "[2002::1]", "[2001:0:7f00:1::]", "[2001:0:c000:201::80ff:fffe]", "[64:ff9b::a9fe:a9fe]",
    # link-local and metadata addresses, zones, multicast and broadcast
    "169.254.169.254", "[fe80::1]", "[fe80::a9fe:a9fe]", "[fe80::1%25lo]", "[::1%25lo]", "[::1%lo]", "[fd00:ec2::254]",
    "0xa9fea9fe", "2852039166", "169.254.43518", "[::ffff:a9fe:a9fe]", "224.0.0.1", "[ff02::1]", "255.255.255.255",
    # letters that are mapped to ASCII, escapes
    "\uff11\uff12\uff17.0.0.1", "127\u30020\u30020\u30021", "\u2460\u2461\u2466.0.0.1", "loc\u00adalhost",
    "%31%32%37.0.0.1", "127.0.0.1%00.example.org", "127.0.0.1%2eexample.org", "127.0.0.1%0d%0a", "localhost%20",
    # users, of which one parser finds another one than the next
    "user@127.0.0.1", "user:password@0.0.0.0", "images.example.org@127.0.0.1", "a@images.example.org@127.0.0.1",
    "127.0.0.1\\@images.example.org", "images.example.org\\@127.0.0.1", "127.0.0.1#@images.example.org",
    "[127.0.0.1]", "[::1]127.0.0.1", "[[::1]]", "127.0.0.1,images.example.org", "127.0.0.1;images.example.org",
    "", ".", "-", "images..example.org", "127.0.0.1:{port}",
    "127.0.0.1\t", "127.0.\n0.1", "127.0.0.1\r\nHost: images.example.org", "127.0.0.1\0", "127.0.0.1 ",
    "\u200b127.0.0.1",
)
_FORMS = (
    "HTTP://127.0.0.1:{port}/", "hTTp://0:{port}/", "HTTP://169.254.169.254/", "HtTpS://127.0.0.1:{port}/",
    "http:127.0.0.1:{port}", "http:/127.0.0.1:{port}/", "http:///127.0.0.1:{port}/", "http:\\\\127.0.0.1:{port}\\",
    "http:/\\127.0.0.1:{port}/", "//127.0.0.1:{port}/", " http://127.0.0.1:{port}/", "\thttp://127.0.0.1:{port}/",
    "ht\ntp://127.0.0.1:{port}/", "http:\n//127.0.0.1:{port}/", "http\uff1a//127.0.0.1:{port}/", "http://127.0.0.1:0/",
    "http://127.0.0.1:99999/", "http://127.0.0.1:+{port}/", "http://127.0.0.1:\uff18\uff10/", "http://127.0.0.1:/",
    "http://127.0.0.1:{port}@images.example.org:x/", "http://[::1", "http://::1/", "url:http://127.0.0.1:{port}/",
    "gopher://127.0.0.1:{port}/", "javascript:alert(1)", "file://127.0.0.1/etc/passwd",
)
HOSTILE = (*(f"http://{host}:{{port}}/" for host in _HOSTS), *_FORMS)
