"""Requests that come together: on one connection, waiting for each other, given up, and announced before they come."""

import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tritonclient.grpc import service_pb2 as pb

from ..answers import Answer, Case, Ports
from ..grpc_asking import grpc_case
from ..http_asking import PATIENCE, Reader, ask, http_case, read_answer, request
from .grpc_making import infer_request
from .grpc_making import tensor as grpc_tensor
from .http_making import ADDS, A, B, document, tensor

_GOOD = request("POST", ADDS, document([A, B]))
_BAD = request("POST", ADDS, document([A]))
_LIVE = request("GET", "/v2/health/live")
_COUNTS = ("*.ns", "*.last_inference")
_APART = 0.1
"""Seconds between two requests, long enough for the first to have begun."""


def cases() -> list[Case]:
    """Every case of this page."""
    closing = request("GET", "/v2/health/live", headers={"Connection": "close"})
    message = pb.ModelStatisticsRequest(name="slow")
    old = _LIVE.replace(b"HTTP/1.1", b"HTTP/1.0")
    return [
        _pipelined("two_good", _GOOD, _GOOD),
        _pipelined("good_after_bad", _BAD, _GOOD),
        _pipelined("after_not_found", request("GET", "/v2/nowhere"), _GOOD),
        _pipelined("after_wrong_method", request("DELETE", ADDS), _GOOD),
        _pipelined("after_close", closing, _LIVE),
        _pipelined("after_http_1.0", old, _LIVE),
        Case("together/expect_continue", _expecting),
        Case("together/queue_is_full", lambda ports: _queued(ports, [400, 1, 1, 1])),
        Case("together/timeout_in_queue", lambda ports: _queued(ports, [400, 1], timeout=100_000)),
        Case("together/in_time", lambda ports: _queued(ports, [200, 1], timeout=5_000_000)),
        _deadline(),
        http_case("together/counts", "GET", "/v2/models/slow/stats", any_value=_COUNTS),
        grpc_case("together/grpc_counts", "ModelStatistics", message, any_value=_COUNTS),
    ]


def _pipelined(key: str, *contents: bytes) -> Case:
    """Requests that are sent at once on one connection."""

    def ask_all(ports: Ports) -> Answer:
        recorded: list[Any] = []
        with socket.create_connection(("127.0.0.1", ports.http), timeout=PATIENCE) as connection:
            connection.sendall(b"".join(contents))
            reader = Reader(connection)
            for content in contents:
                answer = read_answer(reader, content)
                recorded.append([answer.status, answer.document])
        return Answer("asked", {}, recorded)

    return Case(f"together/{key}", ask_all)


def _expecting(ports: Ports) -> Answer:
    """A client that waits for `100 Continue` before it sends its body, as curl does."""
    head, body = _GOOD.split(b"\r\n\r\n", 1)
    with socket.create_connection(("127.0.0.1", ports.http), timeout=PATIENCE) as connection:
        connection.sendall(head + b"\r\nExpect: 100-continue\r\n\r\n")
        first = connection.recv(4096).split(b"\r\n")[0]
        connection.sendall(body)
        answer = read_answer(Reader(connection), _GOOD)
    return Answer(answer.status, {"first": first.decode()}, answer.document)


def _slow(milliseconds: int, timeout: int) -> bytes:
    model_input = document([tensor("MILLISECONDS", "INT32", [1, 1], [milliseconds])])
    parameters = {"parameters": {"timeout": timeout}} if timeout else {}
    return request("POST", "/v2/models/slow/infer", model_input | parameters)


def _queued(ports: Ports, milliseconds: list[int], timeout: int = 0) -> Answer:
    """Requests to the slow model, one shortly after the other; all but the first may have a timeout (microseconds)."""

    def later(index: int) -> Answer:
        time.sleep(index * _APART)
        return ask(ports, _slow(milliseconds[index], timeout if index else 0))

    return _together([lambda index=index: later(index) for index in range(len(milliseconds))])


def _together(asking: list[Callable[[], Answer]]) -> Answer:
    with ThreadPoolExecutor(len(asking)) as pool:
        answers = [future.result() for future in [pool.submit(each) for each in asking]]
    return Answer("asked", {}, {"statuses": [answer.status for answer in answers]})


def _deadline() -> Case:
    """A gRPC call whose caller gives up."""
    message = infer_request("slow", [grpc_tensor("MILLISECONDS", "INT32", [1, 1], int_contents=[500])])
    return grpc_case("together/grpc_deadline", "ModelInfer", message, timeout=0.1)
