"""Answers a text with as many responses as it is asked for, one word each."""

import json

import numpy as np

import triton_python_backend_utils as pb_utils


def text(*values):
    return np.array([value.encode() for value in values], dtype=object)


def report_of(request):
    """The shapes and values of the inputs, and the parameters, as JSON."""
    report = {}
    for tensor in request.inputs():
        array = tensor.as_numpy()
        values = [value.decode() for value in array.ravel()] if array.dtype == object else array.ravel().tolist()
        report[tensor.name()] = [list(array.shape), values]
    return json.dumps([report, json.loads(request.parameters()), request.request_id()], sort_keys=True)


class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            self._answer(request, request.get_response_sender())
        return

    def _answer(self, request, sender):
        limit = pb_utils.get_input_tensor_by_name(request, "max_tokens")
        count = 2 if limit is None else int(limit.as_numpy().ravel()[0])
        array = pb_utils.get_input_tensor_by_name(request, "text_input").as_numpy().ravel()[0].decode()
        for index in range(count):
            word = pb_utils.Tensor("text_output", text(f"{array} {index}"))
            message = pb_utils.Tensor("report", text(report_of(request)))
            sender.send(pb_utils.InferenceResponse([word, message]))
        if array == "fail":
            sender.send(pb_utils.InferenceResponse(error=pb_utils.TritonError("failed as asked for")))
        sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
