"""Counting, and what Prometheus gets of it."""

from __future__ import annotations

import threading

import pytest
from prometheus_client import parser

from ironic_rules.metrics import exporter, numbers
from ironic_rules.metrics.catalog import COUNTER, FAMILIES, GAUGE, HISTOGRAM, Family
from ironic_rules.metrics.numbers import Numbers
from tests.walking import walking

SOME = {family.name: family for family in (
    Family("seen", COUNTER, "Seen.", ("what",)), Family("plain", COUNTER, "Plain."),
    Family("level", GAUGE, "Level.", ("of",)),
    Family("took_seconds", HISTOGRAM, "Took.", ("what",), (0.1, 1.0)))}


def shown(counted: Numbers, accept: str = "") -> dict[str, float]:
    """Return the samples of the page, as Prometheus' own parser reads them."""
    _, text = exporter.page_of(exporter.NumbersCollector(counted), "the test")(accept)
    return {sample.name + "".join(f",{key}={value}" for key, value in sorted(sample.labels.items())): sample.value
            for family in parser.text_string_to_metric_families(text.decode()) for sample in family.samples}


def test_the_page_has_what_was_counted():
    counted = Numbers(SOME)
    counted.count("seen", "a\"\n")
    counted.count("seen", "a\"\n", by=2)
    counted.gauge("level", lambda: {("x",): 1.5, ("y",): 1})
    counted.gauge("level", lambda: {("x",): 2})
    for seconds in (0.1, 0.5, 7):
        counted.observe("took_seconds", seconds, "b")

    assert shown(counted) == {
        'ironic_rules_seen_total,what=a"\n': 3, "ironic_rules_plain_total": 0,
        "ironic_rules_level,of=x": 3.5, "ironic_rules_level,of=y": 1,
        "ironic_rules_took_seconds_bucket,le=0.1,what=b": 1, "ironic_rules_took_seconds_bucket,le=1,what=b": 2,
        "ironic_rules_took_seconds_bucket,le=+Inf,what=b": 3, "ironic_rules_took_seconds_count,what=b": 3,
        "ironic_rules_took_seconds_sum,what=b": pytest.approx(7.6)}


def test_openmetrics_is_given_to_those_who_ask_for_it():
    page = exporter.page_of(exporter.NumbersCollector(Numbers(SOME)), "the test")

    content_type, text = page("application/openmetrics-text; version=1.0.0")

    assert content_type.startswith("application/openmetrics-text")
    assert text.endswith(b"# EOF\n")


def test_threads_lose_no_count():
    counted = Numbers(SOME)

    def work() -> None:
        for _ in range(2000):
            counted.count("plain")
            counted.observe("took_seconds", 0.5, "b")

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert dict(counted.counters())[SOME["plain"]] == {(): 16000}
    assert dict(counted.histograms())[SOME["took_seconds"]][("b",)].counts == [0, 16000, 0]


def test_more_labels_than_there_can_be_are_counted_together(monkeypatch):
    monkeypatch.setattr(numbers, "_MOST", 3)
    counted = Numbers(SOME)
    for name in "abcdea":
        counted.count("seen", name)
        counted.observe("took_seconds", 2, name)

    assert dict(counted.counters())[SOME["seen"]] == {("a",): 2, ("b",): 1, ("c",): 1, ("other",): 2}
    assert sum(timed.counts[-1] for timed in dict(counted.histograms())[SOME["took_seconds"]].values()) == 6


@walking("name", ["nosuch", "locks", "rpc_call_duration_seconds"])
def test_what_is_not_in_the_catalog_cannot_be_counted(name):
    with pytest.raises(KeyError):
        Numbers().count(name)


def test_names_and_texts_are_as_prometheus_wants_them():
    for family in FAMILIES.values():
        assert family.text.endswith(".")
        assert not family.name.endswith("_total")
        assert (family.kind == HISTOGRAM) == bool(family.bounds)
        assert family.kind != HISTOGRAM or family.name.endswith("_seconds")
        assert list(family.bounds) == sorted(family.bounds)
