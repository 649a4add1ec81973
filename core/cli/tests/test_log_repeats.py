"""Tracebacks that repeat: the first few of a minute, then a number."""

import logging

from naiad_cli.log_repeats import BURST, RepeatFilter


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def record(error: BaseException | None, text: str = "instance '%s' failed", model: str = "m") -> logging.LogRecord:
    exc_info = None if error is None else (type(error), error, None)
    line = logging.LogRecord("naiad.model", logging.ERROR, "execution.py", 220, text, ("m_0",), exc_info)
    line.model = model
    return line


def test_of_a_flood_the_first_few_are_written_and_the_next_minute_says_how_many_there_were() -> None:
    clock = Clock()
    repeats = RepeatFilter(clock)

    written = [repeats.lets_through(record(ValueError(f"row {number} is bad"))) for number in range(5000)]
    clock.now = 61.0
    later = record(ValueError("row 9 is bad"))

    assert written == [True] * BURST + [False] * (5000 - BURST)
    assert repeats.lets_through(later)
    assert later.getMessage() == "instance 'm_0' failed (4990 more like this one were omitted before it)"


def test_another_error_and_another_model_are_not_repeats() -> None:
    repeats = RepeatFilter(Clock())
    for _ in range(BURST + 5):
        repeats.lets_through(record(ValueError("bad")))

    assert repeats.lets_through(record(ValueError("worse")))
    assert repeats.lets_through(record(KeyError("bad")))
    assert repeats.lets_through(record(ValueError("bad"), model="other"))
    assert not repeats.lets_through(record(ValueError("bad")))


def test_lines_without_a_traceback_are_all_written() -> None:
    repeats = RepeatFilter(Clock())

    assert all(repeats.lets_through(record(None)) for _ in range(100))


def test_what_is_remembered_is_bounded() -> None:
    repeats = RepeatFilter(Clock())

    names = ["".join(chr(97 + int(digit)) for digit in str(number)) for number in range(3000)]
    assert all(repeats.lets_through(record(ValueError(name))) for name in names)
    assert len(repeats._kinds) <= 1000
