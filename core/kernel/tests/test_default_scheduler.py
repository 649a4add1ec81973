"""The default scheduler: one request a batch, first come, first served."""

from naiad.default_scheduler import DefaultScheduling, FifoScheduler
from naiad.scheduler import NOTHING, Decision, Dispatch, Ticket
from naiad_config import ModelConfig
from naiad_testing.schedulers import check_scheduler


def waiting(*tickets: int) -> FifoScheduler:
    scheduler = FifoScheduler()
    for ticket in tickets:
        scheduler.arrive(Ticket(ticket, 0.0, batch_size=4))
    return scheduler


def test_idle_instances_take_one_request_each_in_the_order_of_arrival() -> None:
    scheduler = waiting(1, 2, 3)

    assert scheduler.decide(0.0, [5, 4]) == Decision((Dispatch(5, (1,), "single"), Dispatch(4, (2,), "single")))
    assert scheduler.decide(0.0, [5, 4]) == Decision((Dispatch(5, (3,), "single"),))
    assert scheduler.decide(0.0, [5, 4]) is NOTHING


def test_nothing_goes_without_an_idle_instance() -> None:
    assert waiting(1).decide(0.0, []) is NOTHING


def test_a_request_taken_back_is_passed_over() -> None:
    scheduler = waiting(1, 2)

    scheduler.settle([1], 0.0)

    assert scheduler.decide(0.0, [0, 1]) == Decision((Dispatch(0, (2,), "single"),))


def test_requests_that_ran_are_settled_without_harm() -> None:
    scheduler = waiting(1, 2)
    scheduler.decide(0.0, [0])

    scheduler.settle([1], 0.0)

    assert scheduler.decide(0.0, [0]) == Decision((Dispatch(0, (2,), "single"),))


def test_requests_taken_back_while_no_instance_is_idle_leave_nothing_behind() -> None:
    scheduler = FifoScheduler()

    for ticket in range(1, 1000):
        scheduler.arrive(Ticket(ticket, 0.0))
        scheduler.settle([ticket], 0.0)

    assert not any(len(held) for held in vars(scheduler).values())


def test_it_serves_models_without_a_scheduling_choice() -> None:
    factory = DefaultScheduling()

    assert (factory.name, factory.choice) == ("default", "")
    assert isinstance(factory.create(ModelConfig(), 2), FifoScheduler)


def test_it_keeps_the_contract_of_schedulers_in_strict_order() -> None:
    check_scheduler(FifoScheduler, max_batch_size=4, lane=lambda arrival: "all")
