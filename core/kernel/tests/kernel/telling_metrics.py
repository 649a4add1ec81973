"""What a server tells of itself in metrics, as tests look at it: by name and labels."""

from naiad import Server
from naiad.metrics import Distribution, Quantiles

ONE = frozenset({("model", "m"), ("version", "1")})
Value = float | Distribution | Quantiles
Told = dict[str, dict[frozenset[tuple[str, str]], Value]]


def told(server: Server) -> Told:
    """Every value by name and labels, each of which must be told once."""
    collected = server.metrics.collect()
    values = {family.name: {frozenset(each.labels): each.value for each in family.samples} for family in collected}
    assert len(values) == len(collected)
    assert sum(map(len, values.values())) == sum(len(family.samples) for family in collected)
    return values


def with_reason(reason: str) -> frozenset[tuple[str, str]]:
    return ONE | {("reason", reason)}
