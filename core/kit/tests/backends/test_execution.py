"""A batch that fails: each of its requests is executed alone, and only those fail that make it fail."""

import numpy as np
import pytest

from naiad.batch import Batch
from naiad.errors import InvalidArgumentError, ModelFailedError
from naiad_kit.backends.execution import run_each_alone, run_or_each_alone
from naiad_testing.workbench import batch_of


def halves(batch: Batch) -> dict[str, np.ndarray]:
    """Of each row its half; a model that knows no odd numbers, and refuses negative ones."""
    rows = batch.input("x")
    if (rows < 0).any():
        raise InvalidArgumentError("no negative numbers")
    if (rows % 2).any():
        raise ValueError("odd")
    return {"y": rows // 2}


def answer(*values: int):
    batch = batch_of(*({"x": np.array([[value]])} for value in values))
    return run_or_each_alone(batch, halves, "m", lambda error: f"the framework says {error}")


def test_a_batch_that_succeeds_is_answered_as_a_whole() -> None:
    outputs = answer(2, 4)

    assert outputs["y"].tolist() == [[1], [2]]


def test_a_request_that_fails_alone_says_why() -> None:
    with pytest.raises(ModelFailedError, match="model 'm': the framework says odd") as caught:
        answer(3)

    assert isinstance(caught.value.__cause__, ValueError)


def test_an_error_of_our_own_stays_as_it_is() -> None:
    with pytest.raises(InvalidArgumentError, match=r"^no negative numbers$"):
        answer(-2)


def test_only_the_requests_fail_that_make_a_batch_fail() -> None:
    first, odd, last, negative = answer(2, 3, 8, -2)

    assert (first.outputs["y"].tolist(), last.outputs["y"].tolist()) == ([[1]], [[4]])
    assert isinstance(odd, ModelFailedError)
    assert isinstance(odd.__cause__, ValueError)
    assert isinstance(negative, InvalidArgumentError)


def test_requests_can_be_run_alone_from_the_start() -> None:
    batch = batch_of({"x": np.array([[2]])}, {"x": np.array([[3]])})

    half, odd = run_each_alone(batch, halves, "m", lambda error: f"the framework says {error}")

    assert half.outputs["y"].tolist() == [[1]]
    assert isinstance(odd, ModelFailedError)
    assert "odd" in str(odd)
