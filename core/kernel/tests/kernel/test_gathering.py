"""Coalescing of decisions: one decision for requests that arrive together."""

import pytest

from naiad._engine.queue import DecisionCoalescer


class Rounds:
    """An event loop that only has rounds."""

    def __init__(self):
        self.callbacks = []

    def call_soon(self, callback):
        self.callbacks.append(callback)

    def turn(self):
        self.callbacks, now = [], self.callbacks
        for callback in now:
            callback()


def gathering(idle=(0,)):
    rounds, decisions = Rounds(), []
    return DecisionCoalescer(rounds, lambda: decisions.append(1), idle), rounds, decisions


def rounds_until_asked(gathered, rounds, decisions, arrivals):
    """In how many rounds the decision is asked for, when that many requests come before each of them."""
    decisions.clear()
    for number, count in enumerate(arrivals, 1):
        for _ in range(count):
            gathered.arrive()
        rounds.turn()
        if decisions:
            return number
    raise AssertionError("no decision was due")


def test_what_comes_in_one_round_is_decided_once_at_its_end():
    gathered, rounds, decisions = gathering()

    for _ in range(3):
        gathered.arrive()
    before = len(decisions)
    rounds.turn()
    rounds.turn()

    assert (before, len(decisions)) == (0, 1)


def test_a_caller_who_is_alone_does_not_wait():
    gathered, rounds, decisions = gathering()

    gathered.dispatched(1)

    assert rounds_until_asked(gathered, rounds, decisions, [1]) == 1


def test_in_a_crowd_a_round_without_an_arrival_ends_the_wait():
    gathered, rounds, decisions = gathering()
    gathered.dispatched(2)

    assert rounds_until_asked(gathered, rounds, decisions, [1, 0]) == 2
    assert rounds_until_asked(gathered, rounds, decisions, [1, 1, 0]) == 3


def test_no_request_waits_for_more_than_three_rounds():
    gathered, rounds, decisions = gathering()
    gathered.dispatched(2)

    assert rounds_until_asked(gathered, rounds, decisions, [1] * 9) == 4


def test_without_an_idle_instance_there_is_nothing_to_wait_for():
    gathered, rounds, decisions = gathering(idle=())
    gathered.dispatched(2)

    assert rounds_until_asked(gathered, rounds, decisions, [1]) == 1


def test_a_crowd_is_forgotten_after_eight_batches_of_one():
    gathered, rounds, decisions = gathering()
    gathered.dispatched(2)

    waits = []
    for _ in range(9):
        waits.append(rounds_until_asked(gathered, rounds, decisions, [1, 0]))
        gathered.dispatched(1)

    assert waits == [2] * 8 + [1]


def test_what_is_no_request_is_decided_at_the_end_of_its_round():
    gathered, rounds, decisions = gathering()

    gathered.arrive()
    gathered.arrive()
    rounds.turn()

    assert (len(decisions), rounds.callbacks) == (1, [])


@pytest.mark.parametrize(
    ("batches", "idle", "alone"),
    [
        pytest.param([1] * 56, [0], True, id="the last ones came alone"),
        pytest.param([1] * 55, [0], False, id="too few to tell"),
        pytest.param([*[1] * 63, 2, *[1] * 63], [0], False, id="two came together"),
        pytest.param([1] * 64, [0, 1], False, id="two slots, which could share what comes"),
        pytest.param([1] * 64, [], False, id="no slot"),
    ],
)
def test_a_request_is_expected_to_be_alone_after_many_that_were(batches, idle, alone):
    gathered, _, _ = gathering(idle)

    for requests in batches:
        gathered.dispatched(requests)

    assert gathered.alone is alone


def test_none_is_expected_to_be_alone_soon_after_one_that_was_not():
    gathered, rounds, _ = gathering()
    for _ in range(64):
        gathered.dispatched(1)

    gathered.arrive()
    rounds.turn()
    alone = []
    for _ in range(56):
        alone.append(gathered.alone)
        gathered.dispatched(1)

    assert (any(alone), gathered.alone) == (False, True)


def test_a_request_is_not_alone_in_a_round_that_had_another():
    gathered, rounds, _ = gathering()
    gathered.arrive()
    for _ in range(64):
        gathered.dispatched(1)

    with_another = gathered.alone
    rounds.turn()

    assert (with_another, gathered.alone) == (False, True)
