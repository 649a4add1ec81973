"""The RPCs without a transport, for other servers of gRPC: restrictions, limits and statuses as with a listener."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import aclosing
from typing import Any

from naiad.extend import requests_stage
from naiad_grpc.admission import Admission
from naiad_grpc.inference_intake import ExplainedContext
from naiad_grpc.service.operations import Operation, StreamOperation, UnaryOperation
from naiad_grpc.statuses import RpcError, rpc_error
from naiad_kit.explaining import EXPLAIN_HEADER
from naiad_kit.frontends.api_keys import ApiKeys
from naiad_kit.frontends.embedding import Call, Rpc, StatusError, StreamRpc


def embedded_rpcs(
    operations: Iterable[Operation], settings: Mapping[str, Any], keys: ApiKeys | None = None
) -> list[Rpc | StreamRpc]:
    """The operations as RPCs that raise StatusError. Raises InvalidArgumentError for a bad rule of restriction."""
    admission = Admission(settings, keys)
    return [
        Rpc(each.path, _unary(each, admission))
        if isinstance(each, UnaryOperation)
        else StreamRpc(each.path, _stream(each, admission))
        for each in operations
    ]


def _unary(operation: UnaryOperation, admission: Admission) -> Callable[[bytes, Call], Awaitable[bytes]]:
    async def answer(message: bytes, call: Call) -> bytes:
        _admit(operation, admission, call)
        try:
            return await operation.answer(message, _explained(call))
        except Exception as error:  # noqa: BLE001 - the caller gets a status for every error
            failure = rpc_error(error)
        finally:
            admission.end_call(operation.api)
        raise _status(failure)

    return answer


def _stream(
    operation: StreamOperation, admission: Admission
) -> Callable[[AsyncIterator[bytes], Call], AsyncGenerator[bytes, None]]:
    async def answer(messages: AsyncIterator[bytes], call: Call) -> AsyncGenerator[bytes, None]:
        _admit(operation, admission, call)
        failure: RpcError | None = None
        try:
            async with aclosing(operation.answer(messages, _explained(call))) as answered:
                async for message in answered:
                    yield message
        except Exception as error:  # noqa: BLE001 - as above
            failure = rpc_error(error)
        finally:
            admission.end_call(operation.api)
        if failure is not None:
            raise _status(failure)

    return answer


def _admit(operation: Operation, admission: Admission, call: Call) -> None:
    if not admission.is_open:
        metadata = ((key.encode(), _as_bytes(value)) for key, value in call.invocation_metadata() or ())
        refusal = admission.refusal(operation.api, metadata)
        if refusal is not None:
            raise _status(refusal)
    admission.begin(operation.api)


def _explained(call: Call) -> Call:
    for key, value in call.invocation_metadata() or ():
        if key == EXPLAIN_HEADER and requests_stage(_as_text(value)):
            return ExplainedContext(call)
    return call


def _status(error: RpcError) -> StatusError:
    return StatusError(int(error.code), error.message)


def _as_bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


def _as_text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode("latin-1")
