"""Wait queues: which slot is the head, and that slots that leave leave nothing behind."""

from naiad_rate_limiter.resources import Needs
from naiad_rate_limiter.wait_queue import WaitingSlot, WaitQueue

PATIENCE = 10


def slot(number: int, weighted: int = 0, seen: int = 0, resumes: bool = False) -> WaitingSlot:
    """A slot of that number, which is also the number of its want."""
    return WaitingSlot(number, number, weighted, seen, resumes)


def order(queue: WaitQueue, begun: int = 0) -> list[int]:
    """The numbers of all in the queue, by their turns."""
    numbers = []
    while (head := queue.head(begun, PATIENCE)) is not None:
        numbers.append(head[-1])
        queue.leave(head[-1])
    return numbers


def queue_of(*slots: WaitingSlot) -> WaitQueue:
    queue = WaitQueue(Needs({}))
    for each in slots:
        queue.join(each)
    return queue


def test_the_smallest_weight_is_first_and_of_equals_the_one_that_waits_longest() -> None:
    queue = queue_of(slot(1, weighted=5), slot(2, weighted=3), slot(3, weighted=3), slot(4))

    assert order(queue) == [4, 2, 3, 1]


def test_those_that_go_on_are_before_those_that_start() -> None:
    queue = queue_of(slot(1), slot(2, weighted=9, resumes=True), slot(3, weighted=1, resumes=True))

    assert order(queue) == [2, 3, 1]


def test_one_that_has_let_enough_others_go_before_is_passed_over_no_more() -> None:
    queue = queue_of(slot(1, weighted=99, seen=0), slot(2, weighted=50, seen=1), slot(3, seen=8))

    assert (order(queue_of(slot(1, 99), slot(2, 50), slot(3)), begun=9)) == [3, 2, 1]
    assert order(queue, begun=10) == [1, 3, 2]


def test_one_that_leaves_and_comes_back_waits_anew() -> None:
    queue = queue_of(slot(1, weighted=1), slot(2, weighted=2))

    queue.leave(1)
    again = WaitingSlot(1, 3, 2, 0, resumes=False)
    queue.join(again)

    assert order(queue) == [2, 1]


def test_those_that_come_and_leave_do_not_pile_up() -> None:
    queue = queue_of(slot(1))

    for number in range(2, 1000):
        queue.join(slot(number))
        queue.leave(number)

    assert len(queue) == 1
    assert len(queue._oldest) < 30
    assert len(queue._by_weight) < 30
    assert order(queue) == [1]
