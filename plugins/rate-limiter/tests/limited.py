"""Slots of models under a rate limiter."""

from naiad_rate_limiter.limiter import RateLimiter
from naiad_rate_limiter.resources import Needs, Pool

R, S = Pool("R", "global"), Pool("S", "cpu")


def slots(limiter: RateLimiter, *needs: Needs) -> list[int]:
    """One slot of a model of its own for each of the needs."""
    return [limiter.enter(limiter.admit([each]), each) for each in needs]
