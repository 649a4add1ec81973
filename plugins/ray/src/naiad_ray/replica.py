"""A replica of a group: a whole Naiad server in a Ray actor, for a front desk or for the proxies themselves."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ray import serve

from naiad_kit.frontends.embedding import Message, StatusError
from naiad_ray.board import Payload, Question
from naiad_ray.gateway import Gateway
from naiad_ray.grpc_service import STREAM, GrpcMethods
from naiad_ray.health import Health
from naiad_ray.local import LocalServer
from naiad_ray.membership import Membership
from naiad_ray.raw import GrpcRequest, HttpRequest, RawAnswer
from naiad_ray.request_fields import model_of_message
from naiad_ray.scaling import QUEUE


@dataclass(frozen=True, slots=True)
class ReplicaPlan:
    """What the replicas of a group serve. A plan that differs replaces them.

    `models` are the patterns of the group (None: every model of the repository) and `other` those of the other
    groups. `digest` is that of the repository's files.
    """

    group: str
    repository: tuple[str, ...]
    options: Mapping[str, Any]
    models: tuple[str, ...] | None
    other: tuple[str, ...]
    digest: str


class Replica:
    """A replica behind a front desk; its public methods are called by handles."""

    async def __init__(self, plan: ReplicaPlan, control: Any) -> None:  # type: ignore[misc]  # as Ray has it
        """Start the server, load its models, and bring it to the state that the control plane keeps."""
        self._plan = plan
        self._control = control
        self._id: str = serve.get_replica_context().replica_id.unique_id
        self._local = await LocalServer.start(plan.repository, plan.options, plan.models, plan.other)
        self._health = Health(self._local.server)
        self._membership = Membership(control, plan.group, self._id, self._carry_out)
        await self._membership.start()

    async def check_health(self) -> None:
        """Raise where Ray should replace this replica, which it does after three checks in a row that raise."""
        reasons = self._health.reasons()
        if self._membership.failed:
            reasons.append("it follows no orders of the control plane any more")
        if reasons:
            raise RuntimeError(
                f"replica {self._id} of group '{self._plan.group}' is to be replaced: {'; '.join(reasons)}"
            )

    async def record_autoscaling_stats(self) -> dict[str, float]:
        """The requests that wait in the queues of models, for groups that scale by them."""
        return {QUEUE: float(sum(report.waiting for report in self._local.server.version_reports()))}

    async def __del__(self) -> None:
        if hasattr(self, "_membership"):
            await self._membership.stop()
        if hasattr(self, "_local"):
            await self._local.stop()

    async def _carry_out(self, payload: Payload) -> object:
        if isinstance(payload, Question):
            return await self._local.report(payload)
        return await self.answer(payload)

    # for front desks

    async def answer(self, request: HttpRequest | GrpcRequest) -> RawAnswer:
        """The answer to a request for one of the models."""
        return replace(await self._local.answer(request), replica=self._id)

    async def stream_http(self, request: HttpRequest) -> AsyncGenerator[Message, None]:
        """The events of ASGI that answer a request."""
        async for event in self._local.stream_http(request):
            yield event

    async def stream_rpc(self, request: GrpcRequest) -> AsyncGenerator[bytes | RawAnswer, None]:
        """The answers to one message of ModelStreamInfer: first an answer that says whether its model is decoupled.

        An error that ends the stream is an answer as well.
        """
        decoupled = self._local.is_decoupled(model_of_message("ModelStreamInfer", request.message))
        yield RawAnswer(0, text="decoupled" if decoupled else "", replica=self._id)

        async def messages() -> AsyncIterator[bytes]:
            yield request.message

        try:
            async for message in self._local.stream_rpc(STREAM, messages(), request.metadata):
                yield message
        except StatusError as error:
            yield RawAnswer(error.code, text=error.message, replica=self._id)


@serve.ingress()
class SoloReplica(Replica, GrpcMethods):
    """A replica of the only group, which the proxies of Ray Serve call directly."""

    async def __init__(self, plan: ReplicaPlan, control: Any) -> None:  # type: ignore[misc]  # as Ray has it
        """As a replica, and with the routes of clients."""
        await Replica.__init__(self, plan, control)
        self._gateway = Gateway(self._local, control, (plan.group,))

    def __serve_build_asgi_app__(self) -> Gateway:
        """The application for HTTP."""
        return self._gateway

    async def rpc(self, request: GrpcRequest) -> RawAnswer:
        """The answer to a call with one message."""
        return await self._gateway.rpc(request)

    def rpc_stream(
        self, messages: AsyncIterator[bytes], metadata: tuple[tuple[str, str | bytes], ...]
    ) -> AsyncGenerator[bytes, None]:
        """The messages that answer those of ModelStreamInfer."""
        return self._local.stream_rpc(STREAM, messages, metadata)
