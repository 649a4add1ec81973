"""The rate limiter: what there is, what instances need of it, and what is refused."""

import pytest

from naiad.backend import Placement
from naiad.errors import InvalidArgumentError
from naiad_config import ModelInstanceGroup, ModelRateLimiter, RateLimiterResource
from naiad_rate_limiter.limiter import RateLimiter
from naiad_rate_limiter.resources import Needs, Pool, ResourceLimit, needs_of

from .limited import R, S, slots


def test_a_slot_starts_at_once_where_there_is_enough() -> None:
    limiter = RateLimiter([ResourceLimit("R", 2)])
    first, second, third = slots(limiter, *[Needs({R: 1})] * 3)

    for slot in (first, second, third):
        limiter.want(slot)

    assert limiter.grants() == [first, second]
    assert limiter.in_use(R) == 2
    assert limiter.waiting_for(R) == 1


def test_what_is_released_goes_to_the_one_that_waits() -> None:
    limiter = RateLimiter()
    first, second = slots(limiter, Needs({R: 1}), Needs({R: 1}))
    limiter.want(first)
    limiter.want(second)
    limiter.grants()

    limiter.release(first)

    assert limiter.grants() == [second]


def test_without_limits_there_is_what_the_largest_needs() -> None:
    limiter = RateLimiter()

    large = limiter.admit([Needs({R: 1}), Needs({R: 4, S: 2})])
    limiter.admit([Needs({R: 3})])
    before = dict(limiter.capacity())
    limiter.dismiss(large)

    assert before == {R: 4, S: 2}
    assert limiter.capacity() == {R: 3}


def test_an_explicit_limit_stays() -> None:
    limiter = RateLimiter([ResourceLimit("R", 9)])

    limiter.dismiss(limiter.admit([Needs({R: 4})]))
    limiter.admit([Needs({R: 1})])

    assert limiter.capacity() == {R: 9}


@pytest.mark.parametrize(
    ("pool", "expected"),
    [
        (Pool("R", "global"), 8),
        (Pool("R", "gpu_0"), 5),
        (Pool("R", "gpu_1"), 7),
        (Pool("R", "gpu_2"), 3),
        (Pool("R", "cpu"), 5),
        (Pool("T", "gpu_0"), 1),
    ],
    ids=lambda each: f"{each.resource} {each.device}" if isinstance(each, Pool) else "",
)
def test_limits_hold_by_device_and_the_largest_counts(pool: Pool, expected: int) -> None:
    texts = ["R:3", "R:2", "R:5:0", "R:4:0", "R:7:1", "R:8:9"]
    limiter = RateLimiter([ResourceLimit.read(text) for text in texts])

    limiter.admit([Needs({pool: 1})])

    assert limiter.capacity() == {pool: expected}


@pytest.mark.parametrize("text", ["", "R", "R:", "R:x", "R:1:x", "R:1:2:3", ":3", "R:-1", "R:0", "R:1:-1", "R:1.5"])
def test_what_is_no_limit_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"must be NAME:COUNT|at least 1"):
        ResourceLimit.read(text)


def test_a_limit_that_is_too_small_is_refused_and_changes_nothing() -> None:
    limiter = RateLimiter([ResourceLimit("R", 2)])
    limiter.admit([Needs({R: 1})])

    with pytest.raises(InvalidArgumentError) as refused:
        limiter.admit([Needs({R: 3})])

    assert (
        'Resource count for "R" is limited to 2 which will prevent scheduling of one or more model instances, the '
        "minimum required count is 3" in str(refused.value)
    )
    limiter.admit([Needs({R: 2})])


def test_a_resource_cannot_be_counted_globally_and_on_a_device() -> None:
    limiter = RateLimiter()
    limiter.admit([Needs({Pool("R", "gpu_0"): 1})])

    with pytest.raises(InvalidArgumentError) as refused:
        limiter.admit([Needs({Pool("R", "global"): 1})])

    message = 'Resource "R" is present as both global and device-specific resource in the model configuration.'
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("kind", "device", "pool"), [("CPU", 0, "cpu"), ("MODEL", 0, "cpu"), ("GPU", 0, "gpu_0"), ("GPU", 3, "gpu_3")]
)
def test_instances_need_units_of_their_own_device_and_of_what_is_global(kind: str, device: int, pool: str) -> None:
    resources = (
        RateLimiterResource(name="R", count=2),
        RateLimiterResource(name="G", count=1, global_=True),
        RateLimiterResource(name="nothing", count=0),
    )
    group = ModelInstanceGroup(name="g", rate_limiter=ModelRateLimiter(resources=resources, priority=4))

    needs = needs_of(Placement("g_0", kind, device, group))

    assert needs == Needs({Pool("R", pool): 2, Pool("G", "global"): 1}, 4)


def test_a_group_without_a_rate_limiter_needs_nothing_and_priority_0_is_1() -> None:
    plain = needs_of(Placement("g_0", "CPU", 0, ModelInstanceGroup(name="g")))
    listed = ModelInstanceGroup(name="g", rate_limiter=ModelRateLimiter())

    assert plain == needs_of(Placement("g_0", "CPU", 0, listed)) == Needs({}, 1)


def test_the_end_of_a_wait_gives_no_units_back() -> None:
    limiter = RateLimiter([ResourceLimit("R", 1)])
    holder, waiter, third = slots(limiter, *[Needs({R: 1})] * 3)
    limiter.want(holder)
    limiter.want(waiter)
    limiter.grants()

    limiter.forget(waiter)
    limiter.want(third)

    assert limiter.grants() == []
    assert limiter.in_use(R) == 1


def test_the_end_of_a_wait_ends_its_reservation() -> None:
    limiter = RateLimiter([ResourceLimit("R", 2)])
    holder, large, small = slots(limiter, Needs({R: 1}), Needs({R: 2}), Needs({R: 1}, priority=9))
    for slot in (holder, large, small):
        limiter.want(slot)
    before = limiter.grants()

    limiter.forget(large)

    assert (before, limiter.grants()) == ([holder], [small])


def test_a_slot_that_holds_its_units_does_not_wait_for_more() -> None:
    limiter = RateLimiter()
    (slot,) = slots(limiter, Needs({R: 1}))
    limiter.want(slot)
    limiter.grants()

    limiter.want(slot)
    limiter.release(slot)

    assert limiter.grants() == []


def test_a_version_that_needs_more_units_lets_a_waiting_slot_go() -> None:
    limiter = RateLimiter()
    holder, waiter = slots(limiter, Needs({R: 1}), Needs({R: 1}))
    limiter.want(holder)
    limiter.want(waiter)
    before = limiter.grants()

    limiter.admit([Needs({R: 2})])

    assert (before, limiter.grants()) == ([holder], [waiter])


def test_a_new_slot_is_not_level_with_those_of_a_version_that_is_gone() -> None:
    limiter = RateLimiter()
    needs = Needs({R: 1})
    (busy,) = slots(limiter, needs)
    idle = limiter.admit([needs])
    limiter.enter(idle, needs)
    for _ in range(3):
        limiter.want(busy)
        limiter.grants()
        limiter.started(busy)
        limiter.release(busy)
    limiter.dismiss(idle)

    (new,) = slots(limiter, needs)
    turns = []
    for _ in range(4):
        for slot in (busy, new):
            limiter.want(slot)
        turns += limiter.grants()
        limiter.started(turns[-1])
        limiter.release(turns[-1])

    assert turns == [busy, new, busy, new]


def test_versions_that_are_gone_leave_nothing_behind() -> None:
    limiter = RateLimiter()

    for count in range(1, 10):
        needs = Needs({R: count})
        member = limiter.admit([needs])
        limiter.want(limiter.enter(member, needs))
        limiter.dismiss(member)

    assert (limiter.capacity(), limiter.grants(), len(limiter._queues)) == ({}, [], 0)
