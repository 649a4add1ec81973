"""Parameters of requests, outputs as classes, and compression over HTTP."""

import gzip
import json
import zlib
from typing import Any

from ..answers import Case
from ..http_asking import http_case
from .http_making import ADDS, HEADER, A, B, adds, document, floats, infer, requested, tensor


def cases() -> list[Case]:
    """Every case of this page."""
    return [*_parameters(), *_classes(), *_compressed(), *_wanted_compressed()]


_REQUEST_PARAMETERS: dict[str, dict[str, Any]] = {
    "own": {"text": "x", "number": 5, "flag": True},
    "own_float": {"float": 1.5},
    "own_negative": {"number": -5},
    "own_2_63": {"number": 2**63},
    "own_2_64": {"number": 2**64},
    "own_null": {"x": None},
    "own_list": {"x": []},
    "own_object": {"x": {}},
    "own_empty_name": {"": 1},
    "headers": {"headers": "x"},
    "reserved": {"triton_x": 1},
    "reserved_empty_final": {"triton_enable_empty_final_response": True},
    "sequence": {"sequence_id": 5, "sequence_start": True, "sequence_end": True},
    "sequence_text": {"sequence_id": "five"},
    "sequence_empty": {"sequence_id": ""},
    "sequence_0": {"sequence_id": 0},
    "sequence_negative": {"sequence_id": -1},
    "sequence_2_64": {"sequence_id": 2**64},
    "sequence_2_64_less_1": {"sequence_id": 2**64 - 1},
    "sequence_float": {"sequence_id": 1.5},
    "sequence_bool": {"sequence_id": True},
    "sequence_start_number": {"sequence_id": 5, "sequence_start": 1},
    "sequence_end_text": {"sequence_id": 5, "sequence_end": "true"},
    "priority": {"priority": 1},
    "priority_0": {"priority": 0},
    "priority_huge": {"priority": 2**40},
    "priority_negative": {"priority": -1},
    "priority_text": {"priority": "1"},
    "priority_float": {"priority": 1.0},
    "timeout": {"timeout": 1000000},
    "timeout_0": {"timeout": 0},
    "timeout_negative": {"timeout": -1},
    "timeout_text": {"timeout": "1"},
    "timeout_2_63": {"timeout": 2**63},
}


def _parameters() -> list[Case]:
    one = [tensor("IN", "INT32", [1], [1])]
    results = [infer(f"parameters/{key}", "telling", one, parameters=each) for key, each in _REQUEST_PARAMETERS.items()]
    results.append(infer("parameters/id", "telling", one, id="the id"))
    results.append(infer("parameters/outputs", "telling", one, requested("REPORT")))
    return results


def _classes() -> list[Case]:
    numbers = [tensor("IN", "FP32", [2, 5], [3.3, -1, 2.25, 3.3, 0, 1, 5, 2, 4, 3])]
    special = '{"inputs":[{"name":"IN","datatype":"FP32","shape":[1,5],"data":[1,NaN,Infinity,-Infinity,1e10]}],%s}'
    outputs = '"outputs":[{"name":"SCORES","parameters":{"classification":5}}]'
    results = [
        infer(f"classes/{output}_{classes}", "scores", numbers, requested(output, classification=classes))
        for output in ("SCORES", "RANKS")
        for classes in (1, 3, 5, 9)
    ]
    for key, value in {"0": 0, "negative": -1, "text": "1", "float": 1.5, "bool": True, "huge": 2**64}.items():
        results.append(infer(f"classes/count_{key}", "scores", numbers, requested("SCORES", classification=value)))
    results += [
        infer(f"classes/{name}", "scores", numbers, requested(name, classification=1)) for name in ("FLAGS", "NAMES")
    ]
    grid = [tensor("IN", "FP32", [2, 3], [1, 2, 3, 6, 5, 4])]
    empty = [tensor("IN", "FP32", [1, 0], [])]
    return [
        *results,
        infer("classes/binary", "scores", numbers, requested("SCORES", classification=2, binary_data=True)),
        infer("classes/unbatched", "grid", grid, requested("OUT", classification=4)),
        infer("classes/empty", "vector", empty, requested("OUT", classification=2)),
        http_case("classes/special", "POST", "/v2/models/scores/infer", (special % outputs).encode()),
    ]


def _compressed() -> list[Case]:
    text = json.dumps(document([A, B])).encode()
    head = json.dumps(document([tensor(each["name"], "FP32", [1, 4], binary_data_size=16) for each in (A, B)])).encode()
    mixed = head + floats(*range(8))
    wrong = gzip.compress(text)[:-8]

    def sent(key: str, encoding: str, content: bytes, length: str = "") -> Case:
        fields = {"Content-Encoding": encoding} | ({HEADER: length} if length else {})
        return http_case(f"compressed/{key}", "POST", ADDS, content, fields)

    return [
        sent("gzip", "gzip", gzip.compress(text)),
        sent("deflate", "deflate", zlib.compress(text)),
        sent("deflate_raw", "deflate", zlib.compress(text, wbits=-15)),
        sent("gzip_called_deflate", "deflate", gzip.compress(text)),
        sent("deflate_called_gzip", "gzip", zlib.compress(text)),
        sent("upper_case", "GZIP", gzip.compress(text)),
        sent("identity", "identity", text),
        sent("empty_name", "", text),
        sent("br", "br", text),
        sent("two", "gzip, deflate", gzip.compress(text)),
        sent("gzip_binary", "gzip", gzip.compress(mixed), length=str(len(head))),
        sent("gzip_in_two_members", "gzip", gzip.compress(text[:20]) + gzip.compress(text[20:])),
        sent("gzip_cut", "gzip", wrong),
        sent("gzip_of_nothing", "gzip", gzip.compress(b"")),
        sent("gzip_empty", "gzip", b""),
        sent("not_gzip", "gzip", text),
        sent("gzip_and_more", "gzip", gzip.compress(text) + b"more"),
    ]


def _wanted_compressed() -> list[Case]:
    accepted = {
        "gzip": "gzip",
        "deflate": "deflate",
        "identity": "identity",
        "star": "*",
        "br": "br",
        "gzip_deflate": "gzip, deflate",
        "deflate_gzip": "deflate, gzip",
        "weights": "gzip;q=0.5, deflate;q=0.8",
        "weights_identity": "identity;q=1, gzip;q=0.5",
        "weight_0": "gzip;q=0",
        "weight_wrong": "gzip;q=x",
        "client": "gzip, deflate, br",
    }
    cases = [
        http_case(f"accepted/{key}", "POST", ADDS, document([A, B]), {"Accept-Encoding": value})
        for key, value in accepted.items()
    ]
    binary = document([A, B], parameters={"binary_data_output": True})
    return [
        *cases,
        http_case("accepted/binary_gzip", "POST", ADDS, binary, {"Accept-Encoding": "gzip"}),
        http_case("accepted/error_gzip", "POST", ADDS, document([A]), {"Accept-Encoding": "gzip"}),
        http_case("accepted/metadata_gzip", "GET", "/v2/models/add_sub", headers={"Accept-Encoding": "gzip"}),
        adds("accepted/none"),
    ]
