"""What a model in a process of its own has of the server: traces, and control of other models."""

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext

import numpy as np

from naiad.types import Request
from naiad_kit.tracing import EventTrace
from naiad_tensors.tensors import Tensor

from .conftest import Serve, Write

CONTEXT = '{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}'


class RecordedTrace(EventTrace):
    """A trace that keeps its events, and the traces that it caused."""

    def __init__(self, model: str = "") -> None:
        self.version = 0
        self.model = model
        self.events: list[str] = []
        self.children: list[RecordedTrace] = []

    def record(self, event: str, ns: int | None = None) -> None:
        self.events.append(event)

    def tensors(self, activity: str, tensors: Iterable[Tensor]) -> None:
        pass

    def child(self, model: str, version: int = 0, request_id: str = "") -> "RecordedTrace":
        self.children.append(RecordedTrace(model))
        return self.children[-1]

    def current(self) -> AbstractContextManager[None]:
        return nullcontext()

    def context(self) -> str:
        return CONTEXT

    def end(self) -> None:
        self.events.append("end")


def test_a_model_reads_the_context_of_its_trace_and_calls_join_it(write: Write, served: Serve) -> None:
    caller = write(
        "m",
        """
        import numpy as np
        import triton_python_backend_utils as pb_utils

        class TritonPythonModel:
            def execute(self, requests):
                (request,) = requests
                text = request.trace().get_context() or ""
                x = pb_utils.get_input_tensor_by_name(request, "X")
                for trace in ({"trace": request.trace()}, {}):
                    call = pb_utils.InferenceRequest(
                        model_name="other", requested_output_names=["Y"], inputs=[x], **trace
                    )
                    assert not call.exec().has_error()
                y = np.frombuffer(text.encode(), np.uint8).astype(np.float32)
                return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", y)])]
        """,
    )
    with served(caller, write("other")) as client:
        for trace in (RecordedTrace(), None):
            request = Request("m", {"X": Tensor.of("X", np.ones(4, np.float32))}, trace=trace)
            response = client.wait_for(lambda server, request=request: server.infer(request))

            text = response.outputs["Y"].array.astype(np.uint8).tobytes().decode()
            assert text == ("" if trace is None else CONTEXT)
            if trace is not None:
                assert [each.model for each in trace.children] == ["other", "other"]
                assert all("COMPUTE_END" in each.events and each.events[-1] == "end" for each in trace.children)


def test_a_span_of_the_model_is_below_the_server_s(write: Write, served: Serve) -> None:
    model = write(
        "m",
        """
        import numpy as np
        import triton_python_backend_utils as pb_utils
        from opentelemetry import trace

        class TritonPythonModel:
            def execute(self, requests):
                span = trace.get_current_span().get_span_context().span_id
                y = np.array([span % 9973], np.float32)
                return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", y)]) for request in requests]
        """,
    )
    with served(model) as client:
        request = Request("m", {"X": Tensor.of("X", np.ones(4, np.float32))}, trace=RecordedTrace())

        response = client.wait_for(lambda server: server.infer(request))

        assert response.outputs["Y"].array.tolist() == [0xB7AD6B7169203331 % 9973]


def test_a_model_loads_and_unloads_another(write: Write, served: Serve) -> None:
    controller = write(
        "m",
        """
        import numpy as np
        import triton_python_backend_utils as pb_utils

        class TritonPythonModel:
            def execute(self, requests):
                (request,) = requests
                seen = [pb_utils.is_model_ready("other")]
                pb_utils.unload_model("other")
                seen.append(pb_utils.is_model_ready("other"))
                pb_utils.load_model("other")
                seen.append(pb_utils.is_model_ready("other"))
                try:
                    pb_utils.load_model("missing")
                except pb_utils.TritonModelException as error:
                    seen.append("missing" in str(error))
                y = np.array(seen, np.float32)
                return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", y)])]
        """,
    )
    with served(controller, write("other")) as client:
        assert client["m"].infer(X=np.ones(1, np.float32))["Y"].tolist() == [1, 0, 1, 1]
        assert client["other"].infer(X=np.ones(1, np.float32))["Y"].tolist() == [2]
