"""Which library reads an engine, and what TensorRT says meanwhile; engines are built in truth."""

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib.util import find_spec
from types import ModuleType

import pytest
import tensorrt_lean_bindings as lean
import tensorrt_rtx_bindings as rtx

from naiad.errors import InvalidArgumentError, PluginError
from naiad_tensorrt import runtime
from naiad_tensorrt.runtime import DISPATCH, LEAN, RTX, TENSORRT, complaints, logger_of, runtime_for

from . import building

OF_TENSORRT = runtime.MAGIC + bytes(60)


def installed(*libraries):
    """A search that finds these libraries alone."""
    return lambda library: ModuleType(library.extra + library.modules[0]) if library in libraries else None


def test_an_engine_of_tensorrt_for_rtx_is_read_by_that():
    plan = building.identity(2)

    assert plan[:4] == runtime.RTX_MAGIC
    assert runtime_for(plan, "m") is rtx


@pytest.mark.skipif(find_spec("tensorrt_bindings") is not None, reason="TensorRT itself is installed")
def test_the_lean_runtime_reads_engines_of_tensorrt_where_tensorrt_itself_is_not_installed():
    assert runtime_for(OF_TENSORRT, "m") is lean


@pytest.mark.parametrize(
    ("libraries", "chosen"),
    [
        ([TENSORRT, LEAN, DISPATCH, RTX], TENSORRT),
        ([LEAN, DISPATCH, RTX], LEAN),
        ([DISPATCH, RTX], DISPATCH),
    ],
)
def test_the_library_that_can_do_most_is_taken(libraries, chosen):
    actual = runtime_for(OF_TENSORRT, "m", installed(*libraries))

    assert actual.__name__ == chosen.extra + chosen.modules[0]


def test_engines_that_are_opened_at_once_have_one_logger():
    both = threading.Barrier(2)

    class Logger:
        Severity = lean.ILogger.Severity

        def __init__(self):
            with suppress(threading.BrokenBarrierError):
                both.wait(0.2)  # for a second thread to be here, which must not happen

    trt = ModuleType("trt")
    trt.ILogger = Logger

    with ThreadPoolExecutor(2) as pool:
        loggers = list(pool.map(logger_of, [trt, trt]))

    assert loggers[0] is loggers[1] is logger_of(trt)


def test_a_library_that_is_missing_is_named_with_what_to_install():
    with pytest.raises(PluginError) as caught:
        runtime_for(OF_TENSORRT, "m", installed(RTX))
    with pytest.raises(PluginError) as of_rtx:
        runtime_for(building.identity(2), "m", installed())

    assert str(caught.value) == (
        "model 'm' is an engine of TensorRT, which cannot be imported; installed is TensorRT for RTX, which cannot "
        "read it; run pip install 'naiad-tensorrt[tensorrt]'"
    )
    assert str(of_rtx.value) == (
        "model 'm' is an engine of TensorRT for RTX, which cannot be imported; run pip install 'naiad-tensorrt[rtx]'"
    )


@pytest.mark.parametrize("content", [b"", b"ONNX model", b"\x08\x07\x12\x07pytorch"])
def test_a_file_that_is_no_engine_is_refused_by_its_first_bytes(content):
    with pytest.raises(InvalidArgumentError, match=r"the engine of model 'm' begins with b'.*', which no engine does"):
        runtime_for(content, "m")


def test_what_tensorrt_logs_goes_to_a_log_of_its_own(caplog):
    log = logger_of(rtx)

    with caplog.at_level(logging.DEBUG, "naiad.tensorrt"):
        for severity in ("VERBOSE", "INFO", "WARNING", "ERROR"):
            log.log(getattr(rtx.ILogger.Severity, severity), severity)

    assert [(record.levelname, record.message) for record in caplog.records] == [
        ("DEBUG", "VERBOSE"),
        ("DEBUG", "INFO"),
        ("WARNING", "WARNING"),
        ("ERROR", "ERROR"),
    ]


def test_errors_that_somebody_waits_for_are_reported_to_them_in_brief():
    log, severity = logger_of(rtx), rtx.ILogger.Severity.ERROR

    with complaints() as outer:
        with complaints() as expected:
            log.log(severity, "IRuntime::read: Error Code 1: no driver (In open at /_src/runtime.cpp:25 (error 35))")
        log.log(severity, "[checks.cpp::check::250] later")

    assert expected == ["IRuntime::read: Error Code 1: no driver"]
    assert outer == ["later"]


def test_each_module_has_one_logger():
    assert logger_of(rtx) is logger_of(rtx)
    assert logger_of(rtx) is not logger_of(lean)
