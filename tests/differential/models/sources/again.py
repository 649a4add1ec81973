"""Asks to see a request as often as it says, and tells how often that was; a decoupled one tells each time."""

import json

import numpy as np

import triton_python_backend_utils as pb_utils

FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL


class TritonPythonModel:
    def initialize(self, args):
        self.decoupled = pb_utils.using_decoupled_model_transaction_policy(json.loads(args["model_config"]))
        self.seen = {}

    def execute(self, requests):
        answers = [self._answer(request) for request in requests]
        return None if self.decoupled else answers

    def _answer(self, request):
        expected = int(pb_utils.get_input_tensor_by_name(request, "TIMES").as_numpy().ravel()[0])
        sequence = request.correlation_id()
        starts = request.flags() & pb_utils.TRITONSERVER_REQUEST_FLAG_SEQUENCE_START
        times = 1 if starts else self.seen.pop(sequence, 0) + 1
        over = times >= expected
        if not over:
            self.seen[sequence] = times
            request.set_release_flags(pb_utils.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)
        message = np.array([[times]], np.int32)
        response = pb_utils.InferenceResponse([pb_utils.Tensor("SEEN", message)])
        if self.decoupled:
            request.get_response_sender().send(response, FINAL if over else 0)
            return None
        return response if over else None
