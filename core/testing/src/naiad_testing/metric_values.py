"""Metrics of a server by name and labels, as tests compare them."""

from naiad import Server
from naiad_kit.metrics import Distribution, MetricFamily, MetricsApi, Quantiles

Labels = frozenset[tuple[str, str]]
Values = dict[str, dict[Labels, float | Distribution | Quantiles]]

ONE: Labels = frozenset({("model", "m"), ("version", "1")})
"""The labels of version 1 of model `m`."""


def collect(server: Server) -> list[MetricFamily]:
    """Every metric as it stands."""
    return server.service(MetricsApi).collect()


def values_of(server: Server) -> Values:
    """Every metric value by name and labels. Raises AssertionError where one occurs twice."""
    collected = collect(server)
    values = {family.name: {frozenset(each.labels): each.value for each in family.samples} for family in collected}
    if sum(map(len, values.values())) != sum(len(family.samples) for family in collected):
        raise AssertionError("a metric has two values with the same labels")
    return values


def with_reason(reason: str) -> Labels:
    """The labels of version 1 of model `m`, with a reason."""
    return ONE | {("reason", reason)}
