"""Lines of places that wait for the same: who is the first, and that those who leave leave nothing behind."""

from naiad._kernel.rate_limiter.lines import Line, Waiting
from naiad._kernel.rate_limiter.resources import Needs

PATIENCE = 10


def place(number: int, standing: int = 0, seen: int = 0, resumes: bool = False) -> Waiting:
    """One that began to wait as the so-manieth."""
    return Waiting(number, number, standing, seen, resumes)


def order(line: Line, begun: int = 0) -> list[int]:
    """The numbers of all in the line, by their turns."""
    found = []
    while (first := line.first(begun, PATIENCE)) is not None:
        found.append(first[-1])
        line.leave(first[-1])
    return found


def line_of(*places: Waiting) -> Line:
    line = Line(Needs({}))
    for each in places:
        line.join(each)
    return line


def test_the_smallest_standing_is_first_and_of_equals_the_one_that_waits_longest() -> None:
    line = line_of(place(1, standing=5), place(2, standing=3), place(3, standing=3), place(4))

    assert order(line) == [4, 2, 3, 1]


def test_those_that_go_on_are_before_those_that_start() -> None:
    line = line_of(place(1), place(2, standing=9, resumes=True), place(3, standing=1, resumes=True))

    assert order(line) == [2, 3, 1]


def test_one_that_has_let_enough_others_go_before_is_passed_over_no_more() -> None:
    line = line_of(place(1, standing=99, seen=0), place(2, standing=50, seen=1), place(3, seen=8))

    assert (order(line_of(place(1, 99), place(2, 50), place(3)), begun=9)) == [3, 2, 1]
    assert order(line, begun=10) == [1, 3, 2]


def test_one_that_leaves_and_comes_back_waits_anew() -> None:
    line = line_of(place(1, standing=1), place(2, standing=2))

    line.leave(1)
    again = Waiting(1, 3, 2, 0, resumes=False)
    line.join(again)

    assert order(line) == [2, 1]


def test_those_that_come_and_leave_do_not_pile_up() -> None:
    line = line_of(place(1))

    for number in range(2, 1000):
        line.join(place(number))
        line.leave(number)

    assert len(line) == 1
    assert len(line._oldest) < 30
    assert len(line._by_standing) < 30
    assert order(line) == [1]
