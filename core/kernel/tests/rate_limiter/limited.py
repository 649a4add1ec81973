"""Places of models under a rate limiter."""

from naiad._kernel.rate_limiter.limiter import RateLimiter
from naiad._kernel.rate_limiter.resources import Needs, Pool

R, S = Pool("R", "global"), Pool("S", "cpu")


def places(limiter: RateLimiter, *needs: Needs) -> list[int]:
    """One place of a model of its own for each of the needs."""
    return [limiter.enter(limiter.admit([each]), each) for each in needs]
