"""The binary extension over HTTP: tensors behind the JSON, raw bodies, and lengths that lie."""

import numpy as np

from ..answers import Case
from ..http_asking import http_case
from .http_making import HEADER, A, B, adds, binary, document, floats, requested, strings, tensor

_NUMPY = {"BOOL": "?", "FP16": "f2", "FP32": "f4", "FP64": "f8", "BF16": "u2"}
KINDS = (
    "BOOL",
    *(f"{sign}INT{bits}" for sign in ("U", "") for bits in (8, 16, 32, 64)),
    "FP16",
    "FP32",
    "FP64",
    "BF16",
)


def cases() -> list[Case]:
    """Every case of this page."""
    return [*_datatypes(), *_outputs(), *_lengths(), *_strings(), *_raw()]


def content_of(kind: str) -> bytes:
    code = _NUMPY.get(kind) or f"{'u' if kind[0] == 'U' else 'i'}{int(kind.lstrip('UINT')) // 8}"
    return np.array([0, 1, 100], code).tobytes()


def _mirrored(key: str, kind: str, content: bytes, shape: list[int], **parameters: object) -> Case:
    model_input = tensor(f"IN_{kind}", kind, shape, binary_data_size=len(content), **parameters)
    return binary(key, "mirror", document([model_input], parameters={"binary_data_output": True}), content)


def _datatypes() -> list[Case]:
    results = [_mirrored(f"binary/{kind}", kind, content_of(kind), [3]) for kind in KINDS]
    results += [_mirrored(f"binary/{kind}_empty", kind, b"", [0]) for kind in (*KINDS, "BYTES")]
    return [
        *results,
        _mirrored("binary/BYTES", "BYTES", strings(b"one", b"", b"\xff\x00\xfe"), [3]),
        _mirrored("binary/BOOL_2", "BOOL", b"\x00\x02\xff", [3]),
    ]


def _both(size: int = 16) -> list[dict]:
    return [tensor(name, "FP32", [1, 4], binary_data_size=size) for name in ("INPUT0", "INPUT1")]


_EIGHT = floats(1, 2, 3, 4, 5, 6, 7, 8)


def _outputs() -> list[Case]:
    only_json = tensor("INPUT1", "FP32", [1, 4], [5, 6, 7, 8])
    return [
        binary("binary/in_json_out", "add_sub", document(_both()), _EIGHT),
        binary("binary/mixed", "add_sub", document([_both()[0], only_json]), _EIGHT[:16]),
        adds("binary/all_out", parameters={"binary_data_output": True}),
        adds("binary/one_out", outputs=[*requested("OUTPUT0", binary_data=True), *requested("OUTPUT1")]),
        adds("binary/listed_beside_default", parameters={"binary_data_output": True}, outputs=requested("OUTPUT0")),
        adds(
            "binary/listed_false",
            parameters={"binary_data_output": True},
            outputs=requested("OUTPUT0", binary_data=False),
        ),
        adds("binary/output_number", parameters={"binary_data_output": 1}),
        adds("binary/output_text", parameters={"binary_data_output": "true"}),
        http_case(
            "binary/empty_out",
            "POST",
            "/v2/models/vector/infer",
            {"inputs": [tensor("IN", "FP32", [1, 0], [])], "parameters": {"binary_data_output": True}},
        ),
    ]


def _lengths() -> list[Case]:
    good = document(_both())
    both_ways = {**A, "parameters": {"binary_data_size": 16}}
    return [
        binary("lengths/too_short", "add_sub", good, _EIGHT[:-1]),
        binary("lengths/too_long", "add_sub", good, _EIGHT + b"x"),
        binary("lengths/no_bytes", "add_sub", good),
        binary("lengths/other_size", "add_sub", document(_both(12)), _EIGHT[:24]),
        binary("lengths/size_0", "add_sub", document(_both(0))),
        binary("lengths/size_negative", "add_sub", document(_both(-1)), _EIGHT),
        binary("lengths/size_huge", "add_sub", document(_both(2**62)), _EIGHT),
        binary("lengths/size_2_64", "add_sub", document(_both(2**64)), _EIGHT),
        binary(
            "lengths/size_text",
            "add_sub",
            document([{**each, "parameters": {"binary_data_size": "16"}} for each in _both()]),
            _EIGHT,
        ),
        binary("lengths/data_and_size", "add_sub", document([both_ways, B]), _EIGHT[:16]),
        binary("lengths/neither", "add_sub", document([tensor("INPUT0", "FP32", [1, 4]), B])),
        binary("lengths/all_json", "add_sub", document([A, B])),
        binary("lengths/all_json_and_more", "add_sub", document([A, B]), b"xxxx"),
        binary("lengths/header_text", "add_sub", good, _EIGHT, "many"),
        binary("lengths/header_empty", "add_sub", good, _EIGHT, ""),
        binary("lengths/header_negative", "add_sub", good, _EIGHT, "-1"),
        binary("lengths/header_beyond", "add_sub", good, _EIGHT, "100000"),
        binary("lengths/header_huge", "add_sub", good, _EIGHT, "99999999999999999999"),
        binary("lengths/header_float", "add_sub", good, _EIGHT, "10.5"),
        binary("lengths/header_words_behind", "add_sub", document([A, B]), b"", f"{len(b'') + 5} bytes"),
        binary("lengths/header_too_small", "add_sub", good, _EIGHT, "10"),
        binary("lengths/header_zero", "add_sub", good, _EIGHT, "0"),
        http_case("lengths/no_header", "POST", "/v2/models/add_sub/infer", good),
    ]


def _strings() -> list[Case]:
    contents = {
        "too_few": strings(b"a", b"b"),
        "too_many": strings(b"a", b"b", b"c", b"d"),
        "cut_length": strings(b"a", b"b") + b"\x01\x00",
        "cut_text": strings(b"a", b"b") + b"\x09\x00\x00\x00abc",
        "huge_length": strings(b"a", b"b") + b"\xff\xff\xff\xff",
        "none": b"",
    }
    return [_mirrored(f"strings/{key}", "BYTES", content, [3]) for key, content in contents.items()]


def _raw() -> list[Case]:
    def raw(key: str, model: str, content: bytes) -> Case:
        return http_case(f"raw/{key}", "POST", f"/v2/models/{model}/infer", content, {HEADER: "0"})

    return [
        raw("vector", "vector", floats(1, 2, 3)),
        raw("vector_empty", "vector", b""),
        raw("vector_odd", "vector", b"12345"),
        raw("fixed", "fixed", np.arange(4).tobytes()),
        raw("fixed_too_long", "fixed", np.arange(8).tobytes()),
        raw("fixed_too_short", "fixed", np.arange(3).tobytes()),
        raw("fixed_empty", "fixed", b""),
        raw("grid", "grid", floats(*range(6))),
        raw("grid_odd", "grid", floats(*range(5))),
        raw("sheet", "sheet", floats(*range(6))),
        raw("words", "words", b"some text"),
        raw("words_empty", "words", b""),
        raw("two_inputs", "add_sub", floats(*range(8))),
        raw("optional_inputs", "mirror", floats(1)),
        raw("unknown_model", "nothing", floats(1)),
        raw("telling", "telling", b"\x01\x00\x00\x00"),
    ]
