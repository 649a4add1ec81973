"""Answers a text with one response: the text in as many words as it is asked for."""

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
        return [self._answer(request) for request in requests]

    def _answer(self, request):
        limit = pb_utils.get_input_tensor_by_name(request, "max_tokens")
        count = 1 if limit is None else int(limit.as_numpy().ravel()[0])
        if count < 0:
            raise ValueError("fewer than no words")
        array = pb_utils.get_input_tensor_by_name(request, "text_input").as_numpy().ravel()[0].decode()
        words = [f"{array} {index}" for index in range(count)]
        outputs = [pb_utils.Tensor("text_output", text(*words)), pb_utils.Tensor("report", text(report_of(request)))]
        return pb_utils.InferenceResponse(outputs)
