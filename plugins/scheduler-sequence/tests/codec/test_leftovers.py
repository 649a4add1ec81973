"""What is left of a request of a sequence when it is over: nothing that waits for the garbage collector."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from naiad_kit.sequences import Row

from .driven import Drive, summing


@pytest.fixture(autouse=True)
def no_collector() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


async def test_a_request_that_is_over_is_gone_with_its_tensors(drive: Drive) -> None:
    driven = await drive()
    driven.submit("a", 3)
    await driven.decide(Row(1, 1, start=True))
    array = weakref.ref(driven.batch().requests[0].inputs["X"].array)

    driven.answer(summing)

    assert driven.value("a") == 3
    assert array() is None
