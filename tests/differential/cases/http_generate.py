"""The generate extension: flat JSON in, flat JSON or server-sent events out."""

from typing import Any

from ..answers import Case
from ..http_asking import Body, http_case

_PARAMETERS: dict[str, Body] = {
    "text": {"text_input": "a"},
    "list": {"text_input": ["a"]},
    "nested_list": {"text_input": [["a"]]},
    "two_in_list": {"text_input": ["a", "b"]},
    "id": {"text_input": "a", "id": "the id"},
    "id_number": {"text_input": "a", "id": 5},
    "none": {"text_input": "a", "max_tokens": 0},
    "one": {"text_input": "a", "max_tokens": 1},
    "three": {"text_input": "a", "max_tokens": 3},
    "fails": {"text_input": "a", "max_tokens": -1},
    "fails_later": {"text_input": "fail", "max_tokens": 2},
    "fails_first": {"text_input": "fail", "max_tokens": 0},
    "in_parameters": {"text_input": "a", "parameters": {"max_tokens": 1, "temperature": 0.5, "echo": True}},
    "own_parameters": {"text_input": "a", "max_tokens": 1, "tone": "mild", "count": 5, "flag": False},
    "own_in_parameters": {"text_input": "a", "max_tokens": 1, "parameters": {"tone": "mild", "count": 5}},
    "own_float": {"text_input": "a", "max_tokens": 1, "weight": 0.5},
    "own_null": {"text_input": "a", "max_tokens": 1, "x": None},
    "own_list": {"text_input": "a", "max_tokens": 1, "x": [1]},
    "own_object": {"text_input": "a", "max_tokens": 1, "x": {"y": 1}},
    "own_reserved": {"text_input": "a", "max_tokens": 1, "triton_x": 1},
    "parameters_list": {"text_input": "a", "parameters": []},
    "parameters_text": {"text_input": "a", "parameters": "x"},
    "sequence": {"text_input": "a", "max_tokens": 1, "sequence_id": 5, "sequence_start": True},
    "priority": {"text_input": "a", "max_tokens": 1, "priority": 1, "timeout": 1000},
    "matrix": {"text_input": "a", "max_tokens": 1, "matrix": [1, 2, 3, 4]},
    "matrix_odd": {"text_input": "a", "max_tokens": 1, "matrix": [1, 2, 3]},
    "matrix_one": {"text_input": "a", "max_tokens": 1, "matrix": 5},
    "matrix_empty": {"text_input": "a", "max_tokens": 1, "matrix": []},
    "missing": {"max_tokens": 1},
    "empty": {},
    "text_number": {"text_input": 5},
    "text_null": {"text_input": None},
    "text_object": {"text_input": {"a": 1}},
    "number_text": {"text_input": "a", "max_tokens": "1"},
    "number_float": {"text_input": "a", "max_tokens": 1.5},
    "number_huge": {"text_input": "a", "max_tokens": 2**40},
    "float_integer": {"text_input": "a", "max_tokens": 1, "temperature": 1},
    "bool_number": {"text_input": "a", "max_tokens": 1, "echo": 1},
    "key_twice": b'{"text_input":"a","text_input":"b","max_tokens":1}',
    "no_json": b"{",
    "nothing": b"",
    "array": [],
    "unicode": {"text_input": "ü 🙂", "max_tokens": 1},
}


def cases() -> list[Case]:
    """Every case of this page."""
    results = [
        _ask(f"{model}/{mode}/{key}", model, mode, each)
        for model in ("completion", "tokens")
        for mode in ("generate", "generate_stream")
        for key, each in _PARAMETERS.items()
    ]
    for mode in ("generate", "generate_stream"):
        one = {"text_input": "a", "max_tokens": 1}
        results += [
            _ask(f"unknown_model/{mode}", "nothing", mode, one),
            _ask(f"batching/{mode}", "words", mode, {"IN": "a"}),
            _ask(f"numbers/{mode}", "add_sub", mode, {"INPUT0": [1, 2, 3, 4], "INPUT1": [1, 2, 3, 4]}),
            _ask(f"variable/{mode}", "vector", mode, {"IN": [1, 2, 3]}),
            _ask(f"grid/{mode}", "grid", mode, {"IN": [1, 2, 3, 4, 5, 6]}),
            _ask(f"datatypes/{mode}", "mirror", mode, {"IN_BOOL": True, "IN_INT64": 2**62, "IN_FP64": 0.1}),
            _ask(f"half/{mode}", "mirror", mode, {"IN_FP16": 1.0}),
            http_case(f"generate/version/{mode}", "POST", f"/v2/models/tokens/versions/1/{mode}", one),
            http_case(f"generate/unknown_version/{mode}", "POST", f"/v2/models/tokens/versions/7/{mode}", one),
            http_case(f"generate/get/{mode}", "GET", f"/v2/models/tokens/{mode}"),
            _ask(f"gzip_called/{mode}", "tokens", mode, one, {"Content-Encoding": "gzip"}),
            _ask(f"identity/{mode}", "tokens", mode, one, {"Content-Encoding": "identity"}),
            _ask(f"accept_gzip/{mode}", "tokens", mode, one, {"Accept-Encoding": "gzip"}),
            _ask(f"empty_at_last/{mode}", "repeat", mode, {"IN": 2, "EMPTY_AT": 1, "END_WITH_LAST": True}),
            _ask(f"only_an_empty_one/{mode}", "repeat", mode, {"IN": 1, "EMPTY_AT": 0, "END_WITH_LAST": True}),
            _ask(f"orca/{mode}", "tokens", mode, one, {"endpoint-load-metrics-format": "text"}),
        ]
    return results


def _ask(key: str, model: str, mode: str, body: Any, headers: dict[str, str] | None = None) -> Case:
    return http_case(f"generate/{key}", "POST", f"/v2/models/{model}/{mode}", body, headers)
