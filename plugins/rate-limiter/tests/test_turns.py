"""The rate limiter: whose turn it is, and what is kept for whom."""

import pytest

from naiad_rate_limiter.limiter import RateLimiter
from naiad_rate_limiter.resources import Needs, ResourceLimit

from .limited import R, S, slots


def turns(limiter: RateLimiter, numbers: list[int], executions: int) -> list[int]:
    """Who executes, one after the other, when all of them always have work."""
    order = []
    for number in numbers:
        limiter.want(number)
    for _ in range(executions):
        (number,) = limiter.grants()
        limiter.started(number)
        order.append(numbers.index(number))
        limiter.release(number)
        limiter.want(number)
    return order


def test_the_fewest_executions_go_first() -> None:
    limiter = RateLimiter()
    three = slots(limiter, *[Needs({R: 1})] * 3)

    assert turns(limiter, three, 9) == [0, 1, 2] * 3


def test_a_priority_of_two_has_half_of_the_turns() -> None:
    limiter = RateLimiter()
    often, seldom = slots(limiter, Needs({R: 1}, 1), Needs({R: 1}, 2))

    order = turns(limiter, [often, seldom], 300)

    assert (order.count(0), order.count(1)) == (200, 100)


@pytest.mark.parametrize("priorities", [(1, 3, 5), (2, 2, 7), (1, 10, 100)])
def test_turns_are_shared_out_as_the_priorities_say(priorities: tuple[int, ...]) -> None:
    limiter = RateLimiter()
    numbers = slots(limiter, *[Needs({R: 1}, priority) for priority in priorities])

    order = turns(limiter, numbers, 5000)

    shares = [1 / priority for priority in priorities]
    for index, share in enumerate(shares):
        assert order.count(index) == pytest.approx(5000 * share / sum(shares), abs=2)


def test_a_newcomer_starts_level_with_those_that_were_there() -> None:
    limiter = RateLimiter()
    old = slots(limiter, Needs({R: 1}), Needs({R: 1}))
    turns(limiter, old, 1000)
    new = slots(limiter, Needs({R: 1}))

    order = turns(limiter, [*old, *new], 30)

    assert order.count(2) == pytest.approx(10, abs=1)


def test_one_with_many_executions_to_make_up_for_does_not_starve_the_others() -> None:
    limiter = RateLimiter()
    busy, idle = slots(limiter, Needs({R: 1}), Needs({R: 1}))
    turns(limiter, [busy], 1000)

    order = turns(limiter, [busy, idle], 50)

    assert 10 <= order.count(0) < 25


def test_a_grant_that_is_not_used_counts_as_no_execution() -> None:
    limiter = RateLimiter()
    first, second = slots(limiter, Needs({R: 1}), Needs({R: 1}))
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


def test_what_the_first_lacks_is_kept_for_it() -> None:
    limiter = RateLimiter([ResourceLimit("R", 4)])
    small, large, other = slots(limiter, Needs({R: 1}), Needs({R: 4}), Needs({R: 1}, 2))
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
    holder, first, behind = slots(limiter, Needs({R: 1}), Needs({R: 1, S: 1}), Needs({S: 2}))
    limiter.want(holder)
    limiter.grants()
    limiter.want(first)
    limiter.want(behind)

    assert limiter.grants() == [behind]
    limiter.release(holder)
    assert limiter.grants() == [first]


def test_who_goes_on_goes_before_who_starts() -> None:
    limiter = RateLimiter()
    rests, starts = slots(limiter, Needs({R: 1}, 5), Needs({R: 1}))
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


def test_a_slot_that_is_forgotten_holds_and_wants_nothing_and_may_come_back() -> None:
    limiter = RateLimiter()
    first, second, third = slots(limiter, *[Needs({R: 1})] * 3)
    for slot in (first, second, third):
        limiter.want(slot)
    limiter.grants()

    limiter.forget(second)
    limiter.forget(first)

    assert limiter.grants() == [third]
    limiter.release(third)
    limiter.want(first)
    assert limiter.grants() == [first]


def test_unloading_gives_back_what_its_slots_hold() -> None:
    limiter = RateLimiter()
    member = limiter.admit([Needs({R: 2})])
    gone = limiter.enter(member, Needs({R: 2}))
    (waits,) = slots(limiter, Needs({R: 2}))
    limiter.want(gone)
    limiter.want(waits)
    limiter.grants()

    limiter.dismiss(member)

    assert limiter.grants() == [waits]


def test_what_computes_goes_on_when_there_is_less_than_it_holds() -> None:
    limiter = RateLimiter()
    large = limiter.admit([Needs({R: 4})])
    two = slots(limiter, Needs({R: 2}), Needs({R: 2}))
    for slot in two:
        limiter.want(slot)
    assert limiter.grants() == two

    limiter.dismiss(large)
    limiter.release(two[0])
    limiter.want(two[0])

    assert limiter.capacity() == {R: 2}
    assert limiter.grants() == []
    limiter.release(two[1])
    assert limiter.grants() == [two[0]]
