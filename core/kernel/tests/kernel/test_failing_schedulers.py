"""Schedulers that raise or answer nonsense: what waits fails, a new one starts, nothing hangs."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from naiad.default_scheduler import FifoScheduler
from naiad.errors import InternalError, InvalidArgumentError
from naiad.scheduler import NOTHING, Decision, Dispatch, Drop, DropReason, Scheduler, Ticket
from naiad_config import ModelConfig
from naiad_testing.backends import FakeBackend
from naiad_testing.in_loop import FLOATS, running, write_model
from naiad_testing.loops import jump, turns
from naiad_testing.scheduling import Scheduling
from naiad_testing.steered import Steered, SteeredInstance

from .driven import DrivenQueue
from .schedulers import Recording


class Unreliable(Recording):
    """Raises once, where the test says."""

    def __init__(self) -> None:
        super().__init__()
        self.raises_in = ""
        self.decision: Decision | None = None

    def arrive(self, ticket: Ticket) -> Drop | None:
        self._perhaps("arrive")
        return super().arrive(ticket)

    def settle(self, tickets: Sequence[int], now: float) -> None:
        self._perhaps("settle")
        assert set(tickets) <= {ticket.id for ticket in self.tickets}, "settled a ticket that never arrived here"
        super().settle(tickets, now)

    def decide(self, now: float, idle: Sequence[int]) -> Decision:
        self.decisions += 1
        self._perhaps("decide")
        return self.decision or super().decide(now, idle)

    def _perhaps(self, method: str) -> None:
        if self.raises_in == method:
            raise ArithmeticError(f"{method} is beyond me")


def made_one_by_one() -> tuple[Callable[[], Unreliable], list[Unreliable]]:
    schedulers: list[Unreliable] = []

    def make() -> Unreliable:
        schedulers.append(Unreliable())
        return schedulers[-1]

    return make, schedulers


async def test_a_scheduler_that_fails_on_arrival_fails_what_waits_and_starts_anew(
    caplog: pytest.LogCaptureFixture,
) -> None:
    make, schedulers = made_one_by_one()
    driven = DrivenQueue(make)
    driven.submit("executing")
    driven.submit("waiting")
    await turns()
    schedulers[0].raises_in = "arrive"

    with pytest.raises(InternalError, match="the scheduler of model 'm' failed: ArithmeticError: arrive is beyond me"):
        driven.submit("new")

    assert isinstance(driven.error("waiting"), InternalError)
    assert len(schedulers) == 2
    driven.submit("later")
    driven.finish()
    assert await driven.executing() == [["later"]]
    assert driven.answered() == {"executing"}
    assert driven.statistics.fail.count == 2
    assert "ArithmeticError" in caplog.text


async def test_a_scheduler_that_fails_to_settle_costs_no_answer_that_is_there() -> None:
    make, schedulers = made_one_by_one()
    driven = DrivenQueue(make)
    driven.submit("a")
    driven.submit("b")
    await turns()
    schedulers[0].raises_in = "settle"

    driven.finish()

    assert driven.answered() == {"a"}
    assert "settle is beyond me" in str(driven.error("b"))
    assert await driven.is_drained()
    driven.submit("c")
    assert await driven.executing() == [["c"]]


async def test_a_new_scheduler_hears_nothing_of_its_predecessors_tickets() -> None:
    make, schedulers = made_one_by_one()
    driven = DrivenQueue(make)
    driven.submit("a")
    await turns()
    schedulers[0].raises_in = "arrive"
    with pytest.raises(InternalError):
        driven.submit("b")

    driven.finish()

    assert driven.answered() == {"a"}
    assert len(schedulers) == 2
    assert schedulers[1].settled == []


@pytest.mark.parametrize(
    "dispatch",
    [
        Dispatch(0, (77,), "schedulers up"),
        Dispatch(9, (2,), "no such instance"),
        Dispatch(0, (2, 2), "twice"),
        Dispatch(0, (1,), "executes already"),
        Dispatch(0, (), "nothing"),
        Dispatch(1, (2,), "busy"),
    ],
    ids=lambda dispatch: dispatch.reason,
)
async def test_a_dispatch_that_is_invalid_fails_what_waits_and_starts_anew(dispatch: Dispatch) -> None:
    make, schedulers = made_one_by_one()
    driven = DrivenQueue(make, slots=2)
    driven.queue.lose(0)
    driven.submit("a")
    assert await driven.executing() == [["a"]]
    driven.queue.free(0)

    schedulers[0].decision = Decision((dispatch,))
    driven.submit("b")
    await turns()

    assert "every ticket must wait and be named once, and the instance must be idle" in str(driven.error("b"))
    assert len(driven.sent) == 1
    driven.submit("c")
    assert await driven.executing() == [["a"], ["c"]]


@pytest.mark.parametrize("decision", [None, Decision(wake_at="soon")], ids=["nothing", "no time"])  # type: ignore[arg-type]
async def test_an_answer_that_is_no_decision_fails_what_waits_and_starts_anew(decision: Decision | None) -> None:
    make, schedulers = made_one_by_one()
    driven = DrivenQueue(make)
    schedulers[0].decide = lambda now, idle: decision  # type: ignore[method-assign, assignment, return-value]
    driven.submit("a")
    await turns()

    assert isinstance(driven.error("a"), InternalError)
    driven.submit("b")
    assert await driven.executing() == [["b"]]


async def test_dropping_a_request_that_is_gone_harms_nothing_else() -> None:
    make, schedulers = made_one_by_one()
    driven = DrivenQueue(make)
    schedulers[0].decision = Decision(drops=(Drop((77,), DropReason.TIMEOUT),))
    driven.submit("a")
    await turns()

    schedulers[0].decision = None
    driven.submit("b")

    assert await driven.executing() == [["a"]]
    assert len(schedulers) == 1


async def test_a_scheduler_that_waits_for_ever_is_not_asked_in_vain() -> None:
    make, schedulers = made_one_by_one()
    driven = DrivenQueue(make)
    schedulers[0].decision = NOTHING
    driven.submit("a")
    await turns()

    await jump(3600)

    assert schedulers[0].decisions == 1
    assert driven.queue.waiting == 1


async def test_a_scheduler_that_cannot_be_made_fails_the_load(tmp_path: Path) -> None:
    class Impossible(Scheduling):
        def create(self, config: ModelConfig, instances: int) -> Scheduler:
            raise InvalidArgumentError(f"{instances} instances are too many")

    backend = FakeBackend()
    backend.write(tmp_path, "m", "max_batch_size: 8 dynamic_batching { } instance_group { count: 3 }")

    async with running(tmp_path, backend, Impossible(FifoScheduler)) as server:
        (entry,) = server.index()

    assert "3 instances are too many" in entry.reason
    assert backend.events.count("close m 1") == 1


async def test_a_scheduler_learns_how_many_batches_can_be_executed_at_once(tmp_path: Path) -> None:
    learnt = []

    class Curious(Scheduling):
        def create(self, config: ModelConfig, instances: int) -> Scheduler:
            learnt.append((config.name, instances))
            return super().create(config, instances)

    backend = Steered(instantiate=lambda placement: SteeredInstance(backend, concurrency=4))
    groups = "instance_group [ { count: 2 }, { passive: true } ]"
    write_model(tmp_path, "m", f"max_batch_size: 8 dynamic_batching {{ }} {FLOATS} {groups}")

    async with running(tmp_path, backend, Curious(FifoScheduler)) as server:
        assert server.ready().ready

    assert learnt == [("m", 8)]
