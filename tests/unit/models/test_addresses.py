
from ironic_rules.models.addresses import host, hosts, normalize
from tests.walking import walking


@walking("text, expected", [
    ("192.0.2.1", "192.0.2.1"),
    ("2001:DB8:0::1", "2001:db8::1"),
    ("2001:db8::1/64", "2001:db8::1"),
    ("::ffff:192.0.2.1", "192.0.2.1"),
    ("0.0.0.0", None), ("::", None), ("::/0", None), ("127.0.0.1", None), ("::1", None), ("fe80::1%eth0", None),
    ("169.254.1.1", None), ("ff02::1", None), ("", None), ("bmc", None), ("192.0.2.1\n", None), (None, None), (1, None),
    ("1" * 200, None),
])
def test_an_address_has_one_form_and_unusable_ones_none(text, expected):
    assert normalize(text) == expected


@walking("value, expected", [
    ("192.0.2.1", "192.0.2.1"), ("2001:db8::1", "2001:db8::1"), ("[2001:db8::1]:443", "2001:db8::1"),
    ("192.0.2.1:8000", "192.0.2.1"), ("bmc.example.com", "bmc.example.com"), ("bmc:443", "bmc"),
    ("https://BMC.example.com:8443/redfish/v1", "bmc.example.com"), ("https://[2001:db8::1]/", "2001:db8::1"),
    ("http://user:secret@192.0.2.1/", "192.0.2.1"), (" 192.0.2.1 ", "192.0.2.1"), ("http://[bad", None), ("", None),
    (None, None), (5, None), ("x" * 3000, None),
])
def test_the_host_is_found_in_addresses_names_and_urls(value, expected):
    assert host(value) == expected


def test_only_network_addresses_of_the_driver_info_count():
    driver_info = {
        "ipmi_address": "192.0.2.1", "redfish_address": "https://192.0.2.1", "ipmi_target_address": "0x20",
        "deploy_kernel": "http://192.0.2.9/kernel", "ilo_address": None,
    }

    assert hosts(driver_info) == ["192.0.2.1"]
