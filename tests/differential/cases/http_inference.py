"""Inference with JSON bodies: good requests of every kind, and those that ask for what is not there."""

from typing import Any

from ..answers import Case
from ..http_asking import http_case
from .http_making import ADDS, VECTOR, A, B, adds, document, infer, requested, tensor

_VALUES: dict[str, list[Any]] = {
    "BOOL": [True, False],
    "UINT8": [0, 255],
    "UINT16": [0, 65535],
    "UINT32": [0, 4294967295],
    "UINT64": [0, 18446744073709551615],
    "INT8": [-128, 127],
    "INT16": [-32768, 32767],
    "INT32": [-2147483648, 2147483647],
    "INT64": [-9223372036854775808, 9223372036854775807],
    "FP32": [1.5, 0.1, -3.4e38, 1e-45],
    "FP64": [1.5, 0.1, -1.7e308, 5e-324],
    "BYTES": ["", "text", 'ünï \u0001 "quoted" \\ 🙂'],
}


def cases() -> list[Case]:
    """Every case of this page."""
    return [*_datatypes(), *_good(), *_names(), *_versions(), *_shapes(), *_outputs(), *_failing()]


def _mirrored(key: str, datatype: str, shape: list[Any], data: Any) -> Case:
    return infer(key, "mirror", [tensor(f"IN_{datatype}", datatype, shape, data)], requested(f"OUT_{datatype}"))


def _datatypes() -> list[Case]:
    results = [_mirrored(f"json/{kind}", kind, [len(values)], values) for kind, values in _VALUES.items()]
    results += [_mirrored(f"json/{kind}_empty", kind, [0], []) for kind in _VALUES]
    results += [_mirrored(f"json/{kind}", kind, [1], [1.0]) for kind in ("FP16", "BF16")]
    results += [_mirrored(f"json/{kind}_empty", kind, [0], []) for kind in ("FP16", "BF16")]
    wrong = {
        "UINT8_256": ("UINT8", [256]),
        "UINT8_negative": ("UINT8", [-1]),
        "INT8_128": ("INT8", [128]),
        "INT64_2_63": ("INT64", [2**63]),
        "UINT64_2_64": ("UINT64", [2**64]),
        "INT32_float": ("INT32", [1.0]),
        "INT32_fraction": ("INT32", [1.5]),
        "INT32_text": ("INT32", ["1"]),
        "INT32_bool": ("INT32", [True]),
        "INT32_null": ("INT32", [None]),
        "BOOL_1": ("BOOL", [1]),
        "BOOL_text": ("BOOL", ["true"]),
        "FP32_int": ("FP32", [1]),
        "FP32_text": ("FP32", ["1.0"]),
        "FP32_bool": ("FP32", [True]),
        "FP32_1e39": ("FP32", [1e39]),
        "FP64_int_2_60": ("FP64", [2**60 + 1]),
        "BYTES_number": ("BYTES", [1]),
        "BYTES_null": ("BYTES", [None]),
        "FP32_object": ("FP32", [{}]),
    }
    results += [_mirrored(f"json/{key}", kind, [len(values)], values) for key, (kind, values) in wrong.items()]
    for word in ("NaN", "Infinity", "-Infinity", "Inf", "-Inf", "nan"):
        text = f'{{"inputs":[{{"name":"IN","datatype":"FP32","shape":[1,1],"data":[{word}]}}]}}'
        results.append(http_case(f"json/FP32_{word}", "POST", VECTOR, text.encode()))
    return results


def _good() -> list[Case]:
    nested = tensor("INPUT0", "FP32", [2, 4], [[1, 2, 3, 4], [5, 6, 7, 8]])
    odd = tensor("INPUT1", "FP32", [2, 4], [[[1], [2, 3]], 4, 5, [6, 7, 8]])
    return [
        adds("json/plain"),
        adds("json/id", id="abc"),
        adds("json/id_empty", id=""),
        adds("json/id_unicode", id="ü 🙂"),
        adds("json/id_number", id=5),
        adds("json/unknown_key", something={"x": [1]}),
        adds("json/outputs_empty", outputs=[]),
        adds("json/outputs_null", outputs=None),
        adds("json/parameters_empty", parameters={}),
        adds("json/parameters_null", parameters=None),
        adds("json/parameters_list", parameters=[]),
        infer("json/nested", "add_sub", [nested, odd]),
        infer("json/other_order", "add_sub", [B, A]),
        infer("json/variable", "vector", [tensor("IN", "FP32", [2, 3], [1, 2, 3, 4, 5, 6])]),
        infer("json/variable_empty", "vector", [tensor("IN", "FP32", [2, 0], [])]),
        infer("json/grid", "grid", [tensor("IN", "FP32", [2, 3], [1, 2, 3, 4, 5, 6])]),
        infer("json/sheet_empty", "sheet", [tensor("IN", "INT32", [0, 3], [])]),
        infer("json/reshaped", "reshaped", _reshaped(2)),
        infer("json/optional_given", "optional", [_pair("A", 1, 2), _pair("B", 3, 4)]),
        infer("json/optional_left_out", "optional", [_pair("A", 1, 2)]),
        infer("json/mirror_of_nothing", "mirror", []),
        infer("json/words", "words", [tensor("IN", "BYTES", [2, 1], ["one", "two"])]),
    ]


def _pair(name: str, *values: float) -> dict[str, Any]:
    return tensor(name, "FP32", [1, 2], list(values))


def _reshaped(batch: int) -> list[dict[str, Any]]:
    numbers = tensor("IN", "FP32", [batch, 4], list(range(4 * batch)))
    return [numbers, tensor("SCALAR", "FP32", [batch, 1], [2] * batch)]


def _names() -> list[Case]:
    one = tensor("IN", "INT32", [1], [1])
    return [
        infer("names/unknown_model", "nothing", [one]),
        infer("names/unloaded", "unloaded", [one]),
        infer("names/broken", "broken", [one]),
        infer("names/decoupled", "repeat", [one]),
        infer("names/missing_input", "add_sub", [A]),
        infer("names/no_inputs", "add_sub", []),
        infer("names/unknown_input", "add_sub", [A, tensor("OTHER", "FP32", [1, 4], [1, 2, 3, 4])]),
        infer("names/one_too_many", "add_sub", [A, B, tensor("OTHER", "FP32", [1, 4], [1, 2, 3, 4])]),
        infer("names/input_twice", "add_sub", [A, A]),
        infer("names/input_twice_and_all", "add_sub", [A, B, A]),
        infer("names/input_empty_name", "add_sub", [A, tensor("", "FP32", [1, 4], [1, 2, 3, 4])]),
        infer("names/optional_required_missing", "optional", [_pair("B", 1, 2)]),
        infer("names/optional_unknown", "optional", [_pair("A", 1, 2), _pair("C", 1, 2)]),
        infer("names/datatype_other", "add_sub", [A, tensor("INPUT1", "INT32", [1, 4], [1, 2, 3, 4])]),
        infer("names/datatype_unknown", "add_sub", [A, tensor("INPUT1", "FLOAT", [1, 4], [1, 2, 3, 4])]),
        infer("names/datatype_type_fp32", "add_sub", [A, tensor("INPUT1", "TYPE_FP32", [1, 4], [1, 2, 3, 4])]),
        infer("names/datatype_lower", "add_sub", [A, tensor("INPUT1", "fp32", [1, 4], [1, 2, 3, 4])]),
        infer("names/datatype_empty", "add_sub", [A, tensor("INPUT1", "", [1, 4], [1, 2, 3, 4])]),
    ]


def _versions() -> list[Case]:
    body = document([tensor("IN", "INT32", [1], [1])])
    numbers_of = {
        "all": ("1", "2", "3"),
        "versions": ("1", "2", "3", "4"),
        "latest": ("1", "2"),
        "all_versions": ("1", "2"),
    }
    results = [infer(f"versions/{name}", name, body["inputs"]) for name in ("versions", "latest", "all_versions")]
    for name, numbers in numbers_of.items():
        for number in (*numbers, "0", "x", "99999999999999999999"):
            path = f"/v2/models/{name}/versions/{number}/infer"
            results.append(http_case(f"versions/{name}_{number}", "POST", path, body))
    return results


def _shapes() -> list[Case]:
    bodies: dict[str, tuple[list[Any], list[Any]]] = {
        "too_many_values": ([1, 4], [1, 2, 3, 4, 5]),
        "too_few_values": ([1, 4], [1, 2, 3]),
        "no_values": ([1, 4], []),
        "other_size": ([1, 5], [1, 2, 3, 4, 5]),
        "no_batch": ([4], [1, 2, 3, 4]),
        "no_shape": ([], [1]),
        "more_dims": ([1, 1, 4], [1, 2, 3, 4]),
        "negative": ([1, -4], [1, 2, 3, 4]),
        "minus_one": ([-1, 4], [1, 2, 3, 4]),
        "float": ([1, 4.0], [1, 2, 3, 4]),
        "text": ([1, "4"], [1, 2, 3, 4]),
        "null": ([1, None], [1, 2, 3, 4]),
        "bool": ([True, 4], [1, 2, 3, 4]),
        "nested": ([[1], 4], [1, 2, 3, 4]),
        "batch_0": ([0, 4], []),
        "batch_9": ([9, 4], [1] * 36),
        "other_batch": ([2, 4], [1] * 8),
        "huge": ([2**40, 2**40], []),
        "huge_size": ([1, 2**63 - 1], []),
        "2_64": ([1, 2**64], []),
    }
    results = [
        infer(f"shapes/{key}", "add_sub", [A, tensor("INPUT1", "FP32", shape, data)])
        for key, (shape, data) in bodies.items()
    ]
    results.append(
        infer("shapes/all_batch_9", "add_sub", [{**each, "shape": [9, 4], "data": [1] * 36} for each in (A, B)])
    )
    results.append(infer("shapes/all_batch_0", "add_sub", [{**each, "shape": [0, 4], "data": []} for each in (A, B)]))
    results.append(infer("shapes/grid_2_4", "grid", [tensor("IN", "FP32", [2, 4], [1] * 8)]))
    results.append(infer("shapes/grid_flat", "grid", [tensor("IN", "FP32", [6], [1] * 6)]))
    results.append(infer("shapes/mirror_flat", "mirror", [tensor("IN_INT32", "INT32", [], [1])]))
    results.append(
        infer(
            "shapes/reshape_as_the_model_sees", "reshaped", [tensor("IN", "FP32", [1, 2, 2], [1] * 4), _reshaped(1)[1]]
        )
    )
    results.append(
        http_case("shapes/left_out", "POST", VECTOR, {"inputs": [{"name": "IN", "datatype": "FP32", "data": [1]}]})
    )
    return results


def _outputs() -> list[Case]:
    return [
        adds("outputs/one", outputs=requested("OUTPUT1")),
        adds("outputs/other_order", outputs=requested("OUTPUT1", "OUTPUT0")),
        adds("outputs/twice", outputs=requested("OUTPUT1", "OUTPUT1")),
        adds("outputs/unknown", outputs=requested("OUTPUT2")),
        adds("outputs/an_input", outputs=requested("INPUT0")),
        adds("outputs/empty_name", outputs=requested("")),
        adds("outputs/no_name", outputs=[{}]),
        adds("outputs/text", outputs="OUTPUT0"),
        adds("outputs/texts", outputs=["OUTPUT0"]),
        adds("outputs/object", outputs={"name": "OUTPUT0"}),
        adds("outputs/parameters_null", outputs=[{"name": "OUTPUT0", "parameters": None}]),
        adds("outputs/parameters_unknown", outputs=[{"name": "OUTPUT0", "parameters": {"x": 1}}]),
        adds("outputs/binary_number", outputs=requested("OUTPUT0", binary_data=1)),
        adds("outputs/binary_text", outputs=requested("OUTPUT0", binary_data="true")),
        http_case(
            "outputs/json_of_FP16",
            "POST",
            "/v2/models/mirror/infer",
            {"inputs": [], "outputs": requested("OUT_FP16")},
        ),
        http_case("outputs/a_get_body", "GET", ADDS, {"inputs": [A, B]}),
    ]


def _failing() -> list[Case]:
    return [
        infer(f"failing/{how}", "failing", [tensor("IN", "INT32", [1], [how])]) for how in (*range(8), *range(10, 18))
    ]
