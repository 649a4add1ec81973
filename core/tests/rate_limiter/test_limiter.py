"""The rate limiter: whose turn it is, what is kept for whom, and what is refused."""

import pytest

from naiad._kernel.rate_limiter.limiter import RateLimiter
from naiad._kernel.rate_limiter.resources import Needs, Pool, ResourceLimit, needs_of
from naiad.backend import Placement
from naiad.config import ModelInstanceGroup, ModelRateLimiter, RateLimiterResource
from naiad.errors import InvalidArgumentError

R, S = Pool("R", "global"), Pool("S", "cpu")


def places(limiter: RateLimiter, *needs: Needs) -> list[int]:
    """One place of a model of its own for each of the needs."""
    return [limiter.enter(limiter.admit([each]), each) for each in needs]


def turns(limiter: RateLimiter, numbers: list[int], executions: int) -> list[int]:
    """Who executes, one after the other, when all of them always have work."""
    found = []
    for number in numbers:
        limiter.want(number)
    for _ in range(executions):
        (number,) = limiter.grants()
        limiter.started(number)
        found.append(numbers.index(number))
        limiter.release(number)
        limiter.want(number)
    return found


def test_a_place_starts_at_once_where_there_is_enough() -> None:
    limiter = RateLimiter([ResourceLimit("R", 2)])
    first, second, third = places(limiter, *[Needs({R: 1})] * 3)

    for place in (first, second, third):
        limiter.want(place)

    assert limiter.grants() == [first, second]
    assert limiter.in_use(R) == 2
    assert limiter.waiting_for(R) == 1


def test_what_is_released_goes_to_the_one_that_waits() -> None:
    limiter = RateLimiter()
    first, second = places(limiter, Needs({R: 1}), Needs({R: 1}))
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
    told = ["R:3", "R:2", "R:5:0", "R:4:0", "R:7:1", "R:8:9"]
    limiter = RateLimiter([ResourceLimit.read(text) for text in told])

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

    told = 'Resource "R" is present as both global and device-specific resource in the model configuration.'
    assert told in str(refused.value)


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


# Turns


def test_the_fewest_executions_go_first() -> None:
    limiter = RateLimiter()
    three = places(limiter, *[Needs({R: 1})] * 3)

    assert turns(limiter, three, 9) == [0, 1, 2] * 3


def test_a_priority_of_two_has_half_of_the_turns() -> None:
    limiter = RateLimiter()
    often, seldom = places(limiter, Needs({R: 1}, 1), Needs({R: 1}, 2))

    order = turns(limiter, [often, seldom], 300)

    assert (order.count(0), order.count(1)) == (200, 100)


@pytest.mark.parametrize("priorities", [(1, 3, 5), (2, 2, 7), (1, 10, 100)])
def test_turns_are_shared_out_as_the_priorities_say(priorities: tuple[int, ...]) -> None:
    limiter = RateLimiter()
    numbers = places(limiter, *[Needs({R: 1}, priority) for priority in priorities])

    order = turns(limiter, numbers, 5000)

    shares = [1 / priority for priority in priorities]
    for index, share in enumerate(shares):
        assert order.count(index) == pytest.approx(5000 * share / sum(shares), abs=2)


def test_a_newcomer_starts_level_with_those_that_were_there() -> None:
    limiter = RateLimiter()
    old = places(limiter, Needs({R: 1}), Needs({R: 1}))
    turns(limiter, old, 1000)
    new = places(limiter, Needs({R: 1}))

    order = turns(limiter, [*old, *new], 30)

    assert order.count(2) == pytest.approx(10, abs=1)


def test_one_with_many_executions_to_make_up_for_does_not_starve_the_others() -> None:
    limiter = RateLimiter()
    busy, idle = places(limiter, Needs({R: 1}), Needs({R: 1}))
    turns(limiter, [busy], 1000)

    order = turns(limiter, [busy, idle], 50)

    assert 10 <= order.count(0) < 25


def test_a_grant_that_is_not_used_counts_as_no_execution() -> None:
    limiter = RateLimiter()
    first, second = places(limiter, Needs({R: 1}), Needs({R: 1}))
    limiter.want(first)
    limiter.grants()
    limiter.release(first)
    limiter.want(second)
    limiter.want(first)

    (turn,) = limiter.grants()
    limiter.started(turn)
    limiter.release(turn)
    limiter.want(turn)

    assert turn == second
    assert limiter.grants() == [first]


# What is kept


def test_what_the_first_lacks_is_kept_for_it() -> None:
    limiter = RateLimiter([ResourceLimit("R", 4)])
    small, large, other = places(limiter, Needs({R: 1}), Needs({R: 4}), Needs({R: 1}, 2))
    limiter.want(small)
    limiter.grants()
    limiter.started(small)
    limiter.want(large)
    assert limiter.grants() == []

    limiter.want(other)

    assert limiter.grants() == []
    limiter.release(small)
    assert limiter.grants() == [large]


def test_those_behind_take_what_the_first_does_not_need() -> None:
    limiter = RateLimiter([ResourceLimit("S", 3)])
    holder, first, behind = places(limiter, Needs({R: 1}), Needs({R: 1, S: 1}), Needs({S: 2}))
    limiter.want(holder)
    limiter.grants()
    limiter.want(first)
    limiter.want(behind)

    assert limiter.grants() == [behind]
    limiter.release(holder)
    assert limiter.grants() == [first]


def test_who_goes_on_goes_before_who_starts() -> None:
    limiter = RateLimiter()
    rests, starts = places(limiter, Needs({R: 1}, 5), Needs({R: 1}))
    limiter.want(rests)
    limiter.grants()
    limiter.started(rests)
    limiter.release(rests)
    limiter.want(starts)
    (between,) = limiter.grants()
    limiter.want(rests, resumes=True)
    limiter.release(between)
    limiter.want(between)

    assert limiter.grants() == [rests]


def test_a_place_that_is_forgotten_holds_and_wants_nothing_and_may_come_back() -> None:
    limiter = RateLimiter()
    first, second, third = places(limiter, *[Needs({R: 1})] * 3)
    for place in (first, second, third):
        limiter.want(place)
    limiter.grants()

    limiter.forget(second)
    limiter.forget(first)

    assert limiter.grants() == [third]
    limiter.release(third)
    limiter.want(first)
    assert limiter.grants() == [first]


def test_unloading_gives_back_what_its_places_hold() -> None:
    limiter = RateLimiter()
    member = limiter.admit([Needs({R: 2})])
    gone = limiter.enter(member, Needs({R: 2}))
    (waits,) = places(limiter, Needs({R: 2}))
    limiter.want(gone)
    limiter.want(waits)
    limiter.grants()

    limiter.dismiss(member)

    assert limiter.grants() == [waits]


def test_what_computes_goes_on_when_there_is_less_than_it_holds() -> None:
    limiter = RateLimiter()
    large = limiter.admit([Needs({R: 4})])
    two = places(limiter, Needs({R: 2}), Needs({R: 2}))
    for place in two:
        limiter.want(place)
    assert limiter.grants() == two

    limiter.dismiss(large)
    limiter.release(two[0])
    limiter.want(two[0])

    assert limiter.capacity() == {R: 2}
    assert limiter.grants() == []
    limiter.release(two[1])
    assert limiter.grants() == [two[0]]
