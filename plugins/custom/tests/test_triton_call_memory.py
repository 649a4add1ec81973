"""What a TritonPythonModel sent to another model is freed when the call is over, without the garbage collector."""

import gc
import logging
from collections.abc import Iterator

import pytest

from naiad_testing import serve

from .several import y

CALLS = {
    "exec": "response = sent('double').exec()",
    "exec of an unknown model": "response = sent('nobody').exec()",
    "exec of a model that raises": "response = sent('broken').exec()",
    "exec of a wrong version": "response = sent('double', model_version=9).exec()",
    "async_exec": "response = await sent('double').async_exec()",
    "async_exec of an unknown model": "response = await sent('nobody').async_exec()",
    "async_exec of a model that raises": "response = await sent('broken').async_exec()",
    "async_exec that is not awaited": "response = sent('double').async_exec(); response.cancel()",
    "decoupled": "response = list(sent('double').exec(decoupled=True))",
    "decoupled of a model that raises": "response = list(sent('broken').exec(decoupled=True))",
    "decoupled and awaited, of a model that raises": (
        "response = [each async for each in await sent('broken').async_exec(decoupled=True)]"
    ),
    "decoupled and dropped": "response = sent('double').exec(decoupled=True)",
    "decoupled and cancelled": "response = sent('double').exec(decoupled=True); response.cancel()",
}

SENT = """
global weakref, SEEN, sent
import weakref
SEEN = []

def sent(model, **more):
    array = np.arange(1 << 16)
    SEEN.append(weakref.ref(array))
    inputs = [pb_utils.Tensor("X", array[:1])]
    return pb_utils.InferenceRequest(model_name=model, requested_output_names=["Y"], inputs=inputs, **more)
"""

CALL, COUNT = 1, 0


@pytest.fixture(autouse=True)
def _no_collector() -> Iterator[None]:
    gc.disable()
    logging.disable()  # pytest keeps what is logged, and with it the tracebacks of errors
    yield
    logging.disable(logging.NOTSET)
    gc.enable()


@pytest.mark.parametrize("call", CALLS)
def test_the_tensors_of_a_call_die_with_it(models, call):
    models.triton("broken", 'raise ValueError("it broke")')
    body = f"""
        if value_of(requests[0].inputs()) == {COUNT}:
            return [answer(sum(each() is not None for each in SEEN))]
        {CALLS[call]}
        return [answer(len(SEEN))]
        """
    models.triton("outer", body, definition="async def", more=SENT)

    with serve(models.path) as client:
        assert y(client["outer"].infer(X=[CALL])) == 1
        alive = [y(client["outer"].infer(X=[COUNT])) for _ in range(100)]  # a call that was taken back ends later

    assert alive[-1] == 0
