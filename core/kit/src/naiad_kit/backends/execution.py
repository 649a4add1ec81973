"""Execution of batches: aligned inputs, and a request that cannot be executed fails alone."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from naiad.backend import Answer, Batch, Reply
from naiad.errors import ModelFailedError, NaiadError
from naiad_config.user_code import from_user_code, user_line


def aligned(array: np.ndarray) -> np.ndarray:
    """The array, or a copy where its elements are not aligned in memory.

    A view on a received buffer may begin at any byte; the vector instructions of a framework's kernels need alignment.
    """
    return array if array.flags.aligned else array.copy()


def run_or_each_alone(
    batch: Batch, run: Callable[[Batch], Mapping[str, Any]], model: str, describe_error: Callable[[Exception], str]
) -> Answer:
    """What `run` gives for the batch; when that fails, a reply or error for each of its requests, run alone.

    `describe_error` says in words what an exception of the framework means. Raises ModelFailedError, with the name of
    the model, these words and the line of the user's code, for a batch of one request; a NaiadError stays as it is.
    """
    try:
        return run(batch)
    except Exception as error:
        if len(batch.requests) > 1:
            return run_each_alone(batch, run, model, describe_error)
        if isinstance(error, NaiadError):
            raise
        raise _failure(error, model, describe_error) from from_user_code(error)


def run_each_alone(
    batch: Batch, run: Callable[[Batch], Mapping[str, Any]], model: str, describe_error: Callable[[Exception], str]
) -> list[Reply | NaiadError]:
    """A reply or error for each request of the batch, run alone, in order; see `run_or_each_alone`."""
    return [_alone(batch.alone(index), run, model, describe_error) for index in range(len(batch.requests))]


def _alone(
    batch: Batch, run: Callable[[Batch], Mapping[str, Any]], model: str, describe_error: Callable[[Exception], str]
) -> Reply | NaiadError:
    try:
        return Reply(run(batch))
    except NaiadError as error:
        return error
    except Exception as error:  # noqa: BLE001 - the errors of frameworks have no common class
        failure = _failure(error, model, describe_error)
        failure.__cause__ = from_user_code(error)
        return failure


def _failure(error: Exception, model: str, describe_error: Callable[[Exception], str]) -> ModelFailedError:
    return ModelFailedError(f"model '{model}': {describe_error(error)}{user_line(error)}")
