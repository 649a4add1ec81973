"""Inference over gRPC: tensors as bytes and as numbers, names, shapes, parameters and classes."""

from typing import Any

import grpc
from google.protobuf.message import Message

from ..answers import Case
from ..grpc_asking import grpc_case
from .grpc_making import RAW, A, B, adds, infer, infer_request, parameter, requested, tensor
from .http_binary import KINDS, content_of
from .http_making import floats, strings

_CONTENTS: dict[str, dict[str, Any]] = {
    "BOOL": {"bool_contents": [True, False, True]},
    "UINT8": {"uint_contents": [0, 255, 1]},
    "UINT16": {"uint_contents": [0, 65535, 1]},
    "UINT32": {"uint_contents": [0, 2**32 - 1, 1]},
    "UINT64": {"uint64_contents": [0, 2**64 - 1, 1]},
    "INT8": {"int_contents": [-128, 127, 1]},
    "INT16": {"int_contents": [-(2**15), 2**15 - 1, 1]},
    "INT32": {"int_contents": [-(2**31), 2**31 - 1, 1]},
    "INT64": {"int64_contents": [-(2**63), 2**63 - 1, 1]},
    "FP32": {"fp32_contents": [0.1, -1e38, float("inf")]},
    "FP64": {"fp64_contents": [0.1, -1e308, 5e-324]},
    "BYTES": {"bytes_contents": [b"", b"text", b"\xff\x00"]},
}
_WRONG_CONTENTS: dict[str, tuple[str, dict[str, Any]]] = {
    "FP16": ("FP16", {"fp32_contents": [1, 2, 3]}),
    "BF16": ("BF16", {"fp32_contents": [1, 2, 3]}),
    "INT8_300": ("INT8", {"int_contents": [300, 0, 0]}),
    "UINT8_300": ("UINT8", {"uint_contents": [300, 0, 0]}),
    "INT32_in_int64": ("INT32", {"int64_contents": [1, 2, 3]}),
    "FP32_in_fp64": ("FP32", {"fp64_contents": [1, 2, 3]}),
    "BYTES_in_ints": ("BYTES", {"int_contents": [1, 2, 3]}),
    "two_fields": ("INT32", {"int_contents": [1, 2, 3], "fp32_contents": [1, 2, 3]}),
    "too_few": ("INT32", {"int_contents": [1, 2]}),
    "too_many": ("INT32", {"int_contents": [1, 2, 3, 4]}),
    "too_few_texts": ("BYTES", {"bytes_contents": [b"one"]}),
    "too_many_texts": ("BYTES", {"bytes_contents": [b"one"] * 4}),
    "unknown_datatype": ("FLOAT", {"fp32_contents": [1, 2, 3]}),
}
_ONE = tensor("IN", "INT32", [1], int_contents=[1])


def cases() -> list[Case]:
    """Every case of this page."""
    return [*_datatypes(), *_sources(), *_names(), *_shapes(), *_outputs(), *_parameters(), *_failing(), *_compressed()]


def _mirrored(key: str, kind: str, raw: bytes | None, count: int, **contents: Any) -> Case:
    model_input = tensor(f"IN_{kind}", kind, [count], **contents)
    return infer(key, "mirror", [model_input], [] if raw is None else [raw])


def _datatypes() -> list[Case]:
    results = [_mirrored(f"raw/{kind}", kind, content_of(kind), 3) for kind in KINDS]
    results += [_mirrored(f"raw/{kind}_empty", kind, b"", 0) for kind in (*KINDS, "BYTES")]
    results.append(_mirrored("raw/BYTES", "BYTES", strings(b"one", b"", b"\xff\x00\xfe"), 3))
    for key, content in {
        "cut": strings(b"a", b"b")[:-1],
        "few": strings(b"a"),
        "many": strings(b"a", b"b", b"c"),
    }.items():
        results.append(_mirrored(f"raw/BYTES_{key}", "BYTES", content, 2))
    results += [_mirrored(f"contents/{kind}", kind, None, 3, **each) for kind, each in _CONTENTS.items()]
    results += [_mirrored(f"contents/{kind}_empty", kind, None, 0) for kind in _CONTENTS]
    results += [_mirrored(f"contents/{key}", kind, None, 3, **each) for key, (kind, each) in _WRONG_CONTENTS.items()]
    return results


def _sources() -> list[Case]:
    numbers = tensor("INPUT1", "FP32", [1, 4], fp32_contents=[5, 6, 7, 8])
    return [
        adds("sources/raw"),
        infer("sources/contents", "add_sub", [tensor("INPUT0", "FP32", [1, 4], fp32_contents=[1, 2, 3, 4]), numbers]),
        infer("sources/mixed", "add_sub", [A, numbers], RAW[:1]),
        infer("sources/both", "add_sub", [A, numbers], RAW),
        infer("sources/neither", "add_sub", [A, B]),
        infer("sources/one_raw_of_two", "add_sub", [A, B], RAW[:1]),
        infer("sources/three_raw_of_two", "add_sub", [A, B], [*RAW, b""]),
        infer("sources/raw_short", "add_sub", [A, B], [RAW[0], RAW[1][:-1]]),
        infer("sources/raw_long", "add_sub", [A, B], [RAW[0], RAW[1] + b"x"]),
        infer("sources/raw_empty", "add_sub", [A, B], [RAW[0], b""]),
    ]


def _names() -> list[Case]:
    results = [
        infer("names/unknown_model", "nothing", [_ONE]),
        infer("names/no_model", "", [_ONE]),
        infer("names/unloaded", "unloaded", [_ONE]),
        infer("names/decoupled", "repeat", [_ONE]),
        infer("names/missing_input", "add_sub", [A], RAW[:1]),
        infer("names/no_inputs", "add_sub", []),
        infer("names/unknown_input", "add_sub", [A, tensor("OTHER", "FP32", [1, 4])], RAW),
        infer("names/one_too_many", "add_sub", [A, B, tensor("OTHER", "FP32", [1, 4])], [*RAW, RAW[0]]),
        infer("names/input_twice", "add_sub", [A, A], RAW),
        infer("names/optional_left_out", "optional", [tensor("A", "FP32", [1, 2])], [floats(1, 2)]),
        infer("names/optional_required_missing", "optional", [tensor("B", "FP32", [1, 2])], [floats(1, 2)]),
        infer("names/datatype_other", "add_sub", [A, tensor("INPUT1", "INT32", [1, 4])], RAW),
        infer("names/datatype_empty", "add_sub", [A, tensor("INPUT1", "", [1, 4])], RAW),
        infer("names/mirror_of_nothing", "mirror", []),
        adds("names/id", id="abc"),
        adds("names/id_unicode", id="ü 🙂"),
    ]
    for version in ("1", "3", "2", "0", "-1", "x", "99999999999999999999"):
        results.append(infer(f"names/version_{version}", "versions", [_ONE], model_version=version))
    return results


def _shapes() -> list[Case]:
    shapes = {
        "other_size": [1, 5],
        "no_batch": [4],
        "none": [],
        "negative": [1, -4],
        "minus_one": [-1, 4],
        "batch_0": [0, 4],
        "batch_9": [9, 4],
        "other_batch": [2, 4],
        "huge": [2**40, 2**40],
        "largest": [1, 2**63 - 1],
    }
    results = []
    for key, shape in shapes.items():
        size = 4
        for each in shape:
            size = size * each if 0 <= size * each < 2**12 else 0
        results.append(infer(f"shapes/{key}", "add_sub", [A, tensor("INPUT1", "FP32", shape)], [RAW[0], b"\0" * size]))
    reshaped = [tensor("IN", "FP32", [2, 4]), tensor("SCALAR", "FP32", [2, 1])]
    results.append(infer("shapes/reshaped", "reshaped", reshaped, [floats(*range(8)), floats(2, 3)]))
    return results


def _outputs() -> list[Case]:
    numbers, raw = [tensor("IN", "FP32", [2, 5])], [floats(3.3, -1, 2.25, 3.3, 0, 1, 5, 2, 4, 3)]
    requests: dict[str, list[Message]] = {
        "SCORES_3": [requested("SCORES", classification=3)],
        "RANKS_9": [requested("RANKS", classification=9)],
        "FLAGS_1": [requested("FLAGS", classification=1)],
        "0": [requested("SCORES", classification=0)],
        "negative": [requested("SCORES", classification=-1)],
        "text": [requested("SCORES", classification="3")],
        "bool": [requested("SCORES", classification=True)],
        "and_plain": [requested("SCORES", classification=1), requested("RANKS")],
    }
    results = [infer(f"classes/{key}", "scores", numbers, raw, outputs=outputs) for key, outputs in requests.items()]
    return [
        *results,
        adds("outputs/one", outputs=[requested("OUTPUT1")]),
        adds("outputs/other_order", outputs=[requested("OUTPUT1"), requested("OUTPUT0")]),
        adds("outputs/twice", outputs=[requested("OUTPUT1"), requested("OUTPUT1")]),
        adds("outputs/unknown", outputs=[requested("OUTPUT2")]),
        adds("outputs/unknown_parameter", outputs=[requested("OUTPUT1", x=1)]),
        adds("outputs/binary_data", outputs=[requested("OUTPUT1", binary_data=False)]),
    ]


def _parameters() -> list[Case]:
    submitted: dict[str, dict[str, Any]] = {
        "own": {"text": "x", "number": 5, "flag": True, "negative": -5},
        "own_double": {"float": 1.5},
        "own_uint64": {"number": parameter(5, "uint64_param")},
        "own_nothing": {"x": infer_request("", []).parameters["x"]},
        "own_empty_name": {"": 1},
        "binary_data_output": {"binary_data_output": True},
        "headers": {"headers": "x"},
        "reserved": {"triton_x": 1},
        "empty_final": {"triton_enable_empty_final_response": True},
        "empty_final_number": {"triton_enable_empty_final_response": 1},
        "sequence": {"sequence_id": 5, "sequence_start": True, "sequence_end": True},
        "sequence_text": {"sequence_id": "five"},
        "sequence_uint64": {"sequence_id": parameter(5, "uint64_param")},
        "sequence_bool": {"sequence_id": True},
        "sequence_negative": {"sequence_id": -1},
        "sequence_start_number": {"sequence_id": 5, "sequence_start": 1},
        "sequence_end_text": {"sequence_id": 5, "sequence_end": "true"},
        "priority": {"priority": 1},
        "priority_uint64": {"priority": parameter(1, "uint64_param")},
        "priority_negative": {"priority": -1},
        "priority_text": {"priority": "1"},
        "timeout": {"timeout": 1000000},
        "timeout_negative": {"timeout": -1},
        "timeout_text": {"timeout": "1"},
        "timeout_uint64": {"timeout": parameter(1, "uint64_param")},
    }
    return [infer(f"parameters/{key}", "telling", [_ONE], parameters=each) for key, each in submitted.items()]


def _failing() -> list[Case]:
    return [
        infer(f"failing/{how}", "failing", [tensor("IN", "INT32", [1], int_contents=[how])])
        for how in (*range(8), *range(10, 18))
    ]


def _compressed() -> list[Case]:
    message = infer_request("add_sub", [A, B], RAW)
    kinds = {"gzip": grpc.Compression.Gzip, "deflate": grpc.Compression.Deflate, "none": grpc.Compression.NoCompression}
    return [grpc_case(f"grpc_compressed/{key}", "ModelInfer", message, compression=kind) for key, kind in kinds.items()]
