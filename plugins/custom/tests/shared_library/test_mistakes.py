"""Whatever a library does wrong by an ordinary mistake is an error that names it, and the server goes on."""

import logging
from collections.abc import Callable

import numpy as np
import pytest

from naiad.backend import Reply
from naiad.errors import (
    InvalidArgumentError,
    ModelFailedError,
    NaiadError,
    NotFoundError,
    UnavailableError,
    UnknownError,
    UnsupportedError,
)
from naiad_testing.workbench import Loaded

Misbehave = Callable[..., Loaded]
ONES = {"X": np.ones((1, 2), np.float32)}
START = "model 'm', output 'Y': "


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        ("unknown output", "model 'm', output 'Z': the configuration does not declare it; it declares 'Y'"),
        ("wrong datatype", f"{START}its datatype is INT32, and the configuration declares FP32"),
        ("wrong dims", f"{START}its shape is [1,3], and the configuration and 1 rows ask for [1,2]"),
        ("wrong rank", f"{START}its shape is [1], and the configuration and 1 rows ask for [1,2]"),
        ("negative dims", f"{START}its shape is [-1,2], and the configuration and 1 rows ask for [1,2]"),
        ("wrong size", f"{START}4 bytes are asked for, and FP32[1,2] takes 8"),
        ("no name", "model 'm', output '': its name is NULL"),
        ("no datatype", f"{START}its datatype is NULL"),
        ("no dims", f"{START}its dims are NULL or too many, and the configuration asks for [1,2]"),
        ("too many dims", f"{START}its dims are NULL or too many, and the configuration asks for [1,2]"),
        ("huge", f"{START}there is no memory for its 4611686018427387904 bytes"),
        ("twice", f"{START}memory for it was asked for before, and an output is given once"),
        (
            "nothing",
            "model 'm' gave no output 'Y'; ask for its memory with naiad_output, or fail the request with naiad_fail",
        ),
    ],
)
def test_a_wrong_output_fails_its_request_alone(misbehave: Misbehave, mistake: str, message: str) -> None:
    model = misbehave(mistake)

    wrong, right = model.execute(ONES, ONES)

    assert (type(wrong), str(wrong)) == (ModelFailedError, message)
    assert isinstance(right, Reply)
    assert right.outputs["Y"].tolist() == [[1, 1]]


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        ("another request", f"{START}the batch has 2 requests, counted from 0, and it was for request 7"),
        ("fail nobody", "lost count (the batch has 2 requests, counted from 0, and it was for request 9)"),
        ("behind", "output 'Y' of request 0 has 8 bytes of memory, and the library wrote at least 12 bytes behind it"),
        ("before", "output 'Y' of request 0 has 8 bytes of memory, and the library wrote at least 3 bytes before it"),
    ],
)
def test_what_cannot_be_one_requests_fault_fails_the_batch(misbehave: Misbehave, mistake: str, message: str) -> None:
    model = misbehave(mistake)

    with pytest.raises(ModelFailedError) as failed:
        model.execute(ONES, ONES)

    assert message in str(failed.value)


def test_writing_further_than_the_memory_goes_is_logged(misbehave: Misbehave, caplog: pytest.LogCaptureFixture) -> None:
    model = misbehave("behind")

    with caplog.at_level(logging.ERROR), pytest.raises(ModelFailedError):
        model.execute(ONES)

    assert "12 bytes behind it; nothing of this batch can be trusted" in caplog.text


def test_an_output_for_all_and_for_one_request_is_refused(misbehave: Misbehave) -> None:
    model = misbehave("for all and for one")

    wrong, clashing = model.execute(ONES, ONES)

    assert str(wrong) == str(clashing) == f"{START}it was asked for both for all requests and for one of them"


@pytest.mark.parametrize(
    ("mistake", "kind", "message"),
    [
        ("fail one", InvalidArgumentError, "X is too cold"),
        ("fail one twice", NotFoundError, "a"),
        ("fail without text", ModelFailedError, "it does not say why"),
        ("fail in Latin-1", UnknownError, r"caf\xe9"),
    ],
)
def test_a_library_fails_one_request(misbehave: Misbehave, mistake: str, kind: type[NaiadError], message: str) -> None:
    model = misbehave(mistake)

    failed, right = model.execute(ONES, ONES)

    assert (type(failed), str(failed)) == (kind, message)
    assert isinstance(right, Reply)


@pytest.mark.parametrize(
    ("mistake", "kind", "message"),
    [
        ("fail all", UnavailableError, "the device is gone"),
        ("fail with 0", ModelFailedError, "zero (code 0, which is not a naiad_code)"),
        ("return only", UnavailableError, "model 'm': naiad_execute gave back 5 and does not say why (naiad_fail)"),
        (
            "unknown code",
            ModelFailedError,
            (
                "model 'm': naiad_execute gave back 99 and does not say why (naiad_fail) "
                "(code 99, which is not a naiad_code)"
            ),
        ),
    ],
)
def test_a_library_fails_a_batch(misbehave: Misbehave, mistake: str, kind: type[NaiadError], message: str) -> None:
    model = misbehave(mistake)

    with pytest.raises(kind) as failed:
        model.execute(ONES, ONES)

    assert (type(failed.value), str(failed.value)) == (kind, message)


@pytest.mark.parametrize(
    ("mistake", "kind", "message"),
    [
        ("refuse", NotFoundError, "instance 'm_0' of model 'm': there are no weights"),
        ("refuse with 0", ModelFailedError, "instance 'm_0' of model 'm': zero (code 0"),
        (
            "refuse silently",
            UnsupportedError,
            "instance 'm_0' of model 'm': naiad_initialize gave back 6 and does not say why (naiad_refuse)",
        ),
    ],
)
def test_a_library_refuses_to_be_initialized(
    misbehave: Misbehave, mistake: str, kind: type[NaiadError], message: str
) -> None:
    with pytest.raises(kind) as refused:
        misbehave(mistake)

    assert type(refused.value) is kind
    assert str(refused.value).startswith(message)
