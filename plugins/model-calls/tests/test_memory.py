"""What a call held is freed when it is over, and does not wait for the garbage collector."""

import gc
import logging
import weakref
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from naiad.backend import Answer, Batch
from naiad.errors import NaiadError
from naiad.types import Request
from naiad_kit.calls import ModelCalls
from naiad_tensors.tensors import Tensor

from .loops import until
from .models_that_call import Calling, double, given, value
from .serving import request


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    logging.disable()  # pytest keeps what is logged, and with it the tracebacks of errors
    yield
    logging.disable(logging.NOTSET)
    gc.enable()


def infers(models: ModelCalls, asked: Request) -> None:
    value(models.infer(asked))


def streams(models: ModelCalls, asked: Request) -> None:
    assert [value(response) for response in models.stream(asked)] == [2]


def breaks_off(models: ModelCalls, asked: Request) -> None:
    models.stream(asked)


def fails(models: ModelCalls, asked: Request) -> None:
    asked.version = 9
    with pytest.raises(NaiadError):
        models.infer(asked)


def cancels(models: ModelCalls, asked: Request) -> None:
    models.begin(asked).cancel()


def is_failed_by_the_other(models: ModelCalls, asked: Request) -> None:
    asked.model_name = "broken"
    with pytest.raises(NaiadError):
        models.infer(asked)


def keeps_the_error(models: ModelCalls, asked: Request) -> None:
    """As an error that becomes part of a response: variables of the model's frames hold it."""
    asked.model_name = "broken"
    future = models.begin(asked)
    kept = None
    try:
        future.result()
    except NaiadError as error:
        kept = error.with_traceback(None)
    assert kept is not None


def is_failed_while_it_streams(models: ModelCalls, asked: Request) -> None:
    asked.model_name = "broken"
    with pytest.raises(NaiadError):
        list(models.stream(asked))


def cancels_what_executes(models: ModelCalls, asked: Request) -> None:
    future = models.begin(asked)
    future.cancel()
    assert future.cancelled()


def may_not_load(models: ModelCalls, asked: Request) -> None:
    with pytest.raises(NaiadError):
        models.load("other", "{}", {"1/weights": memoryview(asked.inputs["INPUT"].array)})  # type: ignore[dict-item]


def broken(batch: Batch, _: ModelCalls) -> Answer:
    raise ValueError("broken")


@pytest.mark.parametrize(
    "ask",
    [
        infers,
        streams,
        breaks_off,
        fails,
        cancels,
        is_failed_by_the_other,
        keeps_the_error,
        is_failed_while_it_streams,
        cancels_what_executes,
        may_not_load,
    ],
)
async def test_the_tensors_of_a_call_and_of_its_caller_are_freed(
    tmp_path: Path, no_collector: None, ask: object
) -> None:
    seen: list[weakref.ref[np.ndarray]] = []

    def outer(batch: Batch, models: ModelCalls) -> Answer:
        inner = np.ones(1, np.float32)
        seen.append(weakref.ref(inner))
        ask(models, Request("double", {"INPUT": Tensor.of("INPUT", inner)}))  # type: ignore[operator]
        return given(1)

    calling = Calling(tmp_path)
    calling.add("double", double)
    calling.add("broken", broken)
    calling.add("outer", outer)

    async with calling.running() as server:
        array = np.ones(1, np.float32)
        seen.append(weakref.ref(array))
        asked = request("outer", 1)
        asked.inputs = {"INPUT": Tensor.of("INPUT", array)}
        await server.infer(asked)
        del asked, array

        await until(lambda: [each() for each in seen] == [None, None])
