"""Gates: what one callback raises takes no grant from another."""

import pytest

from naiad.backend import Placement
from naiad_config import ModelConfig, ModelInstanceGroup, ModelRateLimiter, RateLimiterResource
from naiad_rate_limiter.gates import ResourceGate, ResourceGates
from naiad_rate_limiter.limiter import RateLimiter
from naiad_rate_limiter.resources import ResourceLimit

NEEDS_ONE = ModelRateLimiter(resources=(RateLimiterResource(name="R", count=1),))


@pytest.fixture
def gate() -> ResourceGate:
    """The gate of a version with two instances, each of which needs one of two units."""
    placements = [Placement(name, "CPU", 0, ModelInstanceGroup(rate_limiter=NEEDS_ONE)) for name in ("m_0", "m_1")]
    gate = ResourceGates(RateLimiter([ResourceLimit.read("R:2")])).admit(ModelConfig(name="m"), placements)
    assert gate is not None
    gate.enter(placements)
    return gate


def leaves(*_: object) -> None:
    raise SystemExit("a callback of the model left")


def test_a_callback_that_raises_takes_no_grant_from_the_slots_behind_it(gate: ResourceGate) -> None:
    granted: list[int] = []

    gate.want(0, leaves)
    gate.want(1, granted.append)
    gate.grant()

    assert granted == [1]


def test_a_wait_whose_callback_raises_keeps_no_other_of_its_execution_from_going_on(gate: ResourceGate) -> None:
    gone_on: list[str] = []
    gate.want(0, lambda slot: gate.started(slot))
    gate.grant()
    first, second = gate.suspend(0), gate.suspend(0)

    first.resume(leaves)
    second.resume(lambda: gone_on.append("second"))

    assert gone_on == ["second"]
