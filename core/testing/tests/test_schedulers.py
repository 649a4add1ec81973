"""The conformance check of schedulers: it passes the kernel's own and finds every kind of fault."""

import itertools

import pytest

from naiad.default_scheduler import FifoScheduler
from naiad.scheduler import NOTHING, Decision, Dispatch, Drop, DropReason
from naiad_testing.history import Arrival
from naiad_testing.schedulers import check_scheduler, random_histories
from naiad_testing.simulation import ContractBroken

WAITING = tuple(Arrival(0.0, shape_key=shape) for shape in (None, None, "other", None))


def everything_is_one_lane(arrival):
    return None


@pytest.mark.parametrize("instances", [1, 2, 5])
def test_the_default_scheduler_passes(instances):
    check_scheduler(FifoScheduler, max_batch_size=8, instances=instances, lane=everything_is_one_lane)


def test_a_model_without_batching_may_get_one_request_at_a_time():
    check_scheduler(FifoScheduler, max_batch_size=0)


def test_the_histories_are_the_same_each_time_and_differ_by_their_seed():
    first, again, other = (tuple(random_histories(max_batch_size=4, seed=seed)) for seed in (0, 0, 1))

    assert first == again
    assert first != other


class Pile:
    """A scheduler that keeps its tickets in a list; the faulty ones are made from it."""

    def __init__(self):
        self.tickets = []

    def arrive(self, ticket):
        self.tickets.append(ticket)

    def settle(self, tickets, now):
        self.tickets = [ticket for ticket in self.tickets if ticket.id not in tickets]

    def decide(self, now, idle):
        if not idle or not self.tickets:
            return NOTHING
        return Decision((Dispatch(idle[0], (self.tickets.pop(0).id,), self.reason()),))

    def reason(self):
        return "single"


class Forgets(Pile):
    def arrive(self, ticket):
        if ticket.id != 2:
            super().arrive(ticket)


class Reverses(Pile):
    def decide(self, now, idle):
        self.tickets.sort(key=lambda ticket: -ticket.id)
        return super().decide(now, idle)


class TakesAll(Pile):
    def decide(self, now, idle):
        if not idle or not self.tickets:
            return NOTHING
        tickets, self.tickets = tuple(ticket.id for ticket in self.tickets), []
        return Decision((Dispatch(idle[0], tickets, "all"),))


class GivesNoReason(Pile):
    def reason(self):
        return ""


class TimesOutAtOnce(Pile):
    def decide(self, now, idle):
        tickets, self.tickets = tuple(ticket.id for ticket in self.tickets), []
        return Decision(drops=(Drop(tickets, DropReason.TIMEOUT),)) if tickets else NOTHING


class SendsTheSameAgain(Pile):
    def settle(self, tickets, now):
        pass

    def decide(self, now, idle):
        if not idle or not self.tickets:
            return NOTHING
        return Decision((Dispatch(idle[0], (self.tickets[0].id,), "again"),))


class Remembers(Pile):
    runs = itertools.count()

    def __init__(self):
        super().__init__()
        self.run = next(self.runs)

    def reason(self):
        return f"run {self.run}"


@pytest.mark.parametrize(
    ("faulty", "complaint"),
    [
        (Forgets, "were never answered"),
        (Reverses, "which came later in the same lane"),
        (GivesNoReason, "without a reason"),
        (TimesOutAtOnce, "its deadline is None"),
        (SendsTheSameAgain, "does not wait"),
        (Remembers, "two different logs"),
    ],
)
def test_a_faulty_scheduler_is_found(faulty, complaint):
    with pytest.raises(ContractBroken, match=complaint):
        check_scheduler(faulty, max_batch_size=4, instances=1, histories=[WAITING])


def test_a_batch_of_different_shapes_is_found():
    with pytest.raises(ContractBroken, match="different shapes"):
        check_scheduler(TakesAll, max_batch_size=4, histories=[WAITING])


def test_a_batch_that_is_too_large_is_found():
    with pytest.raises(ContractBroken, match="size 4, more than max_batch_size 3"):
        check_scheduler(TakesAll, max_batch_size=3, histories=[[Arrival(0.0)] * 4])


def test_a_ticket_that_is_sent_past_its_deadline_is_found():
    with pytest.raises(ContractBroken, match="past its deadline"):
        check_scheduler(Pile, max_batch_size=1, instances=1, histories=[WAITING], deadline=lambda arrival: 0.005)


def test_a_scheduler_that_promises_no_order_passes_with_a_lane_for_each():
    check_scheduler(Reverses, max_batch_size=4, histories=[WAITING], lane=lambda arrival: object())


def test_the_pile_that_the_faulty_ones_are_made_from_passes():
    check_scheduler(Pile, max_batch_size=4, lane=everything_is_one_lane)
