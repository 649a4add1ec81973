"""Decoupled models written as generators, plain and `async def`."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from naiad.backend import Answer, Batch, Reply, Sender
from naiad_custom.asynchronous import why_cancelled
from naiad_custom.conversion import Conversion
from naiad_custom.failures import Failures
from naiad_custom.loops import begin_clean_up, cancelled_with, room_in
from naiad_custom.user_object import UserInstance, UserObject


class StreamInstance(UserInstance):
    """One copy of a function that yields: each request is a call of its own, one after the other.

    The function is suspended at its `yield` while the caller reads slowly, and closed there when the caller leaves.
    """

    def __init__(self, user_object: UserObject, convert: Conversion, failures: Failures) -> None:
        super().__init__(user_object)
        self._call = user_object.call
        self._convert = convert
        self._failures = failures

    def execute(self, batch: Batch) -> Answer:
        """Send everything that the function yields."""
        for index in range(len(batch.requests)):
            self._serve(batch.alone(index), batch.sender(index))
        return [None] * len(batch.requests)

    def _serve(self, batch: Batch, sender: Sender) -> None:
        try:
            if not sender.is_cancelled():
                arguments = self._convert.arguments(batch)
                stream = iter(self._call(**arguments))
                try:
                    self._send(stream, sender, arguments)
                finally:
                    getattr(stream, "close", _nothing)()
        except Exception as error:  # noqa: BLE001 - a model may raise anything; its caller gets the error
            sender.send(self._failures.of(error, batch.requests[0]), final=True)
        else:
            sender.send(None, final=True)

    def _send(self, stream: Iterator[Any], sender: Sender, arguments: Mapping[str, Any]) -> None:
        outputs = self._convert.outputs
        try:
            # what is yielded gets no name here, so that a fresh array is known to be fresh
            while sender.send(Reply(outputs(next(stream), arguments))):
                pass
        except StopIteration:
            pass


class AsyncStreams:
    """Calls a generator function once per request of a batch, all requests concurrently.

    A call waits at its `yield` while its caller reads slowly; the others go on. It is cancelled when its caller leaves.
    """

    def __init__(self, call: Callable[..., Any], convert: Conversion, failures: Failures) -> None:
        self._call = call
        self._convert = convert
        self._failures = failures

    async def __call__(self, batch: Batch) -> Answer:
        """Send everything that the calls yield."""
        senders = [batch.sender(index) for index in range(len(batch.requests))]
        calls = (self._serve(batch.alone(index), sender) for index, sender in enumerate(senders))
        with suppress(asyncio.CancelledError):  # the callers have their errors
            await asyncio.shield(asyncio.gather(*calls))  # each call is cancelled once, by itself
        return [None] * len(senders)

    async def _serve(self, batch: Batch, sender: Sender) -> None:
        try:
            arguments = self._convert.arguments(batch)
            stream = aiter(self._call(**arguments))
            try:
                with cancelled_with(batch.requests):
                    await self._send(stream, sender, arguments)
            finally:  # what the function does in its own `finally` is not cancelled
                await getattr(stream, "aclose", _nothing_to_await)()
        except asyncio.CancelledError:
            sender.post(why_cancelled(batch.requests), final=True)
        except BaseException as error:  # noqa: BLE001 - a model may raise anything; only its caller gets the error
            sender.post(self._failures.of(error, batch.requests[0]), final=True)
        else:
            sender.post(None, final=True)

    async def _send(self, stream: AsyncIterator[Any], sender: Sender, arguments: Mapping[str, Any]) -> None:
        outputs = self._convert.outputs
        try:
            while not sender.is_cancelled():
                room = sender.post(Reply(outputs(await anext(stream), arguments)))
                if room is not None:
                    await room_in(room)
            begin_clean_up()
        except StopAsyncIteration:
            pass


def _nothing() -> None:
    """What closes an iterator that needs no closing."""


async def _nothing_to_await() -> None:
    """What closes an asynchronous iterator that needs no closing."""
