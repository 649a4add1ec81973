"""Request intake: decodes messages to requests, and applies the deadline and metadata of their call."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from time import monotonic, monotonic_ns
from typing import TYPE_CHECKING, Protocol

from naiad.errors import drop_tracebacks
from naiad.types import Request
from naiad_grpc.codec import Decoder, RequestMessage, ResponseForm, model_name_and_version, request_memory, takes_long
from naiad_grpc.codec.versions import model_version
from naiad_grpc.trace_attributes import call_attributes
from naiad_kit.explaining import EXPLAIN
from naiad_kit.frontends.body_memory import body_memory_of
from naiad_kit.frontends.codec_threads import CodecThreads
from naiad_kit.frontends.forwarding import HeaderForwarding
from naiad_kit.shared_memory import shared_memory_of
from naiad_kit.tracing import add_attributes, tracing_of

if TYPE_CHECKING:
    from naiad.server import ServerApi


class CallContext(Protocol):
    """The context of a call; that of `grpc.aio` is one.

    It may also have `peer() -> str`, the caller's address, or `peer_and_trace() -> tuple[str, str]`, which is what
    `peer_and_trace_of` returns then; and with that `connection`, which has the address as its `peer`, and `head`, an
    object that tells by its identity that calls have the same metadata.
    """

    def time_remaining(self) -> float | None:
        """The seconds until the caller's deadline, None without one."""
        ...

    def invocation_metadata(self) -> "Iterable[tuple[str, str | bytes]] | None":
        """The caller's metadata; its keys are in lower case."""
        ...


class ExplainedContext:
    """The context of a call whose caller requests explanations of all its requests; wraps the transport's context."""

    def __init__(self, context: CallContext) -> None:
        self._context = context

    def time_remaining(self) -> float | None:
        """As in the transport's context."""
        return self._context.time_remaining()

    def invocation_metadata(self) -> "Iterable[tuple[str, str | bytes]] | None":
        """As in the transport's context."""
        return self._context.invocation_metadata()

    def peer_and_trace(self) -> tuple[str, str]:
        """As `peer_and_trace_of` the transport's context."""
        return peer_and_trace_of(self._context)


def peer_and_trace_of(context: CallContext) -> tuple[str, str]:
    """The caller's address, as `127.0.0.1:5000` or as gRPC writes it, `ipv4:127.0.0.1:5000`, and its traceparent.

    The address is "-" if it is unknown, `traceparent` (W3C Trace Context) "" for none.
    """
    find: Callable[[], tuple[str, str]] | None = getattr(context, "peer_and_trace", None)
    if find is not None:
        return find()
    peer: Callable[[], str] = getattr(context, "peer", _no_peer)
    texts = [value for name, value in context.invocation_metadata() or () if name == "traceparent"]
    return peer(), texts[-1] if texts and isinstance(texts[-1], str) else ""


def _no_peer() -> str:
    return "-"


@dataclass(frozen=True, slots=True)
class Caller:
    """The properties that all requests of one call share: deadline, parameters from metadata, and trace context.

    `method` is the name of the RPC, where requests may be traced.
    """

    deadline: float | None = None
    forwarded: Mapping[str, str] = field(default_factory=dict)
    traceparent: str = ""
    tracestate: str = ""
    method: str = ""


DEFAULT_CALLER = Caller()
"""A caller without deadline, parameters and trace context."""


Decoded = tuple[Request, ResponseForm] | Exception
"""A large request that is decoded before it is read, or the error of decoding it."""


class Intake:
    """Decodes requests and applies the properties of their callers."""

    def __init__(self, server: "ServerApi", forwarding: HeaderForwarding, threads: CodecThreads) -> None:
        self._server = server
        self._tracing = tracing_of(server)
        self._threads = threads
        self._forwarding = forwarding
        reserve = body_memory_of(server)
        self._decoder = Decoder(shared_memory_of(server), reserve)
        self.memory = partial(request_memory, reserve)

    def caller(self, context: CallContext, method: str) -> Caller:
        """Who makes that call of an RPC. Raises InvalidArgumentError when metadata to forward has a reserved name."""
        remaining = context.time_remaining()
        deadline = None if remaining is None else monotonic() + remaining
        is_explained = type(context) is ExplainedContext
        if not (deadline is not None or is_explained or self._forwarding.active or self._tracing.active):
            return DEFAULT_CALLER
        explained = {EXPLAIN: "true"} if is_explained else {}
        if not (self._forwarding.active or self._tracing.active):
            return Caller(deadline, explained)
        texts = [(key, value) for key, value in context.invocation_metadata() or () if isinstance(value, str)]
        metadata = dict(texts)
        forwarded = self._forwarding.of(self._to_forward(texts)) if self._forwarding.active else {}
        parent, state = metadata.get("traceparent", ""), metadata.get("tracestate", "")
        return Caller(deadline, {**forwarded, **explained}, parent, state, method)

    def _to_forward(self, texts: list[tuple[str, str]]) -> list[tuple[str, str]]:
        """The metadata that models may see."""
        return texts

    def decode(self, message: RequestMessage) -> tuple[Decoded | None, Callable[[], Awaitable[Decoded]] | None]:
        """A message of COSTLY_BYTES or more, decoded, or what decodes it on a thread; neither if `read` can at once."""
        decoded = self._decoder.expected_view(message)
        return decoded, partial(self._decode, message) if decoded is None and takes_long(message) else None

    async def _decode(self, message: RequestMessage) -> Decoded:
        try:
            name, version = model_name_and_version(message)
            if name:
                self._server.model_config(name, model_version(version))  # refuses an unknown model at little cost
            return self._decoder.complete(await self._threads.run(partial(self._decoder.read, message)))
        except Exception as error:  # noqa: BLE001 - `read` raises it for the caller
            drop_tracebacks(error)
            return error

    def read(
        self, message: RequestMessage, caller: Caller, decoded: Decoded | None = None
    ) -> tuple[Request, ResponseForm]:
        """The request in a message and the form of its response; `decoded` is from `decode`. Raises NaiadError."""
        tracing = self._tracing
        started_ns = monotonic_ns()
        if isinstance(decoded, Exception):
            raise decoded
        request, form = decoded or self._decoder.decode(message)
        request.received_ns = started_ns
        if caller is not DEFAULT_CALLER:
            request.deadline = caller.deadline
            if caller.forwarded:  # a gateway's metadata override the caller's parameters
                request.parameters = {**request.parameters, **caller.forwarded}
        if tracing.active:
            trace = tracing.sample(
                request.model_name, request.version, request.id, caller.traceparent, caller.tracestate
            )
            if trace is not None:
                trace.record("GRPC_WAITREAD_START", started_ns)
                trace.record("GRPC_WAITREAD_END")
                add_attributes(trace, call_attributes(caller.method))
                request.trace = trace
        return request, form
