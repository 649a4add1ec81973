"""What a call held is freed when it is over, and does not wait for the garbage collector."""

import gc
import logging
import threading
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
from naiad_testing.in_loop import request
from naiad_testing.loops import until

from .models_that_call import Calling, double, output_of, value


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    logging.disable()  # pytest keeps what is logged, and with it the tracebacks of errors
    yield
    logging.disable(logging.NOTSET)
    gc.enable()


def infers(models: ModelCalls, request: Request) -> None:
    value(models.infer(request))


def streams(models: ModelCalls, request: Request) -> None:
    assert [value(response) for response in models.stream(request)] == [2]


def breaks_off(models: ModelCalls, request: Request) -> None:
    models.stream(request)


def fails(models: ModelCalls, request: Request) -> None:
    request.version = 9
    with pytest.raises(NaiadError):
        models.infer(request)


def cancels(models: ModelCalls, request: Request) -> None:
    models.begin(request).cancel()


def is_failed_by_the_other(models: ModelCalls, request: Request) -> None:
    request.model_name = "broken"
    with pytest.raises(NaiadError):
        models.infer(request)


def keeps_the_error(models: ModelCalls, request: Request) -> None:
    """As an error that becomes part of a response: variables of the model's frames hold it."""
    request.model_name = "broken"
    future = models.begin(request)
    kept = None
    try:
        future.result()
    except NaiadError as error:
        kept = error.with_traceback(None)
    assert kept is not None


def is_failed_while_it_streams(models: ModelCalls, request: Request) -> None:
    request.model_name = "broken"
    with pytest.raises(NaiadError):
        list(models.stream(request))


def cancels_what_executes(models: ModelCalls, request: Request) -> None:
    request.model_name = "held"
    executing.clear()
    released.clear()
    future = models.begin(request)
    assert executing.wait(10)
    future.cancel()
    released.set()
    assert future.cancelled()


def may_not_load(models: ModelCalls, request: Request) -> None:
    with pytest.raises(NaiadError):
        models.load("other", "{}", {"1/weights": memoryview(request.inputs["INPUT"].array)})  # type: ignore[dict-item]


def broken(batch: Batch, _: ModelCalls) -> Answer:
    raise ValueError("broken")


executing, released = threading.Event(), threading.Event()


def held(batch: Batch, models: ModelCalls) -> Answer:
    executing.set()
    assert released.wait(10)
    return double(batch, models)


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
        return output_of(1)

    calling = Calling(tmp_path)
    calling.add("double", double)
    calling.add("broken", broken)
    calling.add("held", held)
    calling.add("outer", outer)

    async with calling.running() as server:
        array = np.ones(1, np.float32)
        seen.append(weakref.ref(array))
        message = request("outer", 1)
        message.inputs = {"INPUT": Tensor.of("INPUT", array)}
        await server.infer(message)
        del message, array

        await until(lambda: [each() for each in seen] == [None, None])
