"""The way in: the bytes of a message to a request, with what the call that carries it says about its caller."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from time import monotonic, monotonic_ns
from typing import TYPE_CHECKING, Protocol

from naiad.errors import drop_tracebacks
from naiad.explaining import EXPLAIN
from naiad.shared_memory import shared_memory_of
from naiad.tracing import tracing_of
from naiad.types import Request
from naiad_grpc.codec import AnswerForm, Decoder, model_name_and_version, takes_long
from naiad_grpc.codec.versions import model_version
from naiad_kit.frontends.codec_threads import CodecThreads
from naiad_kit.frontends.forwarding import HeaderForwarding

if TYPE_CHECKING:
    from naiad.server import ServerApi


class CallContext(Protocol):
    """What a transport tells of a call; the context of `grpc.aio` is one."""

    def time_remaining(self) -> float | None:
        """The seconds until the caller's deadline, None without one."""
        ...

    def invocation_metadata(self) -> "Iterable[tuple[str, str | bytes]] | None":
        """The caller's metadata; its keys are in lower case."""
        ...


class ExplainedContext:
    """The context of a call whose caller asks for explanations of all its requests, over the transport's own."""

    def __init__(self, context: CallContext) -> None:
        self._context = context

    def time_remaining(self) -> float | None:
        """As the transport tells it."""
        return self._context.time_remaining()

    def invocation_metadata(self) -> "Iterable[tuple[str, str | bytes]] | None":
        """As the transport tells it."""
        return self._context.invocation_metadata()


@dataclass(frozen=True, slots=True)
class Caller:
    """What all requests of one call have in common: the deadline, what becomes their parameters, and the trace."""

    deadline: float | None = None
    forwarded: Mapping[str, str] = field(default_factory=dict)
    traceparent: str = ""
    tracestate: str = ""


NOBODY = Caller()
"""A caller who says nothing."""


Decoded = tuple[Request, AnswerForm] | Exception
"""A request that was decoded on a thread, or what is wrong with it."""


class Intake:
    """Reads requests."""

    def __init__(self, server: "ServerApi", forwarding: HeaderForwarding, threads: CodecThreads) -> None:
        self._server = server
        self._tracing = tracing_of(server)
        self._threads = threads
        self._forwarding = forwarding
        self._decoder = Decoder(shared_memory_of(server))
        self._large_decoder = Decoder(shared_memory_of(server))

    def caller(self, context: CallContext) -> Caller:
        """Who makes that call. Raises InvalidArgumentError when metadata to forward has a reserved name."""
        remaining = context.time_remaining()
        deadline = None if remaining is None else monotonic() + remaining
        explained = {EXPLAIN: "true"} if type(context) is ExplainedContext else {}
        if not (self._forwarding.active or self._tracing.active):
            return NOBODY if deadline is None and not explained else Caller(deadline, explained)
        texts = [(key, value) for key, value in context.invocation_metadata() or () if isinstance(value, str)]
        given = dict(texts)
        forwarded = self._forwarding.of(texts) if self._forwarding.active else {}
        return Caller(deadline, {**forwarded, **explained}, given.get("traceparent", ""), given.get("tracestate", ""))

    async def decode(self, message: bytes) -> Decoded | None:
        """A message of COSTLY_BYTES or more, decoded on a thread, or its error; None when `read` can do it at once."""
        try:
            name, version = model_name_and_version(message)
            if name:
                self._server.model_config(name, model_version(version))  # refuses an unknown model for little
            if not takes_long(message):
                return None
            return await self._threads.run(partial(self._large_decoder.decode_large, message))
        except Exception as error:  # noqa: BLE001 - whoever reads the message tells its caller
            drop_tracebacks(error)
            return error

    def read(self, message: bytes, caller: Caller, decoded: Decoded | None = None) -> tuple[Request, AnswerForm]:
        """The request in a message, and the form of answer that it wants; `decoded` is its own. Raises NaiadError."""
        tracing = self._tracing
        started_ns = monotonic_ns()
        if isinstance(decoded, Exception):
            raise decoded
        request, form = decoded or self._decoder.decode(message)
        request.received_ns = started_ns
        if caller is not NOBODY:
            request.deadline = caller.deadline
            if caller.forwarded:  # a gateway's word counts more than the caller's
                request.parameters = {**request.parameters, **caller.forwarded}
        if tracing.active:
            trace = tracing.sample(
                request.model_name, request.version, request.id, caller.traceparent, caller.tracestate
            )
            if trace is not None:
                trace.record("GRPC_WAITREAD_START", started_ns)
                trace.record("GRPC_WAITREAD_END")
                request.trace = trace
        return request, form
