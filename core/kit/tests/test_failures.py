"""Log of failed requests: faults with their traceback, once; overload as a warning now and then."""

import logging

import pytest

from naiad.errors import (
    DeadlineExceededError,
    InvalidArgumentError,
    ModelFailedError,
    NaiadError,
    QueueFullError,
    UnknownError,
)
from naiad_kit.frontends.failures import FailureLog

LOGGER = logging.getLogger("naiad.test_failures")


@pytest.fixture
def failures(caplog: pytest.LogCaptureFixture) -> FailureLog:
    caplog.set_level(logging.INFO)
    return FailureLog("HTTP", LOGGER)


def raised(error: Exception) -> Exception:
    try:
        raise error
    except type(error) as caught:
        return caught


@pytest.mark.parametrize("kind", [ModelFailedError, UnknownError, NaiadError])
def test_a_fault_is_an_error_with_its_traceback(
    failures: FailureLog, caplog: pytest.LogCaptureFixture, kind: type[NaiadError]
) -> None:
    failures.record(raised(kind("it broke")), 500, "[request id: a7] it broke", "a7")

    (line,) = caplog.records
    assert (line.levelname, line.getMessage()) == ("ERROR", "HTTP 500: [request id: a7] it broke")
    assert line.exc_info is not None
    assert line.exc_info[0] is kind
    assert line.__dict__["request_id"] == "a7"


def test_the_traceback_is_that_of_the_error_that_it_began_with(
    failures: FailureLog, caplog: pytest.LogCaptureFixture
) -> None:
    error = ModelFailedError("it broke")
    error.__cause__ = raised(ZeroDivisionError("zero"))

    failures.record(error, 500, "it broke")

    assert caplog.records[0].exc_info is not None
    assert caplog.records[0].exc_info[0] is ZeroDivisionError


def test_a_fault_that_was_logged_is_not_logged_again(failures: FailureLog, caplog: pytest.LogCaptureFixture) -> None:
    error = raised(ModelFailedError("it broke"))

    for _ in range(3):
        failures.record(error, 500, "it broke")

    assert len(caplog.records) == 1


def test_overload_is_one_warning_for_each_model_and_kind(
    failures: FailureLog, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(1000):
        for model in ("a", "b"):
            text = f"the queue of model '{model}' is full: {number}"
            failures.record(QueueFullError(text), 503, text)
        failures.record(DeadlineExceededError("model 'a' was late"), 504, "model 'a' was late")

    assert [(line.levelname, line.getMessage()) for line in caplog.records] == [
        ("WARNING", "HTTP 503: the queue of model 'a' is full: 0"),
        ("WARNING", "HTTP 503: the queue of model 'b' is full: 0"),
        ("WARNING", "HTTP 504: model 'a' was late"),
    ]


def test_what_is_remembered_of_warnings_is_bounded(failures: FailureLog, caplog: pytest.LogCaptureFixture) -> None:
    for number in range(2500):
        failures.record(QueueFullError(""), 503, f"the queue of model '{number}' is full")

    assert len(failures._sparse) <= 1000
    assert len(caplog.records) == 2500


def test_mistakes_of_clients_are_lines_only_where_the_log_is_verbose(
    failures: FailureLog, caplog: pytest.LogCaptureFixture
) -> None:
    failures.record(InvalidArgumentError("no input 'x'"), 400, "no input 'x'")
    caplog.set_level(logging.DEBUG, LOGGER.name)
    for _ in range(2):
        failures.record(InvalidArgumentError("no input 'x'"), 400, "no input 'x'")
        failures.record(QueueFullError("full"), 503, "full")

    lines = [(line.levelname, line.getMessage()) for line in caplog.records]
    assert lines == [("DEBUG", "HTTP 400: no input 'x'"), ("DEBUG", "HTTP 503: full")] * 2


def test_a_refusal_of_the_frontend_itself_is_a_warning(failures: FailureLog, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(3):
        failures.record(RuntimeError("too many connections"), 503, "too many connections")
        failures.record(RuntimeError("no such path"), 404, "no such path")

    assert [line.getMessage() for line in caplog.records] == ["HTTP 503: too many connections"]
