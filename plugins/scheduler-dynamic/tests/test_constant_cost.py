"""A decision looks at as many tickets in a queue of 10,000 as in a queue of 100."""

import pytest

from naiad.scheduler import Ticket
from naiad_config import ModelDynamicBatching, ModelQueuePolicy, TimeoutAction
from naiad_scheduler_dynamic.fifo import Fifo
from naiad_scheduler_dynamic.policies import PolicyQueue
from naiad_scheduler_dynamic.scheduler import DynamicScheduler


class CountingFifo(Fifo):
    looks = 0

    def pop(self):
        self.looks += 1
        return super().pop()


class CountingPolicyQueue(PolicyQueue):
    looks = 0

    def pop(self):
        self.looks += 1
        return super().pop()


def fifo():
    return CountingFifo()


def levels():
    policy = ModelQueuePolicy(default_timeout_microseconds=10**12, allow_timeout_override=True, max_queue_size=10**6)
    return CountingPolicyQueue(
        ModelDynamicBatching(priority_levels=3, default_priority_level=2, default_queue_policy=policy)
    )


def batcher(queue, delay=0.0, preferred=(8,)):
    return DynamicScheduler(queue=queue, max_batch_size=8, preferred_sizes=frozenset(preferred), delay=delay)


def looks_of_ten_decisions(queue, waiting, shapes):
    scheduler = batcher(queue)
    for number in range(1, waiting + 1):
        scheduler.arrive(Ticket(number, 0.0, shape_key=number % shapes, priority=number % 4))
    queue.looks = 0
    for _ in range(10):
        scheduler.decide(0.0, (0,))
    return queue.looks


@pytest.mark.parametrize("make", [fifo, levels])
@pytest.mark.parametrize("shapes", [1, 2, 1000])
def test_the_length_of_the_queue_does_not_matter(make, shapes):
    looks = {waiting: looks_of_ten_decisions(make(), waiting, shapes) for waiting in (100, 10_000)}

    most_for_ten_batches = 10 * (8 + 1)
    assert all(0 < count <= most_for_ten_batches for count in looks.values())


@pytest.mark.parametrize("make", [fifo, levels])
def test_asking_again_while_a_batch_waits_looks_at_nothing_twice(make):
    queue = make()
    scheduler = batcher(queue, delay=10.0)
    for number in range(1, 8):
        scheduler.arrive(Ticket(number, 0.0))
    scheduler.decide(0.0, (0,))
    queue.looks = 0

    for question in range(1, 101):
        scheduler.decide(question * 1e-3, (0,))

    assert queue.looks == 100


@pytest.mark.parametrize("make", [fifo, levels])
def test_nothing_is_looked_at_while_no_instance_is_idle(make):
    queue = make()
    scheduler = batcher(queue)

    for number in range(1, 101):
        scheduler.arrive(Ticket(number, 0.0))
        scheduler.decide(0.0, ())

    assert queue.looks == 0


def kept(queue):
    """How many tickets the queue still holds in any of its places."""
    lanes = sum(len(level.fresh) + len(level.delayed) for level in queue._levels.values())
    return lanes + sum(map(len, queue._timeouts.values())) + len(queue._homes) + len(queue._late)


@pytest.mark.parametrize("timeout", [0.0, 5.0], ids=["the default timeout", "their own timeout"])
@pytest.mark.parametrize("waits", [0.0, 10.0], ids=["in time", "late"])
@pytest.mark.parametrize("action", TimeoutAction)
def test_callers_that_leave_leave_nothing_behind(timeout, waits, action):
    policy = ModelQueuePolicy(
        timeout_action=action, default_timeout_microseconds=8_000_000, allow_timeout_override=True
    )
    queue = PolicyQueue(ModelDynamicBatching(default_queue_policy=policy))
    scheduler = batcher(queue)

    for number in range(1, 3001):
        scheduler.arrive(Ticket(number, float(number), timeout=timeout))
        scheduler.decide(number + waits, ())
        scheduler.settle((number,), number + waits)

    assert scheduler.decide(4000.0, (0,)).dispatches == ()
    assert kept(queue) < 300
