"""The error tree: a class for every kind of error, and problems with file, line and column."""

import inspect

import pytest

from naiad import errors
from naiad.errors import ConfigError, InvalidArgumentError, NaiadError, Problem, QueueFullError, UnavailableError

TAXONOMY = {
    "UNKNOWN",
    "INTERNAL",
    "NOT_FOUND",
    "INVALID_ARG",
    "UNAVAILABLE",
    "UNSUPPORTED",
    "ALREADY_EXISTS",
    "CANCELLED",
}
ALL = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, NaiadError)]


def test_every_position_of_the_taxonomy_has_an_error() -> None:
    assert {kind.code for kind in ALL} == TAXONOMY


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_every_error_stands_in_the_drawing_of_the_tree(kind: type[NaiadError]) -> None:
    assert f"── {kind.__name__} " in str(errors.__doc__) or kind is NaiadError


def test_an_unavailable_thing_may_say_when_to_come_back() -> None:
    assert UnavailableError("no").retry_after is None
    assert QueueFullError("full", retry_after=1.5).retry_after == 1.5


def test_a_problem_tells_its_position_its_path_and_the_next_step() -> None:
    problem = Problem("must be positive", "input[0].dims", "config.pbtxt", 3, 7, "write 1")

    assert str(problem) == "config.pbtxt:3:7: input[0].dims: must be positive (write 1)"


def test_a_problem_without_a_position_tells_the_file_alone() -> None:
    assert str(Problem("cannot be read", file="config.pbtxt")) == "config.pbtxt: cannot be read"
    assert str(Problem("must be positive")) == "must be positive"


def test_a_config_error_lists_all_problems() -> None:
    error = ConfigError([Problem("one"), Problem("two")])

    assert str(error) == "one\ntwo"
    assert error.problems == (Problem("one"), Problem("two"))
    assert isinstance(error, InvalidArgumentError)
