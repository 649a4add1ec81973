"""Triton-style models that call others, as users write them after Triton's own tutorials."""

from pathlib import Path

ADD = """
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            in_0 = pb_utils.get_input_tensor_by_name(request, "INPUT0").as_numpy()
            in_1 = pb_utils.get_input_tensor_by_name(request, "INPUT1").as_numpy()
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("SUM", in_0 + in_1)]))
        return responses
"""
SUB = ADD.replace('"SUM"', '"DIFFERENCE"').replace("in_0 + in_1", "in_0 - in_1")
TWO_IN = """
input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ 4 ] }, { name: "INPUT1" data_type: TYPE_FP32 dims: [ 4 ] } ]
"""
ADD_CONFIG = TWO_IN + 'output [ { name: "SUM" data_type: TYPE_FP32 dims: [ 4 ] } ]'
SUB_CONFIG = TWO_IN + 'output [ { name: "DIFFERENCE" data_type: TYPE_FP32 dims: [ 4 ] } ]'
BOTH_CONFIG = (
    TWO_IN
    + """
output [ { name: "SUM" data_type: TYPE_FP32 dims: [ 4 ] }, { name: "DIFFERENCE" data_type: TYPE_FP32 dims: [ 4 ] } ]
"""
)

SYNC = '''
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """Calls one model after the other; which one comes first is the configuration's."""

    def execute(self, requests):
        responses = []
        for request in requests:
            inputs = [pb_utils.get_input_tensor_by_name(request, name) for name in ("INPUT0", "INPUT1")]
            outputs = []
            for model, output in (("add", "SUM"), ("sub", "DIFFERENCE")):
                infer_request = pb_utils.InferenceRequest(
                    model_name=model, requested_output_names=[output], inputs=inputs
                )
                infer_response = infer_request.exec()
                if infer_response.has_error():
                    raise pb_utils.TritonModelException(infer_response.error().message())
                outputs += infer_response.output_tensors()
            responses.append(pb_utils.InferenceResponse(output_tensors=outputs))
        return responses
'''
ASYNC = '''
import asyncio

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """Calls both models at once for each request."""

    async def execute(self, requests):
        responses = []
        for request in requests:
            inputs = [pb_utils.get_input_tensor_by_name(request, name) for name in ("INPUT0", "INPUT1")]
            awaits = []
            for model, output in (("add", "SUM"), ("sub", "DIFFERENCE")):
                infer_request = pb_utils.InferenceRequest(
                    model_name=model, requested_output_names=[output], inputs=inputs
                )
                awaits.append(infer_request.async_exec())
            infer_responses = await asyncio.gather(*awaits)
            for infer_response in infer_responses:
                if infer_response.has_error():
                    raise pb_utils.TritonModelException(infer_response.error().message())
            tensors = [response.output_tensors()[0] for response in infer_responses]
            responses.append(pb_utils.InferenceResponse(output_tensors=tensors))
        return responses
'''

SQUARE = '''
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """Sends its input as many times as it says."""

    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            value = pb_utils.get_input_tensor_by_name(request, "IN").as_numpy()
            for _ in range(int(value[0])):
                sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", value)]))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        return None
'''
ONE_CONFIG = """
input [ { name: "IN" data_type: TYPE_INT32 dims: [ 1 ] } ]
output [ { name: "OUT" data_type: TYPE_INT32 dims: [ 1 ] } ]
"""
DECOUPLED_CONFIG = ONE_CONFIG + "model_transaction_policy { decoupled: true }"
SUM_OF_SQUARES = '''
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """Adds up what a decoupled model sends."""

    def execute(self, requests):
        responses = []
        for request in requests:
            given = pb_utils.get_input_tensor_by_name(request, "IN")
            infer_request = pb_utils.InferenceRequest(
                model_name="square", requested_output_names=["OUT"], inputs=[given]
            )
            total = 0
            for infer_response in infer_request.exec(decoupled=True):
                if infer_response.has_error():
                    raise pb_utils.TritonModelException(infer_response.error().message())
                if len(infer_response.output_tensors()) > 0:
                    total += int(pb_utils.get_output_tensor_by_name(infer_response, "OUT").as_numpy()[0])
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([total], np.int32))]))
        return responses
'''
ASYNC_SUM = '''
import asyncio

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """Adds up what a decoupled model sends for two requests at once."""

    async def execute(self, requests):
        responses = []
        for request in requests:
            given = pb_utils.get_input_tensor_by_name(request, "IN")
            awaits = [
                pb_utils.InferenceRequest(
                    model_name="square", requested_output_names=["OUT"], inputs=[given]
                ).async_exec(decoupled=True)
                for _ in range(2)
            ]
            total = 0
            for infer_responses in await asyncio.gather(*awaits):
                for infer_response in infer_responses:
                    if len(infer_response.output_tensors()) > 0:
                        total += int(pb_utils.get_output_tensor_by_name(infer_response, "OUT").as_numpy()[0])
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([total], np.int32))]))
        return responses
'''

CODES = '''
import json

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """Fails with the code that it is asked for."""

    def execute(self, requests):
        responses = []
        for request in requests:
            code = int(pb_utils.get_input_tensor_by_name(request, "IN").as_numpy()[0])
            names = ["UNKNOWN", "INTERNAL", "NOT_FOUND", "INVALID_ARG", "UNAVAILABLE", "UNSUPPORTED", "ALREADY_EXISTS"]
            names.append("CANCELLED")
            error = pb_utils.TritonError("code " + names[code], getattr(pb_utils.TritonError, names[code]))
            responses.append(pb_utils.InferenceResponse(error=error))
        return responses
'''
HANDS_ON = '''
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """Gives its caller the error that it got."""

    def execute(self, requests):
        responses = []
        for request in requests:
            given = pb_utils.get_input_tensor_by_name(request, "IN")
            infer_request = pb_utils.InferenceRequest(
                model_name="codes", requested_output_names=["OUT"], inputs=[given]
            )
            responses.append(pb_utils.InferenceResponse(error=infer_request.exec().error()))
        return responses
'''
TELLS = '''
import numpy as np
import triton_python_backend_utils as pb_utils


def tensor(value):
    return pb_utils.Tensor("IN", np.array([value], np.int32))


class TritonPythonModel:
    """Tells, in the message of an error, what becomes of calls that go wrong."""

    def execute(self, requests):
        number = int(pb_utils.get_input_tensor_by_name(requests[0], "IN").as_numpy()[0])
        wrong = [
            lambda: pb_utils.InferenceRequest(model_name="nobody", requested_output_names=["OUT"], inputs=[tensor(1)]),
            lambda: pb_utils.InferenceRequest(model_name="square", requested_output_names=["OUT"], inputs=[tensor(1)]),
            lambda: pb_utils.InferenceRequest(model_name="codes", requested_output_names=["OUT"], inputs=[]),
            lambda: pb_utils.InferenceRequest(
                model_name="codes", requested_output_names=["OUT"], inputs=[tensor(1)], model_version=7
            ),
            lambda: pb_utils.InferenceRequest(model_name="codes", requested_output_names=["NONE"], inputs=[tensor(1)]),
            lambda: pb_utils.InferenceRequest(model_name="tells", requested_output_names=["OUT"], inputs=[tensor(0)]),
        ][number]
        try:
            response = wrong().exec()
        except Exception as raised:
            told = "raised " + type(raised).__name__ + ": " + str(raised)
        else:
            told = "error " + str(int(response.error().code())) + ": " + response.error().message()
        return [pb_utils.InferenceResponse(error=pb_utils.TritonError(told)) for request in requests]
'''

NATIVE = """
import asyncio

from naiad_custom import INT32, Array, AsyncServer, model

@model(outputs="OUT")
async def native(IN: Array[INT32, 1], server: AsyncServer) -> Array[INT32, 1]:
    (first, second) = await asyncio.gather(server.infer("native_sum", IN=IN), server.infer("native_sum", IN=IN + 1))
    return first["OUT"] + second["OUT"]
"""
NATIVE_SUM = """
from naiad_custom import INT32, Array, Server, model

@model(outputs="OUT")
def native_sum(IN: Array[INT32, 1], server: Server) -> Array[INT32, 1]:
    return sum((outputs["OUT"] for outputs in server.stream("square", IN=IN)), IN * 0)
"""
NATIVE_HANDS_ON = """
from naiad_custom import INT32, Array, AsyncServer, model

@model(outputs="OUT")
async def native_hands_on(IN: Array[INT32, 1], server: AsyncServer) -> Array[INT32, 1]:
    return (await server.infer("codes", IN=IN))["OUT"]
"""

MODELS = {
    "native": (NATIVE, ""),
    "native_sum": (NATIVE_SUM, ""),
    "native_hands_on": (NATIVE_HANDS_ON, ""),
    "add": (ADD, ADD_CONFIG),
    "sub": (SUB, SUB_CONFIG),
    "both": (SYNC, BOTH_CONFIG),
    "both_async": (ASYNC, BOTH_CONFIG),
    "square": (SQUARE, DECOUPLED_CONFIG),
    "sum": (SUM_OF_SQUARES, ONE_CONFIG),
    "sum_async": (ASYNC_SUM, ONE_CONFIG),
    "codes": (CODES, ONE_CONFIG),
    "hands_on": (HANDS_ON, ONE_CONFIG),
    "tells": (TELLS, ONE_CONFIG),
}


def write(repository: Path, name: str, code: str, config: str, count: int = 1) -> None:
    """The folder of a model, also for the peer."""
    folder = repository / name / "1"
    folder.mkdir(parents=True)
    (folder / "model.py").write_text(code.lstrip(), encoding="utf-8")
    group = f"instance_group [ {{ kind: KIND_CPU count: {count} }} ]"
    (folder.parent / "config.pbtxt").write_text(f'backend: "python"\n{config}\n{group}\n', encoding="utf-8")


def write_all(repository: Path) -> None:
    for name, (code, config) in MODELS.items():
        write(repository, name, code, config)
