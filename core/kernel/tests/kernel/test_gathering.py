"""Coalescing of decisions: one decision for requests that arrive together."""

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
