"""Awaiting the response to a request, or reading its responses one by one with backpressure."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from functools import partial

from naiad.errors import NaiadError
from naiad.server import Deliver, Outcome, SubmittedRequest
from naiad.types import Response

_MANY = 16
"""The number of unread responses that pauses the model; it goes on at half of them."""


async def single_response(submit: Callable[[Deliver], SubmittedRequest]) -> Response:
    """The response to the request that `submit` sends. Raises the request's error; is cancelled with its caller."""
    outcome: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
    request = submit(partial(_settle, outcome))
    try:
        return await outcome
    finally:
        request.cancel()
        del outcome, request  # they hold an error, whose traceback holds this frame and the request


def _settle(outcome: "asyncio.Future[Response]", result: Outcome) -> None:
    if outcome.done():
        return
    if isinstance(result, NaiadError):
        outcome.set_exception(result)
    else:
        outcome.set_result(result)


async def responses(submit: Callable[[Deliver], SubmittedRequest]) -> AsyncGenerator[Response, None]:
    """The responses to the request that `submit` sends, the final one last. Raises the request's error."""
    unread: asyncio.Queue[Outcome] = asyncio.Queue()
    request: SubmittedRequest | None = None

    def deliver(outcome: Outcome) -> None:
        unread.put_nowait(outcome)
        if request is not None and unread.qsize() == _MANY:
            request.pause()

    request = submit(deliver)
    try:
        while True:
            outcome = await unread.get()
            if unread.qsize() == _MANY // 2:
                request.resume()
            if isinstance(outcome, NaiadError):
                try:
                    raise outcome
                finally:
                    del outcome  # its traceback holds this frame, and the request with it
            yield outcome
            if outcome.final:
                return
    finally:
        request.cancel()
        request = None  # it knows `deliver`, which knows it: a request would wait for the garbage collector
