from __future__ import annotations

from ironic_rules.models import secrets
from tests.walking import walking


@walking("name", [
    "password", "ipmi_password", "redfish_password", "BMC_Password", "auth_token", "agent_secret_token",
    "ipmi_hex_kg_key",
    "snmp_auth_key", "snmp_priv_key", "SNMP_x_key", "private_key", "ssh_private_key", "configdrive", "admin_pass",
    "secret", "image_url", "snmp_community", "community", "SNMP-Community", "bmc_credential", "credentials", "api_key",
    "api-key", "x_api_key_2", "pin", "host_pin", "passphrase", "ssh_key", "ssh-key",
])
def test_secret_keys_are_known(name: str) -> None:
    assert secrets.is_secret_key(name)


@walking("name", ["ipmi_username", "key", "snmp_version", "", 5, None, "ipmi_hex_kg_keys", "address",
                                  "image_source", "image_url_expires", "cpu_pinning", "pinned", "opinion", "spin",
                                  "communities_served", "credentialed", "apikeyed", "keystone"])
def test_other_keys_are_not_secret(name: object) -> None:
    assert not secrets.is_secret_key(name)


def test_values_are_masked_at_any_depth_in_a_copy() -> None:
    value = {"a": [{"password": "x", "b": 1}], "token": {"deep": ["x"]}, "secret": 5, "c": "password=x"}
    assert secrets.mask(value) == {"a": [{"password": "******", "b": 1}], "token": "******", "secret": "******",
                                   "c": "password=x"}
    assert value["a"] == [{"password": "x", "b": 1}]


def test_null_has_nothing_to_hide() -> None:
    assert secrets.mask({"password": None}) == {"password": None}


@walking("text, masked", [
    ("http://user:pw@host/x", "http://user:******@host/x"),
    ("get https://u:p%40q@h:80/y and ftp://a:b@c, please", "get https://u:******@h:80/y and ftp://a:******@c, please"),
    ("https://:pw@h", "https://:******@h"), ("http://u:p@ss@h/", "http://u:******@h/"),
    ("{'url': 'mysql+pymysql://ironic:pw@db/ironic'}", "{'url': 'mysql+pymysql://ironic:******@db/ironic'}"),
    ("http://host:8080/a@b", None), ("https://user@host/", None), ("redis://[2001:db8::1]:6379/0", None),
    ("a@b: http://x", None), ("mail me: a:b@c", None), ("https://h/?q=a:b@c", None),
])
def test_passwords_of_urls_are_masked_in_every_text(text: str, masked: str | None) -> None:
    expected = text if masked is None else masked
    assert (secrets.mask_text(text), secrets.mask({"a": [text]})) == (expected, {"a": [expected]})
    assert secrets.mask_text(expected) == expected


def test_what_is_masked_is_found_as_masked() -> None:
    value = {"a": [{"password": "x"}, "ftp://u:p@h"], "pin": 5, "b": None, "c": "******"}
    assert secrets.new_masks(secrets.mask(value)) == ["/a/0/password", "/a/1", "/pin"]
    assert secrets.new_masks(value) == []
    assert secrets.new_masks({"a~/token": "******"}, {"a~/token": "x"}) == ["/a~0~1token"]
    assert secrets.new_masks({"token": "******"}, {"token": "******"}) == []


def test_the_words_of_secret_keys_can_be_configured() -> None:
    secrets.configure(["license", "host-key"])
    try:
        assert all(map(secrets.is_secret_key, ("license", "ilo_license", "host_key", "password")))
        assert not any(map(secrets.is_secret_key, ("pin", "licensed")))
        secrets.configure([])
        assert not any(map(secrets.is_secret_key, ("license", "", "pin")))
    finally:
        secrets.configure(secrets.WORDS)
    assert secrets.is_secret_key("pin")


def test_long_keys_and_paths_are_judged_but_not_remembered() -> None:
    known = secrets._is_secret.cache_info().currsize, secrets._is_secret_path.cache_info().currsize
    assert secrets.is_secret_key("x" * 1000 + "_password")
    assert not secrets.is_secret_key("x" * 1000)
    assert secrets.is_secret_path("/extra/" + "x" * 1000 + "_password")
    assert not secrets.is_secret_path("/" + "x/" * 1000)
    # The short parts of the last path are remembered.
    assert secrets._is_secret.cache_info().currsize <= known[0] + 3
    assert secrets._is_secret_path.cache_info().currsize == known[1]
