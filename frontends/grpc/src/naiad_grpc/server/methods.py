"""Methods that are served, by their path, and the interpreter of the heads of calls."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from naiad.extend import requests_stage
from naiad_grpc.http2.fields import RequestFields
from naiad_grpc.http2.header_blocks import HeadCache
from naiad_grpc.service.operations import Operation
from naiad_grpc.wire.heads import CallHead, call_head
from naiad_kit.explaining import EXPLAIN_HEADER


@dataclass(frozen=True, slots=True)
class Method:
    """A method as a call finds it; `explained` if its caller requests explanations of all its requests."""

    operation: Operation
    explained: bool


def head_cache(operations: Iterable[Operation]) -> HeadCache[CallHead[Method]]:
    """The heads of calls of these operations, by their header blocks."""
    plain = {each.path: Method(each, False) for each in operations}
    explained = {path: Method(each.operation, True) for path, each in plain.items()}
    return HeadCache(partial(_interpret, plain, explained))


def _interpret(plain: dict[str, Method], explained: dict[str, Method], request: RequestFields) -> CallHead[Method]:
    header = EXPLAIN_HEADER.encode()
    wish = next((value for name, value in request.fields if name == header), None)
    methods = explained if wish is not None and requests_stage(wish.decode("utf-8", "replace")) else plain
    return call_head(request, methods.get)
