"""Numbers in Prometheus' formats, with the library of the extra ``metrics``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from ironic_rules.exceptions import ConfigurationError
from ironic_rules.metrics.catalog import PREFIX
from ironic_rules.metrics.numbers import Numbers
from ironic_rules.text import installation_of

#: Returns content type and text of the metrics, for the value of a header ``Accept``.
Page: TypeAlias = Callable[[str], tuple[str, bytes]]


class NumbersCollector:
    """Gives the library the numbers of a process."""

    def __init__(self, numbers: Numbers) -> None:
        self._numbers = numbers

    def collect(self) -> Iterator[Any]:
        """Yield the current metrics; the library calls this for each request."""
        from prometheus_client import core

        for family, values in self._numbers.counters():
            counter = core.CounterMetricFamily(PREFIX + family.name, family.text, labels=family.labels)
            for labels, value in values.items():
                counter.add_metric(labels, value)
            yield counter
        for family, values in self._numbers.gauges():
            gauge = core.GaugeMetricFamily(PREFIX + family.name, family.text, labels=family.labels)
            for labels, value in values.items():
                gauge.add_metric(labels, value)
            yield gauge
        for family, timed in self._numbers.histograms():
            histogram = core.HistogramMetricFamily(PREFIX + family.name, family.text, labels=family.labels)
            for labels, times in timed.items():
                buckets, total = [], 0
                for bound, number in zip((*family.bounds, None), times.counts, strict=True):
                    total += number
                    buckets.append(("+Inf" if bound is None else f"{bound:g}", float(total)))
                histogram.add_metric(labels, buckets, times.sum_s)
            yield histogram


def page_of(collector: Any, needed_by: str) -> Page:
    """Return the function that makes the page of a collector.

    :param collector: has a method ``collect`` that yields metrics
    :param needed_by: the option that needs the library, for the error
    :raises ConfigurationError: the library is not installed
    """
    try:
        import prometheus_client
        from prometheus_client import exposition
    except ImportError as exc:
        raise ConfigurationError(f"{needed_by} needs prometheus_client; {installation_of('metrics')}") from exc
    registry = prometheus_client.CollectorRegistry(auto_describe=False)
    registry.register(collector)

    def page(accept: str) -> tuple[str, bytes]:
        encode, content_type = exposition.choose_encoder(accept)
        return content_type, encode(registry)

    return page
