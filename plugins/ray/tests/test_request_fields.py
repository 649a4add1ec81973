"""The model, the sequence and the subject of raw requests, as real clients write them."""

import gzip
import json
import zlib
from collections.abc import Callable

import numpy as np
import pytest
from tritonclient.grpc import service_pb2

from naiad_ray.raw import GrpcRequest, HttpRequest
from naiad_ray.request_fields import (
    MOST_DECOMPRESSED,
    SequenceMark,
    Subject,
    model_of_message,
    model_of_path,
    sequence_of,
    subject_of,
)

SERVICE = "/inference.GRPCInferenceService/"


def infer_message(**parameters: object) -> bytes:
    message = service_pb2.ModelInferRequest(model_name="till", model_version="1", id="x")
    tensor = message.inputs.add(name="price", datatype="FP32", shape=[1, 1])
    tensor.contents.fp32_contents.append(1)
    for name, value in parameters.items():
        kind = {bool: "bool_param", int: "int64_param", str: "string_param"}[type(value)]
        setattr(message.parameters[name], kind, value)
    message.raw_input_contents.append(np.ones(100, np.float32).tobytes())
    return bytes(message.SerializeToString())


def http(method: str, path: str, body: bytes = b"", **headers: bytes) -> HttpRequest:
    pairs = tuple((name.replace("_", "-").encode(), value) for name, value in headers.items())
    return HttpRequest(method, path.encode(), b"", pairs, body)


@pytest.mark.parametrize(
    ("path", "model"),
    [
        ("/v2/models/a%20b/infer", "a b"),
        ("/v2/models/m/versions/3/infer", "m"),
        ("/v2/models/m", "m"),
        ("/v2/models/stats/infer", "stats"),
        ("/v2/models/stats", ""),
        ("/v2/repository/models/m/load", "m"),
        ("/v2/repository/index", ""),
        ("/v2/health/live", ""),
    ],
)
def test_the_model_of_a_path(path: str, model: str) -> None:
    assert model_of_path(path.encode()) == model


def test_the_model_of_a_message() -> None:
    load = service_pb2.RepositoryModelLoadRequest(repository_name="r", model_name="m").SerializeToString()

    assert model_of_message("ModelInfer", infer_message()) == "till"
    assert model_of_message("RepositoryModelLoad", load) == "m"
    assert model_of_message("ServerLive", b"") == ""


@pytest.mark.parametrize("cut", range(60))
def test_a_message_that_is_cut_has_its_model_or_none(cut: int) -> None:
    assert model_of_message("ModelInfer", infer_message()[:cut]) in ("", "till")


def test_only_the_first_fields_of_a_message_are_read() -> None:
    fields, entry = b"\x08\x01" * 5000, infer_message(sequence_id=7)

    assert model_of_message("ModelInfer", infer_message() + fields) == "till"
    assert model_of_message("ModelInfer", fields + infer_message()) == ""
    assert sequence_of(GrpcRequest(SERVICE + "ModelInfer", fields + entry)) is None


def test_only_the_first_fields_of_a_parameter_are_read() -> None:
    parameter = b"\x10\x01" * 50 + b"\x0a\x0bsequence_id\x12\x02\x10\x07"
    message = b"\x22" + bytes([len(parameter)]) + parameter

    assert sequence_of(GrpcRequest(SERVICE + "ModelInfer", message[:1] + b"\x11" + parameter[-17:])) is not None
    assert sequence_of(GrpcRequest(SERVICE + "ModelInfer", message)) is None


def test_a_version_of_thousands_of_digits_is_none() -> None:
    message = service_pb2.ModelStatisticsRequest(name="m", version="9" * 5000).SerializeToString()

    subject = subject_of(GrpcRequest(SERVICE + "ModelStatistics", message))

    assert subject == Subject("m", "report", about="statistics")


def test_the_sequence_of_a_grpc_request() -> None:
    number = GrpcRequest(SERVICE + "ModelInfer", infer_message(sequence_id=7, sequence_start=True, sequence_end=False))
    text = GrpcRequest(SERVICE + "ModelInfer", infer_message(sequence_id="seven", sequence_end=True, priority=1))

    assert sequence_of(number) == SequenceMark("7", start=True, end=False)
    assert sequence_of(text) == SequenceMark("seven", start=False, end=True)


@pytest.mark.parametrize("parameters", [{}, {"sequence_id": 0}, {"sequence_start": True}])
def test_a_request_without_a_correlation_id_has_no_sequence(parameters: dict[str, object]) -> None:
    assert sequence_of(GrpcRequest(SERVICE + "ModelInfer", infer_message(**parameters))) is None


def test_the_sequence_of_an_http_request_with_binary_tensors() -> None:
    front = json.dumps({"parameters": {"sequence_id": 7, "sequence_end": True}, "inputs": []}).encode()
    request = http(
        "POST",
        "/v2/models/till/infer",
        front + b"\x00\xff",
        Inference_Header_Content_Length=str(len(front)).encode(),
    )

    assert sequence_of(request) == SequenceMark("7", start=False, end=True)


@pytest.mark.parametrize("compress", [gzip.compress, zlib.compress])
def test_the_sequence_of_a_compressed_request(compress: Callable[[bytes], bytes]) -> None:
    front = json.dumps({"parameters": {"sequence_id": 7}, "inputs": []}).encode()
    headers = {"Content_Encoding": b"gzip", "Inference_Header_Content_Length": str(len(front)).encode()}

    def sequence(body: bytes) -> SequenceMark | None:
        return sequence_of(http("POST", "/v2/models/till/infer", body, **headers))

    assert sequence(compress(front + b"\x00\xff" * MOST_DECOMPRESSED)) == SequenceMark("7", start=False, end=False)
    assert sequence(compress(front)[:8]) is None
    assert sequence(b"neither") is None


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v2/models/till/infer", b'{"inputs": []}'),
        ("/v2/models/till/infer", b'{"sequence_id": '),
        ("/v2/models/till/infer", b'["sequence_id"]'),
        ("/v2/models/till", b'{"parameters": {"sequence_id": 1}}'),
    ],
)
def test_other_http_requests_have_no_sequence(path: str, body: bytes) -> None:
    assert sequence_of(http("POST", path, body)) is None


@pytest.mark.parametrize(
    ("method", "path", "subject"),
    [
        ("POST", "/v2/models/m/infer", Subject("m")),
        ("GET", "/v2/models/m/config", Subject("m")),
        ("GET", "/v2/models/m/stats", Subject("m", "report", about="statistics")),
        ("GET", "/v2/models/m/versions/2/stats", Subject("m", "report", about="statistics", version=2)),
        ("GET", "/v2/models/stats", Subject("", "report", about="statistics")),
        ("POST", "/v2/repository/index", Subject("", "report", about="index")),
        ("GET", "/v2/health/ready", Subject("", "report", about="readiness")),
        ("GET", "/v2/health/live", Subject("")),
        ("GET", "/v2/logging", Subject("", "any")),
        ("POST", "/v2/repository/models/m/unload", Subject("m", "order", "model m")),
        ("POST", "/v2/logging", Subject("", "order", "log settings of '': ")),
        ("POST", "/v2/models/m/trace/setting", Subject("m", "order", "trace settings of 'm': ")),
    ],
)
def test_the_subject_of_an_http_request(method: str, path: str, subject: Subject) -> None:
    assert subject_of(http(method, path)) == subject


def test_the_subjects_of_calls() -> None:
    statistics = service_pb2.ModelStatisticsRequest(name="m", version="2").SerializeToString()
    load = service_pb2.RepositoryModelLoadRequest(model_name="m").SerializeToString()
    change = service_pb2.LogSettingsRequest()
    change.settings["log_info"].bool_param = True

    def subject(method: str, message: bytes) -> Subject:
        return subject_of(GrpcRequest(SERVICE + method, message))

    assert subject("ModelInfer", infer_message()) == Subject("till")
    assert subject("ModelStatistics", statistics) == Subject("m", "report", about="statistics", version=2)
    assert subject("RepositoryModelLoad", load) == Subject("m", "order", "model m")
    assert subject("RepositoryIndex", b"") == Subject("", "report", about="index")
    assert subject("ServerReady", b"") == Subject("", "report", about="readiness")
    assert subject("LogSettings", b"") == Subject("", "any")
    assert subject("LogSettings", change.SerializeToString()) == Subject("", "order", "log settings of '': log_info")


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
def test_a_change_of_settings_replaces_an_earlier_one_of_the_same_settings_only(encoding: str) -> None:
    def key(settings: dict[str, object]) -> str:
        body = json.dumps(settings).encode()
        sent = gzip.compress(body) if encoding == "gzip" else body
        return subject_of(http("POST", "/v2/logging", sent, Content_Encoding=encoding.encode())).key

    assert key({"log_verbose_level": 1, "log_info": True}) == key({"log_info": False, "log_verbose_level": 2})
    assert len({key({"log_verbose_level": 1}), key({"log_info": False}), key({})}) == 3


def test_a_change_of_settings_has_one_key_in_both_protocols() -> None:
    change = service_pb2.TraceSettingRequest(model_name="m")
    change.settings["trace_rate"].value.append("1")
    change.settings["trace_count"].value.append("2")
    body = b'{"trace_rate": ["3"], "trace_count": ["4"]}'

    over_grpc = subject_of(GrpcRequest(SERVICE + "TraceSetting", change.SerializeToString()))

    assert over_grpc == subject_of(http("POST", "/v2/models/%6d/trace/setting", body))
    assert over_grpc == Subject("m", "order", "trace settings of 'm': trace_count, trace_rate")
