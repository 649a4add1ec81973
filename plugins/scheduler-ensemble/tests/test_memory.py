"""Memory: tensors of an ensemble's request and of its steps die by reference counts, whatever becomes of it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from time import monotonic

import pytest

from naiad import Request, Server
from naiad.backend import Answer, Batch
from naiad.errors import InvalidArgumentError, NaiadError
from naiad_testing.loops import until
from naiad_testing.retention import PayloadWatch, freed_by_reference_counts

from .parts import Parts, ask, times

LONG = 10.0


@pytest.fixture(autouse=True)
def unlogged() -> Iterator[None]:
    """Nothing is logged, for pytest keeps what is, with the frames of its traceback."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


def raises(batch: Batch) -> Answer:
    raise ValueError("the step raised")


def refuses(batch: Batch) -> Answer:
    raise InvalidArgumentError("the step refused")


def leaves(batch: Batch) -> Answer:
    raise SystemExit("the step left")


async def infer(server: Server, watch: PayloadWatch, request: Request) -> None:
    with suppress(NaiadError):
        watch.watch_outcome(await server.infer(watch.watch_request(request)))


async def stream(server: Server, watch: PayloadWatch, request: Request) -> None:
    with suppress(NaiadError):
        async for response in server.stream(watch.watch_request(request)):
            watch.watch_outcome(response)


async def cancel(server: Server, watch: PayloadWatch, request: Request) -> None:
    task = asyncio.ensure_future(infer(server, watch, request))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


Ask = Callable[[Server, PayloadWatch, Request], Awaitable[None]]


@pytest.mark.parametrize("ask_for", [infer, stream, cancel])
@pytest.mark.parametrize("step", ["one", "ten"])
@pytest.mark.parametrize("function", [None, raises, refuses, leaves])
async def test_nothing_of_an_ensemble_s_request_outlives_it(
    chain: Parts, ask_for: Ask, step: str, function: Callable[[Batch], Answer] | None
) -> None:
    if function is not None:
        chain.functions[step] = function

    async with chain.serving() as server:
        with freed_by_reference_counts() as watch:
            await ask_for(server, watch, ask("e"))
            late = monotonic() + LONG
            await until(lambda: chain.requests.clear() or not watch.alive() or monotonic() > late)

    assert watch.watched


@pytest.mark.parametrize("ask_for", [stream, cancel])
async def test_nor_of_one_with_a_decoupled_step(chain: Parts, ask_for: Ask) -> None:
    chain.add("many", "x", "y", times(5), "model_transaction_policy { decoupled: true }")
    chain.join("d", "A", "C", "many x=A -> y=B", "ten x=B -> y=C", more="model_transaction_policy { decoupled: true }")

    async with chain.serving() as server:
        with freed_by_reference_counts() as watch:
            await ask_for(server, watch, ask("d"))
            late = monotonic() + LONG
            await until(lambda: chain.requests.clear() or not watch.alive() or monotonic() > late)

    assert watch.watched
