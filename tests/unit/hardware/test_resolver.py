import socket
import threading

import pytest

from ironic_rules.hardware import resolver


def resolving():
    """Return the threads that resolve names."""
    return [thread for thread in threading.enumerate() if thread.name == "resolver"]


@pytest.fixture
def names(monkeypatch):
    """Names and their addresses, instead of those of the network. A name that maps to an event waits for it."""
    known, before = {}, resolving()
    monkeypatch.setattr(resolver, "cache", resolver.Cache())

    def getaddrinfo(host, port, **kwargs):
        found = known.get(host)
        if isinstance(found, threading.Event):
            found.wait(60)
            found = None
        if found is None:
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 0)) for address in found]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    yield known
    for found in known.values():
        if isinstance(found, threading.Event):
            found.set()
    # Their log records belong to this test.
    for thread in resolving():
        if thread not in before:
            thread.join()


def test_addresses_are_normalised_and_sorted(names):
    driver_info = {"redfish_address": "https://[2001:DB8::1]:443", "ipmi_address": "192.0.2.1"}

    assert resolver.addresses(driver_info, 1) == ["192.0.2.1", "2001:db8::1"]


def test_names_are_resolved(names):
    names["bmc.example.com"] = ["192.0.2.7", "127.0.0.1"]

    assert resolver.addresses({"redfish_address": "https://bmc.example.com/redfish"}, 5) == ["192.0.2.7"]


def test_a_name_that_does_not_resolve_gives_nothing(names):
    assert resolver.addresses({"ipmi_address": "nosuch", "ilo_address": "192.0.2.1"}, 5) == ["192.0.2.1"]


@pytest.mark.parametrize("name", ["3com-bmc", "7r660", "bmc.7r660", "4.3com.", "0xg", "1e3", "127.1.x", "bmc-3.2a"])
def test_a_name_may_have_a_last_label_that_begins_with_a_digit(names, name):
    names[name] = ["192.0.2.1"]

    assert resolver.addresses({"ipmi_address": name}, 5) == ["192.0.2.1"]


@pytest.mark.parametrize("name", [
    "0x20", "32", "1.2.3", "1.2.3.", "10.0x1F", "0XA", "0x", "010", "192.0.2.300", "bmc.7", "-bmc", "a" * 300,
    "ü"])
def test_what_is_no_host_name_is_not_asked_for_and_the_log_says_so(names, caplog, name):
    names[name] = ["192.0.2.1"]

    assert resolver.addresses({"ipmi_address": name}, 5) == []
    assert "neither an IP address nor a host name" in caplog.text


def test_white_space_around_a_name_does_not_count(names):
    names["bmc"] = ["192.0.2.1"]

    assert resolver.addresses({"ipmi_address": " bmc\n"}, 5) == ["192.0.2.1"]


def test_a_slow_name_server_costs_the_timeout_and_not_the_other_names(names):
    names["slow"] = threading.Event()
    names["quick"] = ["192.0.2.1"]

    assert resolver.addresses({"ipmi_address": "slow", "ilo_address": "quick"}, 0.2) == ["192.0.2.1"]


def test_slow_names_leave_no_thread_that_holds_up_the_end(names):
    names["slow"] = threading.Event()

    resolver.addresses({"ipmi_address": "slow"}, 0.05)
    waiting = resolving()

    assert waiting
    assert [thread for thread in waiting if not thread.daemon] == []


def test_an_empty_driver_info_has_no_addresses():
    assert resolver.addresses({}, 1) == []


@pytest.fixture
def clock(monkeypatch):
    """The time of the cache, in seconds."""
    now = [1000.0]
    monkeypatch.setattr(resolver.time, "monotonic", lambda: now[0])
    return now


def test_an_answer_is_kept_for_a_while_and_then_asked_for_again(clock):
    cache = resolver.Cache()
    cache.put("bmc", {"192.0.2.1"})
    cache.put("nosuch", set())

    assert (cache.get("bmc"), cache.get("nosuch"), cache.get("other")) == (("192.0.2.1",), (), None)
    clock[0] += resolver.KEEP_NOTHING_S
    assert (cache.get("bmc"), cache.get("nosuch")) == (("192.0.2.1",), None)
    clock[0] += resolver.KEEP_S
    assert cache.get("bmc") is None


def test_the_cache_is_bounded_and_loses_the_oldest():
    cache = resolver.Cache()
    for number in range(resolver.MAX_KEPT + 1):
        cache.put(f"bmc-{number}", {"192.0.2.1"})

    assert (cache.get("bmc-0"), cache.get("bmc-1")) == (None, ("192.0.2.1",))


@pytest.mark.parametrize("known", [["192.0.2.7"], None])
def test_a_name_is_asked_for_once(names, monkeypatch, known):
    names["bmc"] = known
    first = resolver.addresses({"ipmi_address": "bmc"}, 5)
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **kwargs: pytest.fail("asked again"))

    assert resolver.addresses({"ipmi_address": "bmc", "ilo_address": "bmc"}, 5) == first == (known or [])
