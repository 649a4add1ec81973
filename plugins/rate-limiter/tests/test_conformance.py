"""The published check of execution gates, with the rate limiter's."""

import pytest

from naiad.backend import Placement
from naiad_config import ModelInstanceGroup, ModelRateLimiter, RateLimiterResource
from naiad_rate_limiter.gates import ResourceGates
from naiad_rate_limiter.limiter import RateLimiter
from naiad_rate_limiter.resources import ResourceLimit
from naiad_testing.gates import check_gates


@pytest.mark.parametrize("limits", [(), ("R:3",), ("R:8",)], ids=["by need", "three units", "enough"])
def test_the_gates_keep_their_contract(limits: tuple[str, ...]) -> None:
    def placement(name: str, units: int) -> Placement:
        needed = (RateLimiterResource(name="R", count=units),)
        return Placement(name, "CPU", 0, ModelInstanceGroup(rate_limiter=ModelRateLimiter(resources=needed)))

    instances = [placement("small", 1), placement("large", 3), placement("another", 1)]

    check_gates(lambda: ResourceGates(RateLimiter([ResourceLimit.read(text) for text in limits])), instances)
