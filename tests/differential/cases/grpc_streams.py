"""ModelStreamInfer: decoupled models, errors in the stream, final flags, and ordinary models on a stream."""

from typing import Any

from google.protobuf.message import Message

from ..answers import Case
from ..grpc_asking import stream_case
from .grpc_making import RAW, A, B, infer_request, tensor

_EMPTY_FINAL = {"triton_enable_empty_final_response": True}
_STRICT = (("triton_grpc_error", "true"),)


def cases() -> list[Case]:
    """Every case of this page."""
    unknown = infer_request("nothing", [], id="u")
    bad = infer_request("add_sub", [A], RAW[:1], id="bad")
    return [
        stream_case("stream/nothing", []),
        stream_case("stream/plain", [_adds("a")]),
        stream_case("stream/plain_without_id", [_adds("")]),
        stream_case("stream/plain_empty_final", [_adds("a", parameters=_EMPTY_FINAL)]),
        stream_case("stream/three", [_adds("a"), _adds("b"), _adds("c")]),
        stream_case("stream/none", [_repeat("r", 0)]),
        stream_case("stream/none_empty_final", [_repeat("r", 0, parameters=_EMPTY_FINAL)]),
        stream_case("stream/one", [_repeat("r", 1)]),
        stream_case("stream/five", [_repeat("r", 5)]),
        stream_case("stream/five_empty_final", [_repeat("r", 5, parameters=_EMPTY_FINAL)]),
        stream_case("stream/ends_with_last", [_repeat("r", 2, end=True)]),
        stream_case("stream/ends_with_last_empty_final", [_repeat("r", 2, end=True, parameters=_EMPTY_FINAL)]),
        stream_case("stream/empty_among", [_repeat("r", 3, empty_at=1)]),
        stream_case("stream/empty_at_last", [_repeat("r", 2, empty_at=1, end=True)]),
        stream_case("stream/error_among", [_repeat("r", 3, fail_at=1)]),
        stream_case("stream/error_at_last", [_repeat("r", 3, fail_at=2, end=True)]),
        stream_case("stream/one_after_the_other", [_repeat("r", 2), _adds("a"), _repeat("s", 2)][:1]),
        stream_case("stream/unknown_model", [unknown]),
        stream_case("stream/unknown_then_good", [unknown, _adds("a")]),
        stream_case("stream/bad_request", [bad]),
        stream_case("stream/bad_then_good", [bad, _adds("a")]),
        stream_case("stream/bad_without_id", [infer_request("add_sub", [A], RAW[:1])]),
        stream_case("stream/failing_model", [_failing("f")]),
        stream_case("stream/failing_then_good", [_failing("f"), _adds("a")]),
        stream_case("stream/strict_good", [_adds("a")], _STRICT),
        stream_case("stream/strict_unknown", [unknown], _STRICT),
        stream_case("stream/strict_bad", [bad], _STRICT),
        stream_case("stream/strict_failing", [_failing("f")], _STRICT),
        stream_case("stream/strict_error_among", [_repeat("r", 3, fail_at=1)], _STRICT),
        stream_case("stream/strict_false", [bad], (("triton_grpc_error", "false"),)),
        stream_case("stream/noise", [b"\xff\xff\xff"]),
        stream_case("stream/latin_1", [b"\x0a\x01\xfc"]),
    ]


def _adds(key: str, **more: Any) -> Message:
    return infer_request("add_sub", [A, B], RAW, id=key, **more)


def _repeat(
    key: str, count: int, fail_at: int | None = None, empty_at: int | None = None, end: bool = False, **more: Any
) -> Message:
    inputs = [tensor("IN", "INT32", [1], int_contents=[count])]
    for name, index in (("FAIL_AT", fail_at), ("EMPTY_AT", empty_at)):
        if index is not None:
            inputs.append(tensor(name, "INT32", [1], int_contents=[index]))
    if end:
        inputs.append(tensor("END_WITH_LAST", "BOOL", [1], bool_contents=[True]))
    return infer_request("repeat", inputs, id=key, **more)


def _failing(key: str) -> Message:
    return infer_request("failing", [tensor("IN", "INT32", [1], int_contents=[1])], id=key)
