"""Ensembles: their metadata, their answers and errors, and how they behave without the models of their steps."""

from typing import Any

from google.protobuf.message import Message
from tritonclient.grpc import service_pb2 as pb

from ..answers import Case
from ..grpc_asking import grpc_case, stream_case
from ..http_asking import http_case
from . import grpc_making as rpc
from .http_making import binary, document, floats, infer, requested, tensor

_A = tensor("A", "FP32", [1, 4], [1, 2, 3, 4])
_B = tensor("B", "FP32", [1, 4], [0.5, 0.25, -1, 1e-3])
_SCORES = tensor("GIVEN", "FP32", [1, 5], [0.5, 3.25, -1, 2, 0])
_COUNTS = ("*.ns", "*.last_inference")
_HOW = (*range(8), *range(10, 18))
"""The ways in which the model `failing` fails."""


def cases() -> list[Case]:
    """Every case of this page."""
    return [
        *_answers(),
        *_refused(),
        *_failing(),
        *_decoupled(),
        *_metadata(),
        *_of_the_first_step(),
        *_without_models(),
    ]


def _answers() -> list[Case]:
    head = {"inputs": [_bytes("A"), _bytes("B")], "outputs": requested("TWICE_A", binary_data=True)}
    more = {"id": "the id", "parameters": {"own": 5, "priority": 1, "timeout": 1_000_000}}
    sequence = {"sequence_id": 3, "sequence_start": True, "sequence_end": True}
    first, second = requested("TWICE_A"), requested("TWICE_B")
    one = [rpc.requested("TWICE_A")]
    return [
        infer("ensembles/first", "chain", [_A, _B], first),
        infer("ensembles/second", "chain", [_B, _A], second),
        infer("ensembles/id_and_parameters", "chain", [_A, _B], first, **more),
        infer("ensembles/sequence", "chain", [_A, _B], first, parameters=sequence),
        binary("ensembles/binary", "chain", head, floats(1, 2, 3, 4, 5, 6, 7, 8)),
        infer("ensembles/two_rows", "chain", [tensor(name, "FP32", [2, 4], list(range(8))) for name in "AB"], second),
        infer("ensembles/classes", "ranked", [_SCORES], requested("BEST", classification=3)),
        infer("ensembles/classes_without_labels", "ranked", [_SCORES], requested("PLACES", classification=2)),
        http_case("ensembles/version", "POST", "/v2/models/chain/versions/1/infer", document([_A, _B], first)),
        rpc.infer("ensembles/first", "chain", _messages(), rpc.RAW, outputs=one),
        rpc.infer("ensembles/id", "chain", _messages(), rpc.RAW, outputs=one, id="the id"),
        stream_case("stream/ensembles/good", [rpc.infer_request("chain", _messages(), rpc.RAW, one, id="s")]),
        infer("ensembles/all", "chain", [_A, _B]),
        rpc.infer("ensembles/all", "chain", _messages(), rpc.RAW),
        http_case("ensembles/generate", "POST", "/v2/models/halfway/generate", {"FIRST": 0}),
    ]


def _refused() -> list[Case]:
    return [
        infer("ensembles/missing_input", "chain", [_A]),
        infer("ensembles/unknown_input", "chain", [_A, _B, tensor("C", "FP32", [1, 4], [1, 2, 3, 4])]),
        infer("ensembles/inner_input", "chain", [_A, _B, tensor("DIFFERENCE", "FP32", [1, 4], [1, 2, 3, 4])]),
        infer("ensembles/unknown_output", "chain", [_A, _B], requested("OUTPUT0")),
        infer("ensembles/inner_output", "chain", [_A, _B], requested("DIFFERENCE")),
        infer("ensembles/other_datatype", "chain", [_A | {"datatype": "INT32"}, _B]),
        infer("ensembles/other_shape", "chain", [tensor("A", "FP32", [1, 3], [1, 2, 3]), _B]),
        infer("ensembles/other_batch", "chain", [tensor("A", "FP32", [2, 4], [1] * 8), _B]),
        infer("ensembles/batch_9", "chain", [tensor(name, "FP32", [9, 4], [1] * 36) for name in "AB"]),
        http_case("ensembles/version_2", "POST", "/v2/models/chain/versions/2/infer", document([_A, _B])),
        rpc.infer("ensembles/missing_input", "chain", _messages()[:1], rpc.RAW[:1]),
    ]


def _failing() -> list[Case]:
    results = []
    for how in _HOW:
        results.append(infer(f"ensembles/failing/{how}", "halfway", [tensor("FIRST", "INT32", [1], [how])]))
        results.append(rpc.infer(f"ensembles/failing/{how}", "halfway", [_number("FIRST", how)]))
    return [*results, stream_case("stream/ensembles/failing", [rpc.infer_request("halfway", [_number("FIRST", 1)])])]


def _decoupled() -> list[Case]:
    final = {"triton_enable_empty_final_response": True}
    results = [
        infer("ensembles/decoupled", "repeated", [tensor("TIMES", "INT32", [1], [1])]),
        rpc.infer("ensembles/decoupled", "repeated", [_number("TIMES", 1)]),
    ]
    for times in (0, 1, 3):
        body = {"TIMES": times}
        results.append(http_case(f"ensembles/generate_{times}", "POST", "/v2/models/repeated/generate", body))
        results.append(http_case(f"ensembles/stream_{times}", "POST", "/v2/models/repeated/generate_stream", body))
        word = [rpc.requested("WORD")]
        message = rpc.infer_request("repeated", [_number("TIMES", times)], outputs=word, id="r")
        empty = rpc.infer_request("repeated", [_number("TIMES", times)], outputs=word, id="r", parameters=final)
        results.append(stream_case(f"stream/ensembles/{times}", [message]))
        results.append(stream_case(f"stream/ensembles/{times}_empty_final", [empty]))
    return results


def _metadata() -> list[Case]:
    message = pb.ModelStatisticsRequest(name="chain")
    statistics = [
        http_case(f"ensembles/statistics_{name}", "GET", f"/v2/models/{name}/stats", any_value=_COUNTS)
        for name in ("chain", "ranked", "add_sub")
    ]
    return [*statistics, grpc_case("grpc_ensembles/statistics", "ModelStatistics", message, any_value=_COUNTS)]


def _of_the_first_step() -> list[Case]:
    return [
        infer("ensembles/of_the_first_step", "chain", [_A, _B], requested("SUM")),
        rpc.infer("ensembles/of_the_first_step", "chain", _messages(), rpc.RAW, outputs=[rpc.requested("SUM")]),
    ]


def _without_models() -> list[Case]:
    dependents = {"parameters": {"unload_dependents": True}}
    return [
        _control("unload_step", "scores", "unload"),
        http_case("ensembles/ready_without_step", "GET", "/v2/models/ranked/ready"),
        infer("ensembles/infer_without_step", "ranked", [_SCORES], requested("BEST")),
        _control("load_with_step", "ranked", "load"),
        http_case("ensembles/ready_with_step", "GET", "/v2/models/scores/ready"),
        infer("ensembles/infer_with_step", "ranked", [_SCORES], requested("BEST")),
        _control("unload_dependents", "ranked", "unload", dependents),
        http_case("ensembles/ready_of_dependent", "GET", "/v2/models/scores/ready"),
        _control("unload_shared_dependents", "chain", "unload", dependents),
        http_case("ensembles/ready_of_explicit_step", "GET", "/v2/models/add_sub/ready"),
    ]


def _control(key: str, model: str, what: str, body: Any = None) -> Case:
    return http_case(f"ensembles/{key}", "POST", f"/v2/repository/models/{model}/{what}", body)


def _bytes(name: str) -> dict[str, Any]:
    return tensor(name, "FP32", [1, 4], binary_data_size=16)


def _messages() -> list[Message]:
    return [rpc.tensor(name, "FP32", [1, 4]) for name in "AB"]


def _number(name: str, value: int) -> Message:
    return rpc.tensor(name, "INT32", [1], int_contents=[value])
