from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ironic_rules.pxe_filter import hostsdir, plan
from ironic_rules.pxe_filter.plan import GONE, UNKNOWN_FILE, Change, Layout, Plan
from tests import strategies
from tests.walking import walking

A, B, C = "52:54:00:00:00:01", "52:54:00:00:00:02", "52:54:00:00:00:03"


def columns(pairs):
    """Return (address, node id) pairs as two lists."""
    return [address for address, _ in pairs], [node_id for _, node_id in pairs]


def filled(ports, inspecting=(), files=0, **options):
    made = Plan(Layout(files), **options)
    replace(made, ports, inspecting)
    return made


def replace(made, ports, inspecting, keep=()):
    """Replace the plan as a full reading does."""
    made.begin(inspecting, keep)
    made.take_over(different(made, ports))


def different(made, ports, refused=None):
    """Return the files whose addresses are not these, as after a full reading."""
    comparison = made.compare(set() if refused is None else refused)
    comparison.take(columns(ports))
    if comparison.needs_again():
        comparison.take(columns(ports))
    return comparison.different


def said(made):
    """Return what all files say: address -> allowed."""
    return {plan.WILDCARD: made.allows_unknown} | {
        mac: allowed for name in made.files for mac, allowed in made.verdicts(name)}


@walking("bad", [
    "", "52:54:00:00:00:01\n", "../x", "*:*:*:*:*:*", "01:00:5e:00:00:01", "ff:ff:ff:ff:ff:ff", "00:00:00:00:00:00",
    "52:54:00:00:00", "52:54:00:00:00:01:02", "52:54:00:00:00:0g", "５2:54:00:00:00:01"])
def test_what_is_no_unicast_address_is_refused(bad):
    refused = set()

    assert different(Plan(Layout(8)), [(bad, 1)], refused) == {}
    assert different(Plan(Layout(0)), [(bad, 1)], refused) == {}
    assert plan.usable(bad, refused) is None
    assert refused == {bad}


@walking("bad", [
    ["01:00:5e:00:00:01"], ["00:00:00:00:00:00"], ["52:54:00:00:00:1 "], ["*:*:*:*:*:*"], ["５2:54:00:00:00:01"],
    ["52:54:00:00:00", "52:54:00:00:00:01:02"]])
def test_one_bad_address_keeps_none_of_its_page_out(bad):
    refused = set()
    page = [A, *bad, "52-54-00-00-00-02", C]

    assert plan.normalized(page, range(len(page)), refused) == ([A, B, C], [0, len(page) - 2, len(page) - 1])
    assert refused == set(bad)
    assert plan.normalized([A, C], [1, 3], refused) == ([A, C], [1, 3])


@walking("text", ["52:54:00:AA:BB:01", "52-54-00-aa-bb-01"])
def test_other_spellings_become_the_one(text):
    assert plan.usable(text, set()) == "52:54:00:aa:bb:01"


def test_addresses_are_spread_evenly_and_neighbours_stay_together():
    layout = Layout(64)
    macs = [f"52:54:00:{number >> 16:02x}:{number >> 8 & 255:02x}:{number & 255:02x}" for number in range(32000)]
    files = different(Plan(layout), [(mac, 1) for mac in macs])

    assert len(files) == 64
    assert max(map(len, files.values())) < 2 * 32000 / 64
    assert layout.file_of("52:54:00:00:00:10") == layout.file_of("52:54:00:00:00:1f")


@pytest.mark.slow
@given(st.integers(0, 0xffffffffff), st.integers(0, 70))
@settings(max_examples=strategies.wanted(80), deadline=None)
def test_arranging_and_looking_up_agree(number, files):
    mac = "02:" + ":".join(f"{byte:02x}" for byte in number.to_bytes(5, "big"))
    layout = Layout(files)

    assert different(Plan(layout), [(mac, 7)]) == {layout.file_of(mac): {mac: 7}}


@walking("name, ours", [
    ("unknown_hosts_filter", True), ("macs-0000", True), ("macs-03ff", True), ("52:54:00:00:00:01", True),
    ("52:54:00:00:00:01\n", True), ("52-54-00-00-00-01", True), ("macs-00000", False), ("macs-000g", False),
    ("printers", False), (".macs-0000", False), ("", False)])
def test_the_names_of_our_files(name, ours):
    assert hostsdir.is_ours(name) is ours


def test_lines_of_a_file():
    text = f"{A}\n{B},ignore\n*:*:*:*:*:*\n# {C}\n{C},192.0.2.1\nff:ff:ff:ff:ff:ff\nid:ff:00,ignore\nid:*\nid:f\n"

    assert hostsdir.addresses_in(text) == [A, B, "id:ff:00"]


@walking("files", [0, 1, 64])
def test_nodes_on_inspection_are_let_in(files):
    made = filled([(A, 1), (B, 2)], {2}, files)

    assert said(made) == {A: False, B: True, plan.WILDCARD: True}
    assert len(made) == 2


def test_only_files_with_something_new_are_named():
    made = filled([(A, 1), (B, 2)], {2})

    assert made.update([], [(A, 1)], {1, 2}) == {A}
    assert made.update([], [(A, 1), (B, 2)], set()) == {A, B, UNKNOWN_FILE}
    assert made.update([], [], set()) == set()


def test_an_address_that_loses_its_port_goes_with_the_unknown_ones():
    made = filled([(A, 1), (B, 2)], {2})

    assert made.update([1], [], {2}) == {A}
    assert said(made) == {A: True, B: True, plan.WILDCARD: True}
    assert made.update([], [(B, 2)], set()) == {A, B, UNKNOWN_FILE}
    assert said(made) == {A: False, B: False, plan.WILDCARD: False}
    assert made.gone_macs() == [A]


def test_an_address_that_a_full_reading_does_not_find_goes_with_the_unknown_ones():
    made = filled([(A, 1), (B, 2)], {2})

    replace(made, [(B, 2)], {2})

    assert said(made) == {A: True, B: True, plan.WILDCARD: True}
    assert made.gone_macs() == [A]


def test_gone_addresses_can_be_dropped():
    made = filled([(A, 1), (B, 2)])
    made.update([1], [], ())

    assert made.forget_gone() == {A}
    assert not made.has_file(A)
    assert made.gone == 0


def test_a_port_may_move_between_nodes_that_both_changed():
    made = filled([(A, 1), (B, 2)], {2})

    made.update([1, 2], [(A, 2), (B, 1)], {2})

    assert said(made) == {A: True, B: False, plan.WILDCARD: True}
    assert made.gone == 0


def test_messages_win_until_the_database_says_something_new():
    made = filled([(A, 1), (B, 2)])
    made.tell([A], [])
    made.update([], [(B, 2)], {2})
    assert said(made) == {A: True, B: True, plan.WILDCARD: True}

    made.update([1], [(A, 1)], {2})
    assert said(made)[A] is False


def test_messages_of_the_meantime_are_kept():
    made = filled([(A, 1), (B, 2)])
    made.tell([A, B], [])

    made.forget_told(keep={B})
    assert said(made) == {A: False, B: True, plan.WILDCARD: True}
    replace(made, [(A, 1), (B, 2)], (), keep={B})
    assert made.told == {B: True}
    replace(made, [(A, 1), (B, 2)], ())
    assert said(made) == {A: False, B: False, plan.WILDCARD: False}


def test_an_address_that_a_message_allows_and_denies_is_denied():
    made = filled([(A, 1)])
    made.tell([A], [A])

    assert said(made)[A] is False


@walking("options, idle, busy", [
    ({}, False, True), ({"discovery": True}, True, True), ({"deny_unknown": True}, False, False),
    ({"deny_unknown": True, "discovery": True}, False, False)])
def test_unknown_addresses(options, idle, busy):
    assert filled([], **options).allows_unknown is idle
    assert filled([], {1}, **options).allows_unknown is busy


def test_changes_say_whose_they_are():
    made = filled([(A, 1), (B, 2)], {2})
    made.take_changes()

    made.update([1], [], {2})
    made.update([], [(B, 2)], set())
    made.tell([C], [])

    assert made.take_changes() == [Change(A, True, GONE), Change(B, False, 2), Change(C, True, GONE)]
    assert made.take_changes() == []


@pytest.mark.slow
@given(st.lists(st.tuples(st.sampled_from([A, B, C]), st.integers(1, 3)), unique_by=lambda pair: pair[0]),
       st.sets(st.integers(1, 3)), st.lists(st.tuples(st.sampled_from([A, B, C]), st.integers(1, 3)),
                                            unique_by=lambda pair: pair[0]), st.sets(st.integers(1, 3)),
       st.sampled_from([0, 1, 5]))
@settings(max_examples=strategies.wanted(80), deadline=None)
def test_small_steps_lead_where_a_full_reading_does(before, inspecting, after, inspecting_then, files):
    stepwise, whole, sliced = (filled(before, inspecting, files) for _ in range(3))
    changed = {node for _, node in set(before) ^ set(after)}
    was, was_open = {name: stepwise.verdicts(name) for name in stepwise.files}, stepwise.allows_unknown

    dirty = stepwise.update(changed, [(mac, node) for mac, node in after
                                      if node in changed | (inspecting ^ inspecting_then)], inspecting_then)
    replace(whole, after, inspecting_then)

    assert said(stepwise) == said(whole)
    sliced.begin(inspecting_then)
    sliced.take_over(different(sliced, after))
    assert said(sliced) == said(whole)
    assert different(sliced, after) == {}
    for made in (stepwise, whole, sliced):
        assert {node: set(made.macs_of(node)) for node in (1, 2, 3)} == {
            node: {mac for mac, owner in after if owner == node} for node in (1, 2, 3)}
    assert {name for name in stepwise.files if stepwise.verdicts(name) != was.get(name, [])} <= dirty
    assert (UNKNOWN_FILE in dirty) == (stepwise.allows_unknown != was_open)


@walking("files", [0, 8])
def test_the_first_reading_spreads_ports_as_every_other_does(files):
    ports = [(f"52:54:00:00:{number % 7:02x}:{number:02x}", 1 + number // 3) for number in range(100)]
    ports += [("52:54:00:00:00:00", 99), ("id:00:04:ab", 7)]  # the first one again, on another node

    first = Plan(Layout(files)).compare(set())
    first.take(columns(ports[:60]))
    first.take(columns(ports[60:-1]), [ports[-1]])

    assert not first.needs_again()
    wanted = {}
    for mac, node_id in ports:
        wanted.setdefault(Layout(files).file_of(mac), {})[mac] = node_id
    assert first.different == wanted


def test_new_files_are_indexed_when_their_nodes_are_asked_for():
    made = filled([(A, 1), (B, 1), (C, 2)])
    made.tell([], ["52:54:00:00:00:09"])

    assert made.index(1)
    assert sorted(made.macs_of(1)) == [A, B]
    assert not made.index(1)
    assert made.macs_of(2) == (C,)
    assert made.macs_of(GONE) == ()

    made.update([2], [(C, 1)], set())
    assert sorted(made.macs_of(1)) == [A, B, C]
    assert made.macs_of(2) == ()


def test_addresses_that_move_while_their_file_is_not_indexed_are_indexed_once():
    made = filled([(A, 1), (B, 2)], files=1)

    made.take_over({made.layout.file_of(A): {A: 2, B: 2}})

    assert sorted(made.macs_of(2)) == [A, B]
    assert made.macs_of(1) == ()


def test_verdicts_are_a_sequence_of_pairs():
    verdicts = plan.Verdicts([A, B, C], [B])

    assert list(verdicts) == [(A, False), (B, True), (C, False)] == verdicts
    assert (len(verdicts), verdicts[1], verdicts[-1]) == (3, (B, True), (C, False))
    assert verdicts[1:] == [(B, True), (C, False)]
    assert verdicts != [(A, False)]
    assert (B, True) in verdicts
    assert (B, False) not in verdicts
    assert bool(plan.Verdicts([], [])) is False
