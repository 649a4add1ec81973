"""ONNX Runtime's errors in words, and what a configuration says of its sessions."""

import os
import sys
from types import ModuleType

import pytest

from naiad_config.text import parse_text
from naiad_kit.backends.onnx_runtime import (
    SessionSettings,
    describe_error,
    missing_provider,
    onnx_runtime,
    read_session_settings,
    runs_on_gpu,
)
from naiad_kit.backends.parameters import ParameterReader


@pytest.mark.parametrize(
    ("error", "described"),
    [
        (RuntimeError("[ONNXRuntimeError] : 7 : INVALID_PROTOBUF : no graph \n"), "onnx runtime error 7: no graph"),
        (
            RuntimeError(
                "[ONNXRuntimeError] : 6 : FAIL : at x.cc:1 [OpenVINO-EP]  Exception from src/core.cpp:7:\n no NPU"
            ),
            "onnx runtime error 6: no NPU",
        ),
        (ValueError(" a shape "), "ValueError: a shape"),
    ],
)
def test_an_error_is_described_by_its_code_and_message(error, described):
    assert describe_error(error) == described


def test_session_settings_are_read_from_a_configuration():
    config = parse_text(
        """optimization { graph { level: 1 } }
        parameters { key: "intra_op_thread_count" value { string_value: "3" } }
        parameters { key: "execution_mode" value { string_value: "1" } }"""
    )

    assert read_session_settings(ParameterReader(config)) == SessionSettings(3, 0, True, "ORT_ENABLE_EXTENDED")


def test_an_unknown_graph_level_is_a_problem_of_the_configuration():
    reader = ParameterReader(parse_text("optimization { graph { level: 3 } }"))

    read_session_settings(reader)

    (problem,) = reader.problems
    assert (problem.message, problem.path) == ("there is no graph optimisation level 3", "optimization.graph.level")


@pytest.mark.parametrize(
    ("kind", "provider", "on_gpu"),
    [
        ("CPU", "CUDAExecutionProvider", False),
        ("GPU", "CPUExecutionProvider", True),
        ("MODEL", "CUDAExecutionProvider", True),
        ("MODEL", "CPUExecutionProvider", False),
    ],
)
def test_kind_model_is_on_a_gpu_where_the_build_has_cuda(kind, provider, on_gpu):
    assert runs_on_gpu(kind, [provider]) is on_gpu


def test_a_missing_provider_is_named_with_those_of_the_build():
    error = missing_provider("m", "a GPU", "CUDAExecutionProvider", ["A", "B"], "install")

    assert str(error) == (
        "model 'm' asks for a GPU, and this build of ONNX Runtime has no CUDAExecutionProvider (it has A, B); install"
    )


@pytest.mark.parametrize(("set_to", "stays"), [("", "1"), ("0", "0")])
def test_telemetry_is_off_unless_the_user_turns_it_on(set_to, stays, monkeypatch):
    monkeypatch.setenv("ORT_DISABLE_TELEMETRY", set_to)
    if not set_to:
        monkeypatch.delenv("ORT_DISABLE_TELEMETRY")
    monkeypatch.setitem(sys.modules, "onnxruntime", ModuleType("onnxruntime"))

    onnx_runtime.__wrapped__("naiad-onnx")

    assert os.environ["ORT_DISABLE_TELEMETRY"] == stays
