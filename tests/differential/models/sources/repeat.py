"""As many responses as the request says; one of them an error, or without outputs, where it says which."""

import numpy as np

import triton_python_backend_utils as pb_utils

FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL


class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            self._answer(request, request.get_response_sender())
        return

    def _answer(self, request, sender):
        count = self._value(request, "IN", 0)
        fail_at = self._value(request, "FAIL_AT", -1)
        empty_at = self._value(request, "EMPTY_AT", -1)
        ends_with_last = bool(self._value(request, "END_WITH_LAST", 0))
        for index in range(count):
            last = ends_with_last and index == count - 1
            response = self._failed(index) if index == fail_at else self._response(index, empty=index == empty_at)
            sender.send(response, **({"flags": FINAL} if last else {}))
        if not (ends_with_last and count):
            sender.send(flags=FINAL)

    def _value(self, request, name, default):
        tensor = pb_utils.get_input_tensor_by_name(request, name)
        return default if tensor is None else int(tensor.as_numpy()[0])

    def _response(self, index, empty):
        if empty:
            return pb_utils.InferenceResponse([])
        number = pb_utils.Tensor("OUT", np.array([index], np.int32))
        text = pb_utils.Tensor("TEXT", np.array([f"word {index}".encode()], dtype=object))
        return pb_utils.InferenceResponse([number, text])

    def _failed(self, index):
        return pb_utils.InferenceResponse(error=pb_utils.TritonError(f"response {index} went wrong"))
