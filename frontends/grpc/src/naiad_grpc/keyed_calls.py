"""API keys of calls whose model is known only from their messages: requests of inference, and the other RPCs."""

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from google.protobuf.message import DecodeError

from naiad.types import Request
from naiad_grpc.admission import refused_key
from naiad_grpc.codec import RequestMessage, ResponseForm
from naiad_grpc.inference_intake import CallContext, Caller, Decoded, Intake
from naiad_grpc.named_models import NamedModel, named_model
from naiad_grpc.service.operations import Operation, UnaryOperation
from naiad_kit.frontends.api_keys import ApiKeys, api_keys_of, credential_headers, credential_of
from naiad_kit.frontends.codec_threads import CodecThreads
from naiad_kit.frontends.forwarding import HeaderForwarding

if TYPE_CHECKING:
    from naiad.server import ServerApi


@dataclass(frozen=True, slots=True)
class KeyedCaller(Caller):
    """A caller with the SHA-256 of the API key that it presents, b"" for none."""

    credential: bytes = b""


class KeyedIntake(Intake):
    """Request intake of a server with API keys: checks the key of its caller for the model of each request.

    It does so for each request of a stream, so that a key that is revoked ends its use there too.
    """

    def __init__(self, server: "ServerApi", forwarding: HeaderForwarding, threads: CodecThreads, keys: ApiKeys) -> None:
        super().__init__(server, forwarding, threads)
        self._keys = keys

    def caller(self, context: CallContext, method: str) -> Caller:
        """As in Intake, with the credential of the caller."""
        caller = super().caller(context, method)
        return KeyedCaller(
            caller.deadline,
            caller.forwarded,
            caller.traceparent,
            caller.tracestate,
            caller.method,
            _credential(context),
        )

    def _to_forward(self, texts: list[tuple[str, str]]) -> list[tuple[str, str]]:
        """All metadata but that with the API key of the caller."""
        secret = credential_headers((key.encode(), value.encode()) for key, value in texts)
        return [(key, value) for key, value in texts if key.encode() not in secret]

    def read(
        self, message: RequestMessage, caller: Caller, decoded: Decoded | None = None
    ) -> tuple[Request, ResponseForm]:
        """As in Intake. Raises RpcError too, for a model that the caller's key is not for."""
        request, form = super().read(message, caller, decoded)
        credential = caller.credential if isinstance(caller, KeyedCaller) else b""
        refusal = self._keys.refusal(credential, "inference", request.model_name)
        if refusal is not None:
            if request.trace is not None:
                request.trace.end()
            raise refused_key(refusal)
        return request, form


def make_intake(server: "ServerApi", forwarding: HeaderForwarding, threads: CodecThreads) -> Intake:
    """The request intake of a server, with or without API keys."""
    keys = api_keys_of(server)
    return Intake(server, forwarding, threads) if keys is None else KeyedIntake(server, forwarding, threads, keys)


def keyed(operation: Operation, keys: ApiKeys) -> Operation:
    """The RPC with a check of the key for the model that its message names. Streams other than inference name none."""
    if not isinstance(operation, UnaryOperation):
        return operation
    return replace(operation, answer=partial(_answer, operation, keys, named_model(operation.path)))


async def _answer(
    operation: UnaryOperation, keys: ApiKeys, named: NamedModel | None, message: bytes, context: CallContext
) -> bytes:
    try:
        model = "" if named is None else named.read(message)[0]
    except DecodeError:
        return await operation.answer(message, context)  # raises, with the reason
    refusal = keys.refusal(_credential(context), operation.api, model)
    if refusal is not None:
        raise refused_key(refusal)
    return await operation.answer(message, context)


def _credential(context: CallContext) -> bytes:
    metadata = context.invocation_metadata() or ()
    return credential_of(
        (key.encode(), value if isinstance(value, bytes) else value.encode()) for key, value in metadata
    )
