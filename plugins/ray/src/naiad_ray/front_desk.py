"""The front desk: an ingress without models, which forwards raw requests to the groups that have them."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Any

from ray import serve
from ray.exceptions import RayActorError
from ray.serve.exceptions import BackPressureError, DeploymentUnavailableError

from naiad_ray.description import Description
from naiad_ray.gateway import NOT_FOUND, UNAVAILABLE, Gateway, error_answer
from naiad_ray.grpc_service import GrpcMethods
from naiad_ray.local import LocalServer, answer_asgi
from naiad_ray.raw import GrpcRequest, HttpRequest, RawAnswer
from naiad_ray.request_fields import SequenceMark, sequence_of
from naiad_ray.sequences import SequenceOwners
from naiad_ray.streams import ForwardedStream

_FAILURES = (RayActorError, BackPressureError, DeploymentUnavailableError)


class Groups:
    """The groups as a front desk calls them, and the replicas that have the sequences it has begun."""

    def __init__(self, description: Description, handles: Mapping[str, Any]) -> None:
        self._description = description
        self._handles = dict(handles)
        self._answering = {name: handle.options(method_name="answer") for name, handle in self._handles.items()}
        self.sequences = SequenceOwners()

    def group_of(self, model: str) -> str | None:
        """The group of a model; the first group for requests that any replica answers."""
        if not model:
            return self._description.groups[0].name
        group = self._description.group_of(model)
        return None if group is None else group.name

    async def answer(self, request: HttpRequest | GrpcRequest, model: str) -> RawAnswer:
        """The answer of a replica; one that ends meanwhile is an error that says so."""
        group = self.group_of(model)
        if group is None:
            return error_answer(request, NOT_FOUND, f"no group serves the model '{model}'; name it in naiad-ray.yaml")
        mark = sequence_of(request)
        if mark is None:
            try:
                answer: RawAnswer = await self._answering[group].remote(request)
            except _FAILURES as error:
                return error_answer(request, UNAVAILABLE, failure_of(error, group, model))
            return answer
        return await self._answer_of_sequence(request, group, model, mark)

    async def stream_http(self, request: HttpRequest, model: str, send: Any) -> None:
        """Send the events of a replica's answer."""
        group = self.group_of(model)
        if group is None:
            message = f"no group serves the model '{model}'; name it in naiad-ray.yaml"
            await answer_asgi(error_answer(request, NOT_FOUND, message), send)
            return
        begun = False
        try:
            async for event in self._handles[group].options(method_name="stream_http", stream=True).remote(request):
                begun = True
                await send(event)
        except _FAILURES as error:
            if begun:
                raise
            await answer_asgi(error_answer(request, UNAVAILABLE, failure_of(error, group, model)), send)

    def stream_rpc(self, request: GrpcRequest, group: str, session: str) -> Any:
        """The answers to one message of ModelStreamInfer, as they come from a replica."""
        handle = self._handles[group]
        return handle.options(method_name="stream_rpc", stream=True, session_id=session).remote(request)

    async def _answer_of_sequence(
        self, request: HttpRequest | GrpcRequest, group: str, model: str, mark: SequenceMark
    ) -> RawAnswer:
        handle = self._answering[group].options(session_id=self.sequences.session(model, mark))
        try:
            answer: RawAnswer = await handle.remote(request)
        except RayActorError:
            return error_answer(request, UNAVAILABLE, self.sequences.drop(model, mark, group))
        except _FAILURES as error:
            return error_answer(request, UNAVAILABLE, failure_of(error, group, model))
        reason = self.sequences.settle(model, mark, answer.replica, group)
        return error_answer(request, UNAVAILABLE, reason) if reason else answer


def failure_of(error: BaseException, group: str, model: str) -> str:
    """The message for a request that no replica answered."""
    if isinstance(error, RayActorError):
        return (
            f"the replica of group '{group}' that executed this request of model '{model}' has ended; whether it was "
            "executed is unknown: send it again if it may be executed twice"
        )
    return f"group '{group}' of model '{model}' takes no requests now ({type(error).__name__}); try again later"


@serve.ingress()
class FrontDesk(GrpcMethods):
    """The ingress of an application with groups."""

    async def __init__(self, description: Description, control: Any, handles: Mapping[str, Any]) -> None:  # type: ignore[misc]  # as Ray has it
        """Start a server without models, for what it answers itself."""
        self._local = await LocalServer.start((), description.options, (), ())
        self._groups = Groups(description, handles)
        self._gateway = Gateway(self._local, control, [group.name for group in description.groups], self._groups)

    def __serve_build_asgi_app__(self) -> Gateway:
        """The application for HTTP."""
        return self._gateway

    async def check_health(self) -> None:
        """Raise where Ray should replace this front desk."""
        if not self._local.server.live():
            raise RuntimeError("the server of the front desk has stopped")

    async def __del__(self) -> None:
        if hasattr(self, "_local"):
            await self._local.stop()

    async def rpc(self, request: GrpcRequest) -> RawAnswer:
        """The answer to a call with one message."""
        return await self._gateway.rpc(request)

    async def rpc_stream(
        self, messages: AsyncIterator[bytes], metadata: tuple[tuple[str, str | bytes], ...]
    ) -> AsyncGenerator[bytes, None]:
        """The messages that answer those of ModelStreamInfer, each of which goes to the group of its model."""
        stream = ForwardedStream(self._groups, metadata)
        reading = asyncio.get_running_loop().create_task(stream.read(messages))
        try:
            async for message in stream.answers():
                yield message
        finally:
            reading.cancel()
            stream.cancel()
