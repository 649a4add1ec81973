"""A stream of ModelStreamInfer over several groups: one call of a replica for each message, answers in one stream."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, Protocol

from ray.exceptions import RayActorError
from ray.serve.exceptions import BackPressureError, DeploymentUnavailableError

from naiad_kit.frontends.embedding import StatusError
from naiad_ray.raw import GrpcRequest, RawAnswer
from naiad_ray.request_fields import SequenceMark, model_of_message, sequence_of
from naiad_ray.sequences import SequenceOwners

_PATH = "/inference.GRPCInferenceService/ModelStreamInfer"
_MOST_OPEN = 256
_MOST_READY = 64


class StreamGroups(Protocol):
    """The groups as a stream calls them."""

    sequences: SequenceOwners

    def group_of(self, model: str) -> str | None:
        """The group of a model."""
        ...

    def stream_rpc(self, request: GrpcRequest, group: str, session: str) -> Any:
        """The answers of a replica to one message."""
        ...


class ForwardedStream:
    """One stream of a client.

    Requests of a model that is not decoupled are answered in their order; those of one sequence are sent one after
    the other. Answers of decoupled models come as they are ready.
    """

    def __init__(self, groups: StreamGroups, metadata: tuple[tuple[str, str | bytes], ...]) -> None:
        self._groups = groups
        self._metadata = metadata
        self._ready: asyncio.Queue[bytes | StatusError | None] = asyncio.Queue(maxsize=_MOST_READY)
        self._room = asyncio.Semaphore(_MOST_OPEN)
        self._tasks: set[asyncio.Task[None]] = set()
        self._last: dict[str, asyncio.Task[None]] = {}

    async def read(self, messages: AsyncIterator[bytes]) -> None:
        """Forward every message; the stream is over when all are answered."""
        try:
            async for message in messages:
                await self._room.acquire()
                self._begin(message)
            while self._tasks:
                await asyncio.wait(self._tasks)
        finally:
            await self._ready.put(None)

    async def answers(self) -> AsyncGenerator[bytes, None]:
        """The answers. Raises StatusError for one that ends the stream."""
        while (message := await self._ready.get()) is not None:
            if isinstance(message, StatusError):
                raise message
            yield message

    def cancel(self) -> None:
        """The client has left: cancel all requests."""
        for task in self._tasks:
            task.cancel()
        while not self._ready.empty():  # the end of the stream needs room, too
            self._ready.get_nowait()

    def _begin(self, message: bytes) -> None:
        request = GrpcRequest(_PATH, message, self._metadata)
        model = model_of_message("ModelStreamInfer", message)
        before = self._last.get(model)
        task = asyncio.get_running_loop().create_task(self._forward(request, model, before))
        self._last[model] = task
        self._tasks.add(task)
        task.add_done_callback(self._end)

    def _end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._room.release()

    async def _forward(self, request: GrpcRequest, model: str, before: asyncio.Task[None] | None) -> None:
        mark = sequence_of(request)
        if mark is not None and before is not None:
            await asyncio.wait((before,))
        group = self._groups.group_of(model)
        if group is None:
            await self._fail(5, f"no group serves the model '{model}'; name it in naiad-ray.yaml")
            return
        session = self._groups.sequences.session(model, mark) if mark else ""
        try:
            await self._pass_on(self._groups.stream_rpc(request, group, session), group, model, mark, before)
        except RayActorError:
            lost = f"the replica of group '{group}' that executed a request of model '{model}' has ended"
            await self._fail(14, self._groups.sequences.drop(model, mark, group) if mark else lost)
        except (BackPressureError, DeploymentUnavailableError) as error:
            await self._fail(14, f"group '{group}' takes no requests now ({type(error).__name__}); try again later")

    async def _pass_on(
        self, answers: Any, group: str, model: str, mark: SequenceMark | None, before: asyncio.Task[None] | None
    ) -> None:
        try:
            async for answer in answers:
                if isinstance(answer, RawAnswer):
                    reason = self._groups.sequences.settle(model, mark, answer.replica, group) if mark else ""
                    if reason or answer.status:
                        await self._fail(14 if reason else answer.status, reason or answer.text)
                        return
                    if not answer.text and before is not None:  # not decoupled: in the order of the requests
                        await asyncio.wait((before,))
                else:
                    await self._ready.put(answer)
        finally:
            answers.cancel()  # harmless where they have come to their end

    async def _fail(self, code: int, message: str) -> None:
        await self._ready.put(StatusError(code, message))
