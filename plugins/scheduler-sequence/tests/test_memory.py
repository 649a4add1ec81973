"""Memory: tensors of a sequence's requests die by reference counts, whatever becomes of them."""

import asyncio
import logging
from contextlib import suppress
from time import monotonic

import pytest

from naiad.errors import NaiadError
from naiad_testing.backends import FakeBackend
from naiad_testing.retention import freed_by_reference_counts

from .test_serving import serving, step

LONG = 10.0


@pytest.fixture(autouse=True)
def unlogged():
    """Nothing is logged, for pytest keeps what is, with the frames of its traceback."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


def echo(batch):
    return {"OUTPUT": batch.input("INPUT")}


def raises(batch):
    raise ValueError("the model raised")


def leaves(batch):
    raise SystemExit("the model left")


@pytest.mark.parametrize("batching", ["direct { }", "oldest { max_candidate_sequences: 2 }"])
@pytest.mark.parametrize("answer", [echo, raises, leaves])
@pytest.mark.parametrize("end", ["-", ""])
async def test_nothing_of_a_sequence_outlives_its_requests(tmp_path, batching, answer, end):
    backend = FakeBackend(answer=answer)

    async def infer(server, watch, request):
        with suppress(NaiadError):
            watch.watch_outcome(await server.infer(watch.watch_request(request)))

    async with serving(tmp_path, backend, batching) as server:
        with freed_by_reference_counts() as watch:
            await asyncio.gather(infer(server, watch, step(5, "+")), infer(server, watch, step(6, "+")))
            await infer(server, watch, step(6, end))
            await infer(server, watch, step(7))  # no request has started it
            late = monotonic() + LONG
            while watch.alive() and monotonic() < late:
                backend.batches.clear()
                await asyncio.sleep(0)

    assert watch.watched >= 4
