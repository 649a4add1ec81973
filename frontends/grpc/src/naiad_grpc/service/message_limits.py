"""Limits of the messages of RPCs other than inference: protobuf parses them on the event loop, so they must be short.

Only a request to load a model may be long, with the files of the model in it. It is parsed as fast as its files are
copied, as long as it has few fields.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import Any

from naiad.errors import InvalidArgumentError
from naiad_grpc.codec.framing import Fields, field_end, read_varint
from naiad_grpc.service.operations import Operation, UnaryOperation
from naiad_grpc.statuses import Code, RpcError

MAX_BYTES = 65536
"""The maximum size of such a message. The slowest one of this size takes some 20 ms to parse and to apply."""

MOST_LOAD_FIELDS = 8192
"""The maximum of fields of a load request: each file and each part of its name and content is one."""

_NESTED: Mapping[int, Any] = {0x1A: {0x12: {}}}
"""The nested messages of a load request that are counted: `parameters`, and their values."""


def limited(operation: Operation) -> Operation:
    """The RPC with the limit of its messages."""
    check = _check_load if operation.path.endswith("/RepositoryModelLoad") else _check_size
    if isinstance(operation, UnaryOperation):
        return replace(operation, answer=partial(_answer, operation.answer, check))
    return replace(operation, answer=partial(_answer_stream, operation.answer, check))


async def _answer(
    answer: Callable[[bytes, Any], Awaitable[bytes]], check: Callable[[bytes], None], message: bytes, context: Any
) -> bytes:
    check(message)
    return await answer(message, context)


async def _answer_stream(
    answer: Callable[[AsyncIterator[bytes], Any], AsyncGenerator[bytes, None]],
    check: Callable[[bytes], None],
    messages: AsyncIterator[bytes],
    context: Any,
) -> AsyncGenerator[bytes, None]:
    async def checked() -> AsyncGenerator[bytes, None]:
        async for message in messages:
            check(message)
            yield message

    async with aclosing(answer(checked(), context)) as answered:
        async for each in answered:
            yield each


def _check_size(message: bytes) -> None:
    if len(message) > MAX_BYTES:
        raise RpcError(
            Code.RESOURCE_EXHAUSTED,
            f"the message of {len(message)} bytes exceeds the maximum of {MAX_BYTES} bytes for this RPC",
        )


def _check_load(message: bytes) -> None:
    if len(message) <= MAX_BYTES:
        return
    try:
        _count(message, 0, len(message), _NESTED, Fields(MOST_LOAD_FIELDS))
    except (IndexError, InvalidArgumentError) as error:
        raise RpcError(
            Code.INVALID_ARGUMENT,
            f"the message is not a valid RepositoryModelLoadRequest, or has more than {MOST_LOAD_FIELDS} fields; send "
            "the files of a model alone",
        ) from error


def _count(message: bytes, start: int, end: int, nested: Mapping[int, Any], fields: Fields) -> None:
    """Count the fields between two offsets. Raises InvalidArgumentError, or IndexError where the message is cut."""
    while start < end:
        tag, content = read_varint(message, start)
        start = field_end(message, tag, content, fields)
        if tag in nested:
            _, first = read_varint(message, content)
            _count(message, first, min(start, end), nested[tag], fields)
