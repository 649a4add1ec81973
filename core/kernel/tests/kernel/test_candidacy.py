"""Who should run the event loop: decided without a clock."""

import pytest

from naiad._kernel.leading.candidacy import MAJORITY, NANOSECONDS_EACH, Briskness, Election

ALLOWED = 100_000


@pytest.fixture
def briskness():
    return Briskness(ALLOWED)


def test_whoever_is_new_has_to_prove_itself(briskness):
    assert not briskness.may_lead(0.0)


def test_a_quick_one_may_lead_after_a_while(briskness):
    executions = 0
    while not briskness.may_lead(0.0):
        briskness.executed(ALLOWED // 10, 1)
        executions += 1

    assert 16 < executions < 128


def test_a_slow_one_never_may(briskness):
    for _ in range(1000):
        briskness.executed(3 * ALLOWED, 1)

    assert not briskness.may_lead(0.0)


def test_who_does_not_lead_may_have_to_wait_for_the_interpreter(briskness):
    for _ in range(1000):
        briskness.executed(3 * ALLOWED // 2, 1)
    assert briskness.may_lead(0.0)

    briskness.appointed()
    for _ in range(100):
        briskness.executed(ALLOWED // 2, 1)
    assert not briskness.is_slow


def test_a_batch_may_take_longer_for_each_of_its_requests(briskness):
    briskness.appointed()

    for _ in range(1000):
        briskness.executed(ALLOWED + 64 * NANOSECONDS_EACH, 64)

    assert not briskness.is_slow


def test_one_slow_execution_is_forgiven_and_several_are_not(briskness):
    briskness.appointed()
    for _ in range(100):
        briskness.executed(ALLOWED // 10, 1)

    briskness.executed(1000 * ALLOWED, 1)
    assert not briskness.is_slow

    for _ in range(32):
        briskness.executed(1000 * ALLOWED, 1)
    assert briskness.is_slow


def prove(briskness):
    for _ in range(100):
        briskness.executed(0, 1)


def test_whoever_was_too_slow_waits_twice_as_long_each_time(briskness):
    waits, now = [], 100.0
    for _ in range(8):
        briskness.bar(now)
        prove(briskness)
        waits.append(next(wait for wait in (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0) if briskness.may_lead(now + wait)))
        now += waits[-1]

    assert waits == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 64.0]


def test_whoever_was_too_slow_has_to_prove_itself_again(briskness):
    prove(briskness)

    briskness.bar(0.0)

    assert not briskness.may_lead(1000.0)


def test_a_long_good_time_is_worth_a_new_beginning(briskness):
    for now in (0.0, 1.0, 3.0):
        briskness.bar(now)

    briskness.bar(1000.0)
    prove(briskness)

    assert briskness.may_lead(1001.0)


def elected(batches, leader=None):
    """Who leads after these batches, each of whoever it names."""
    election = Election()
    for candidate in batches:
        if election.counted(candidate, leader):
            leader = candidate
    return leader


def test_whoever_executes_alone_is_elected():
    assert elected(["a"] * (MAJORITY - 1)) is None
    assert elected(["a"] * MAJORITY) == "a"


def test_of_equals_nobody_leads():
    assert elected(["a", "b", "c"] * 10 * MAJORITY) is None


def test_the_leader_stays_while_it_executes_as_much_as_its_rival():
    assert elected(["a", "b"] * 10 * MAJORITY, leader="a") == "a"


def test_the_leader_stays_against_many_small_ones():
    assert elected(["a", "b", "a", "c", "a", "d"] * 10 * MAJORITY, leader="a") == "a"


def test_a_leader_whom_nobody_asks_any_more_is_followed_soon():
    assert elected(["a"] * 10_000 + ["b"] * MAJORITY, leader="a") == "b"


def test_a_rival_with_most_of_the_batches_takes_over():
    assert elected(["b", "b", "b", "a"] * MAJORITY, leader="a") == "b"
