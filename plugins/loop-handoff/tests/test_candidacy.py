"""Which worker should run the event loop: decided without a clock."""

import pytest

from naiad_loop_handoff.candidacy import MAJORITY, Allowance, ExecutionCost, MajorityVote

ALLOWED, EACH = 100_000, 5_000


@pytest.fixture
def cost():
    return ExecutionCost(Allowance(ALLOWED, EACH))


def test_a_new_candidate_has_to_prove_itself(cost):
    assert not cost.may_lead(0.0)


def test_a_quick_one_may_lead_after_a_while(cost):
    executions = 0
    while not cost.may_lead(0.0):
        cost.executed(ALLOWED // 10, 1)
        executions += 1

    assert 16 < executions < 128


def test_a_slow_one_never_may(cost):
    for _ in range(1000):
        cost.executed(3 * ALLOWED, 1)

    assert not cost.may_lead(0.0)


def test_a_candidate_may_have_to_wait_for_the_interpreter(cost):
    for _ in range(1000):
        cost.executed(3 * ALLOWED // 2, 1)
    assert cost.may_lead(0.0)

    cost.appointed()
    for _ in range(100):
        cost.executed(ALLOWED // 2, 1)
    assert not cost.is_slow


def test_a_batch_may_take_longer_for_each_of_its_requests(cost):
    cost.appointed()

    for _ in range(1000):
        cost.executed(ALLOWED + 64 * EACH, 64)

    assert not cost.is_slow


def test_no_batch_is_so_large_that_it_may_take_a_millisecond(cost):
    cost.appointed()

    for _ in range(1000):
        cost.executed(1_000_000, 1000)

    assert cost.is_slow


def test_one_slow_execution_is_forgiven_and_several_are_not(cost):
    cost.appointed()
    for _ in range(100):
        cost.executed(ALLOWED // 10, 1)

    cost.executed(1000 * ALLOWED, 1)
    assert not cost.is_slow

    for _ in range(32):
        cost.executed(1000 * ALLOWED, 1)
    assert cost.is_slow


def prove(cost):
    for _ in range(100):
        cost.executed(0, 1)


def test_a_leader_that_was_too_slow_waits_twice_as_long_each_time(cost):
    waits, now = [], 100.0
    for _ in range(8):
        cost.bar(now)
        prove(cost)
        waits.append(next(wait for wait in (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0) if cost.may_lead(now + wait)))
        now += waits[-1]

    assert waits == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 64.0]


def test_a_leader_that_was_too_slow_has_to_prove_itself_again(cost):
    prove(cost)

    cost.bar(0.0)

    assert not cost.may_lead(1000.0)


def test_a_long_good_time_is_worth_a_new_beginning(cost):
    for now in (0.0, 1.0, 3.0):
        cost.bar(now)

    cost.bar(1000.0)
    prove(cost)

    assert cost.may_lead(1001.0)


def elected(batches, leader=None):
    """The worker that leads after these batches, each executed by the worker that it names."""
    vote = MajorityVote()
    for candidate in batches:
        if vote.counted(candidate, leader):
            leader = candidate
    return leader


def test_a_worker_that_executes_alone_leads():
    assert elected(["a"] * (MAJORITY - 1)) is None
    assert elected(["a"] * MAJORITY) == "a"


def test_of_equals_none_leads():
    assert elected(["a", "b", "c"] * 10 * MAJORITY) is None


def test_the_leader_stays_while_it_executes_as_much_as_its_rival():
    assert elected(["a", "b"] * 10 * MAJORITY, leader="a") == "a"


def test_the_leader_stays_against_many_small_ones():
    assert elected(["a", "b", "a", "c", "a", "d"] * 10 * MAJORITY, leader="a") == "a"


def test_a_leader_without_requests_is_followed_soon():
    assert elected(["a"] * 10_000 + ["b"] * MAJORITY, leader="a") == "b"


def test_a_rival_with_most_of_the_batches_takes_over():
    assert elected(["b", "b", "b", "a"] * MAJORITY, leader="a") == "b"
