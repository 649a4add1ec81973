"""Reading the responses of a call as an asynchronous generator that holds its model back when it is slow."""

import asyncio
from collections.abc import AsyncGenerator, Callable

from naiad.errors import NaiadError
from naiad.server import Deliver, Outcome, SubmittedRequest
from naiad.types import Response

_MANY = 16
"""So many responses wait to be taken before the model has to wait as well; it goes on at half of them."""


async def responses(submit: Callable[[Deliver], SubmittedRequest]) -> AsyncGenerator[Response, None]:
    """The responses of the call that `submit` makes, the final one last. Raises the call's error."""
    waiting: asyncio.Queue[Outcome] = asyncio.Queue()
    call: SubmittedRequest | None = None

    def deliver(outcome: Outcome) -> None:
        waiting.put_nowait(outcome)
        if call is not None and waiting.qsize() == _MANY:
            call.pause()

    call = submit(deliver)
    try:
        while True:
            outcome = await waiting.get()
            if waiting.qsize() == _MANY // 2:
                call.resume()
            if isinstance(outcome, NaiadError):
                try:
                    raise outcome
                finally:
                    del outcome  # its traceback holds this frame, and the request with it
            yield outcome
            if outcome.final:
                return
    finally:
        call.cancel()
        call = None  # it knows `deliver`, which knows it: a request would wait for the garbage collector
