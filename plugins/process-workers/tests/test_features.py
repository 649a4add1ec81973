"""What models do besides answering: streams, calls, metrics, sequences, health; all of it from their own process."""

import errno
import gc
import os
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest

from naiad.errors import ModelFailedError, NaiadError, WorkerDiedError
from naiad.metrics import Metrics
from naiad.types import Response
from naiad_process_workers import instance, services
from naiad_process_workers.codec import Decoder, Encoder
from naiad_process_workers.messages import put_response, reply_in
from naiad_process_workers.remote_services import RemoteResponses
from naiad_testing import Client

from .conftest import TENSORS, Serve, Write, held, until

ONE = np.ones(4, np.float32)
DECOUPLED = """
    input { name: "X" data_type: TYPE_FP32 dims: -1 } output { name: "Y" data_type: TYPE_FP32 dims: -1 }
    model_transaction_policy { decoupled: true }
"""
REPEAT = """
    import time
    import numpy as np
    import triton_python_backend_utils as pb_utils

    class TritonPythonModel:
        def execute(self, requests):
            for request in requests:
                x = pb_utils.get_input_tensor_by_name(request, "X").as_numpy()
                sender = request.get_response_sender()
                for number in range(int(x[0])):
                    if sender.is_cancelled():
                        open(__file__ + ".cancelled", "w").close()
                        break
                    BODY
                    y = np.full(2000, number, np.float32)
                    sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("Y", y)]))
                sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""


def test_a_decoupled_model_sends_many_responses(write: Write, served: Serve) -> None:
    with served(write("m", REPEAT, DECOUPLED)) as client:
        for count in (0, 1, 200):
            answers = [answer["Y"] for answer in client["m"].stream(X=ONE * count)]

            assert [answer[0] for answer in answers] == list(range(count))
            assert all(answer.shape == (2000,) for answer in answers)


def test_responses_with_many_strings_are_read_on_the_thread_of_the_instance_in_order(
    write: Write, served: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    def noted(decoder: Decoder) -> Any:
        threads.add(threading.current_thread().name)
        return reply_in(decoder)

    threads: set[str] = set()
    monkeypatch.setattr(instance, "reply_in", noted)
    config = DECOUPLED.replace('output { name: "Y" data_type: TYPE_FP32', 'output { name: "Y" data_type: TYPE_STRING')
    many = "np.array([str(number)] * (50_000 if number % 3 == 1 else 1), object)"
    model = write("m", REPEAT.replace("np.full(2000, number, np.float32)", many), config)

    with served(model) as client:
        for _ in range(3):
            answers = [answer["Y"] for answer in client["m"].stream(X=ONE * 12)]

            assert [int(answer[0]) for answer in answers] == list(range(12))
            assert [len(answer) for answer in answers] == [1, 50_000, 1] * 4

    assert "naiad-process-m_0" in threads


def test_a_generator_streams(write: Write, served: Serve) -> None:
    model = write(
        "m",
        """
        from collections.abc import Iterator
        from naiad_custom import INT64, Array, model

        @model
        def count(x: Array[INT64, 1]) -> Iterator[Array[INT64, 1]]:
            for number in range(x[0]):
                yield x * 0 + number
        """,
        "",
    )
    with served(model) as client:
        (name,) = [each.name for each in client.call(lambda server: server.model_metadata("m", 0)).outputs]

        assert [int(each[name][0]) for each in client["m"].stream(x=[5])] == [0, 1, 2, 3, 4]


def test_a_last_response_without_outputs_is_a_response_to_clients_and_models(write: Write, served: Serve) -> None:
    ends = "sender.send(pb_utils.InferenceResponse([]), pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL); return"
    model = write("m", REPEAT, DECOUPLED, body=f"if number == 1: {ends}")
    caller = write(
        "caller",
        """
        from naiad_custom import FP32, Array, Server, model

        @model
        def count(x: Array[FP32, 4], server: Server) -> Array[FP32, 4]:
            return x * 0 + sum(1 for _ in server.stream("m", X=x))
        """,
        "",
    )

    with served(model, caller) as client:
        answers = list(client["m"].stream(X=ONE * 3))
        called = client["caller"].infer(x=ONE * 3)

    assert [list(each) for each in answers] == [["Y"], []]
    assert called["output"][0] == 2


def test_a_client_that_leaves_is_noticed_in_the_process(write: Write, served: Serve) -> None:
    model = write("m", REPEAT, DECOUPLED, body="time.sleep(0.002)")
    cancelled = model / "1" / "model.py.cancelled"

    with served(model) as client:
        stream = client["m"].stream(X=ONE * 1e6)
        next(stream)
        stream.close()

        until(cancelled.exists)


def test_a_process_that_ends_amid_a_stream_ends_the_stream(write: Write, served: Serve) -> None:
    model = write("m", REPEAT, DECOUPLED, body="if number == 3: import os; os._exit(9)")

    with served(model) as client, pytest.raises(NaiadError, match="exit code 9"):
        list(client["m"].stream(X=ONE * 5))


def test_responses_come_before_the_error_of_a_model_that_raises_amid_a_stream(write: Write, served: Serve) -> None:
    model = write("m", REPEAT, DECOUPLED, body="if number == 3: raise ValueError('no fourth')")
    answers: list[float] = []

    with served(model) as client:
        for _ in range(10):
            with pytest.raises(ModelFailedError, match="no fourth"):
                answers.extend(answer["Y"][0] for answer in client["m"].stream(X=ONE * 5))

    assert answers == [0, 1, 2] * 10


def test_a_response_that_is_refused_ends_its_stream_and_not_its_process(write: Write, served: Serve) -> None:
    refused = """import os
    if x[0] == 7 and number == 1:
        sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("Y", x)], parameters={"\\udc80": 1}))
        while not sender.is_cancelled():
            sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("Y", x)]))"""
    model = write("m", REPEAT.replace("number, np", "os.getpid(), np"), DECOUPLED, body=refused)

    with served(model) as client:
        before = [answer["Y"][0] for answer in client["m"].stream(X=ONE)]
        with pytest.raises(ModelFailedError, match="udc80"):
            list(client["m"].stream(X=ONE * 7))
        after = [answer["Y"][0] for answer in client["m"].stream(X=ONE)]

    assert before == after


def test_the_server_forgets_a_stream_that_a_model_has_read_to_its_end(write: Write, served: Serve) -> None:
    caller = write(
        "m",
        """
        import triton_python_backend_utils as pb_utils

        class TritonPythonModel:
            def execute(self, requests):
                (request,) = requests
                x = pb_utils.get_input_tensor_by_name(request, "X")
                for _ in range(20):
                    call = pb_utils.InferenceRequest(model_name="other", requested_output_names=["Y"], inputs=[x])
                    (response,) = call.exec(decoupled=True)
                return [response]
        """,
    )
    with served(caller, write("other")) as client:
        client["m"].infer(X=ONE)

        until(lambda: not any(type(each).__name__ == "CalledResponses" for each in gc.get_objects()))


def test_each_request_of_a_batch_has_a_sender_that_sends_all_at_once(write: Write, served: Serve) -> None:
    batching = "dynamic_batching { preferred_batch_size: 3 max_queue_delay_microseconds: 20000000 }"
    config = f"{TENSORS} max_batch_size: 8 {batching}"
    final = "pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL"
    answer = f"""
request.get_response_sender().send(
    pb_utils.InferenceResponse([pb_utils.Tensor("Y", x + len(requests))]), {final}
)
responses = None if request is requests[-1] else []
continue
"""
    model = write("m", config=config, body=answer)

    with served(model) as client, ThreadPoolExecutor(3) as threads:
        answers = list(threads.map(lambda _: client.infer(X=ONE[:, None].T)["Y"].tolist(), range(3)))

    assert answers == [[[4] * 4]] * 3


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_a_reply_that_cannot_be_sent_fails_its_request_alone(write: Write, served: Serve, isolation: str) -> None:
    config = """
        max_batch_size: 3 dynamic_batching { preferred_batch_size: 3 max_queue_delay_microseconds: 20000000 }
        input { name: "X" data_type: TYPE_FP32 dims: 5000 } output { name: "Y" data_type: TYPE_FP32 dims: 5000 }
    """
    answer = """
parameters = {"n": 2**64 if x[0, 0] == 7 else len(requests)}
responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("Y", x + 1)], parameters=parameters))
continue
"""
    model = write("m", config=config, body=answer, isolation=isolation)
    rows = [np.full((1, 5000), number, np.float32) for number in (1, 7, 2)]

    with served(model) as client, ThreadPoolExecutor(3) as threads:
        for _ in range(4):
            first, failed, last = [threads.submit(client.infer, X=x) for x in rows]

            assert first.result()["Y"].tolist() == (rows[0] + 1).tolist()
            assert last.result()["Y"].tolist() == (rows[2] + 1).tolist()
            with pytest.raises(ModelFailedError, match="parameter"):
                failed.result()


def test_a_sender_that_is_dropped_fails_its_request(write: Write, served: Serve) -> None:
    model = write("m", body="request.get_response_sender(); return None")

    with served(model) as client, pytest.raises(ModelFailedError, match="dropped"):
        client.infer(X=ONE)


def test_parameters_travel_both_ways(write: Write, served: Serve) -> None:
    model = write(
        "m",
        """
        import json
        import triton_python_backend_utils as pb_utils

        class TritonPythonModel:
            def execute(self, requests):
                (request,) = requests
                tensor = pb_utils.Tensor("Y", pb_utils.get_input_tensor_by_name(request, "X").as_numpy())
                parameters = {"seen": request.parameters(), "id": request.request_id()}
                return [pb_utils.InferenceResponse([tensor], parameters=parameters)]
        """,
    )
    with served(model) as client:
        request = client["m"].request(X=ONE)
        request.parameters, request.id = {"a": 1, "b": "c"}, "seven"
        response = client.send(request)

        assert response.parameters == {"seen": '{"a": 1, "b": "c"}', "id": "seven"}


CALLER = """
    import numpy as np
    import triton_python_backend_utils as pb_utils

    class TritonPythonModel:
        def execute(self, requests):
            responses = []
            for request in requests:
                x = pb_utils.get_input_tensor_by_name(request, "X")
                name = "missing" if x.as_numpy()[0] == 7 else "other"
                call = pb_utils.InferenceRequest(
                    model_name=name, requested_output_names=["Y"], inputs=[pb_utils.Tensor("X", x.as_numpy())]
                )
                answer = call.exec()
                if answer.has_error():
                    responses.append(pb_utils.InferenceResponse(error=answer.error()))
                else:
                    y = pb_utils.get_output_tensor_by_name(answer, "Y").as_numpy()
                    responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("Y", y * 10)]))
            return responses
"""


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_a_model_calls_another(write: Write, served: Serve, isolation: str) -> None:
    with served(write("m", CALLER), write("other", isolation=isolation)) as client:
        for size in (4, 100_000):
            assert client["m"].infer(X=np.ones(size, np.float32))["Y"].tolist() == [20] * size
        with pytest.raises(NaiadError, match="Model 'missing' is not ready"):
            client["m"].infer(X=ONE * 7)


ENDING_CALLER = CALLER.replace(
    "class TritonPythonModel:",
    """import os, pathlib, threading, time

    def end():
        while not pathlib.Path("BEGUN").exists():
            time.sleep(0.01)
        os._exit(3)

    threading.Thread(target=end).start()

    class TritonPythonModel:""",
)
CALLED = """
import pathlib, time
pathlib.Path("BEGUN").touch()
until = time.monotonic() + 20
while not request.is_cancelled() and time.monotonic() < until:
    time.sleep(0.01)
pathlib.Path("BEGUN.cancelled" if request.is_cancelled() else "BEGUN.in_vain").touch()
"""


def test_the_calls_of_a_process_that_ends_are_cancelled(write: Write, served: Serve, tmp_path: Path) -> None:
    begun = str(tmp_path / "begun")
    caller = write("m", ENDING_CALLER.replace("BEGUN", begun))
    called = write("other", isolation="thread", body=CALLED.replace("BEGUN", begun))
    with served(caller, called) as client:
        with pytest.raises(WorkerDiedError, match="exit code 3"):
            client["m"].infer(X=ONE)

        until(lambda: len(list(tmp_path.glob("begun.*"))))
        assert [path.name for path in tmp_path.glob("begun.*")] == ["begun.cancelled"]


def test_a_call_whose_response_the_server_cannot_send_fails(
    write: Write, served: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(name: str, flags: int) -> NoReturn:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with served(write("m", CALLER), write("other", isolation="thread", body="x = np.ones(5000, np.float32)")) as client:
        with monkeypatch.context() as patched:
            patched.setattr(os, "memfd_create", refuse)
            with pytest.raises(NaiadError, match=r"call of model 'm' cannot be sent .*Too many open files; raise"):
                client["m"].infer(X=ONE)

        assert client["m"].infer(X=ONE)["Y"].tolist() == [20] * 5000


@pytest.mark.parametrize(("size", "on_thread"), [(4, False), (2_000_000, True)])
def test_a_large_response_to_a_call_is_copied_on_a_thread(
    write: Write, served: Serve, monkeypatch: pytest.MonkeyPatch, size: int, on_thread: bool
) -> None:
    def noted(encoder: Encoder, response: Response) -> None:
        threads.append(threading.current_thread().name)
        put_response(encoder, response)

    threads: list[str] = []
    monkeypatch.setattr(services, "put_response", noted)

    with served(write("m", CALLER), write("other", isolation="thread")) as client:
        assert client["m"].infer(X=np.ones(size, np.float32))["Y"].tolist() == [20] * size

    assert [name == "naiad-model-control" for name in threads] == [on_thread]


def test_a_model_reads_the_stream_of_another(write: Write, served: Serve) -> None:
    model = write(
        "m",
        """
        import numpy as np
        import triton_python_backend_utils as pb_utils

        class TritonPythonModel:
            async def execute(self, requests):
                (request,) = requests
                x = pb_utils.get_input_tensor_by_name(request, "X")
                assert pb_utils.is_model_ready("other")
                call = pb_utils.InferenceRequest(model_name="other", requested_output_names=["Y"], inputs=[x])
                total = 0
                for answer in call.exec(decoupled=True):
                    if answer.output_tensors():
                        total += pb_utils.get_output_tensor_by_name(answer, "Y").as_numpy()[0]
                return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", np.array([total], np.float32))])]
        """,
    )
    with served(model, write("other", REPEAT, DECOUPLED)) as client:
        assert client["m"].infer(X=ONE * 5)["Y"].tolist() == [10]


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_a_model_that_waits_for_a_response_in_vain_gets_it_later(write: Write, served: Serve, isolation: str) -> None:
    model = write(
        "m",
        """
        import asyncio, pathlib
        import numpy as np
        import triton_python_backend_utils as pb_utils

        class TritonPythonModel:
            async def execute(self, requests):
                (request,) = requests
                x = pb_utils.get_input_tensor_by_name(request, "X")
                call = pb_utils.InferenceRequest(model_name="other", requested_output_names=["Y"], inputs=[x])
                responses = (await call.async_exec(decoupled=True)).__aiter__()
                try:
                    await asyncio.wait_for(anext(responses), 0.01)
                    raise AssertionError
                except TimeoutError:
                    (pathlib.Path(__file__).parents[2] / "other" / "begin").touch()
                await asyncio.sleep(0.1)  # the first response comes, most likely
                seen = []
                async for response in responses:
                    if response.output_tensors():
                        seen.append(pb_utils.get_output_tensor_by_name(response, "Y").as_numpy()[0])
                return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", np.array(seen, np.float32))])]
        """,
        isolation=isolation,
    )
    begins = "while not (pathlib.Path(__file__).parents[1] / 'begin').exists(): time.sleep(0.001)"
    repeat = REPEAT.replace("import time", "import pathlib, time")
    other = write("other", repeat, DECOUPLED, body=begins, isolation="thread")

    with served(model, other) as client:
        assert client["m"].infer(X=ONE * 3)["Y"].tolist() == [0, 1, 2]


@pytest.mark.parametrize("comes_first", [False, True])
def test_a_response_that_comes_after_a_cancellation_is_the_next(comes_first: bool) -> None:
    class ThisCaller:
        def begin(self, name: str, number: int) -> "Future[Any]":
            assert number == 5
            calls.append((name, Future()))
            return calls[-1][1]

    calls: list[tuple[str, Future[Any]]] = []
    responses = RemoteResponses(ThisCaller(), 5)  # type: ignore[arg-type]
    assert responses.begin_next().cancel()

    if comes_first:
        calls[0][1].set_result("first")
        first = responses.begin_next()
    else:
        first = responses.begin_next()
        calls[0][1].set_result("first")
    second = responses.begin_next()
    calls[1][1].set_exception(ValueError("over"))

    assert first.result(0) == "first"
    assert isinstance(second.exception(0), ValueError)
    responses.close()
    assert [name for name, _ in calls] == ["next", "next", "close"]


def test_metrics_of_the_model_are_the_servers(write: Write, served: Serve) -> None:
    model = write(
        "m",
        """
        import triton_python_backend_utils as pb_utils

        class TritonPythonModel:
            def initialize(self, args):
                family = pb_utils.MetricFamily("calls_seen", "calls", pb_utils.MetricFamily.COUNTER)
                self.family, self.metric = family, family.Metric(labels={"a": "b"})

            def execute(self, requests):
                self.metric.increment(2)
                try:
                    self.metric.increment(-1)
                except pb_utils.TritonModelException as error:
                    assert "only go up" in str(error), error
                x = pb_utils.get_input_tensor_by_name(requests[0], "X").as_numpy()
                return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", x * 0 + self.metric.value())])] * len(requests)
        """,
    )
    with served(model) as client:
        assert client.infer(X=ONE)["Y"][0] == 2
        assert client.infer(X=ONE)["Y"][0] == 4
        families = client.call(lambda server: server.service(Metrics).collect())  # type: ignore[attr-defined]

    (family,) = [each for each in families if each.name == "calls_seen"]
    assert family.samples[0].value == 4


def test_readiness_is_what_the_instance_says(write: Write, served: Serve) -> None:
    model = write(
        "m",
        """
        import pathlib
        import triton_python_backend_utils as pb_utils

        class TritonPythonModel:
            def is_ready(self):
                return not pathlib.Path(__file__ + ".busy").exists()

            def execute(self, requests):
                return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", r.inputs()[0].as_numpy())]) for r in requests]
        """,
    )
    with served(model) as client:

        def is_ready() -> bool:
            return client.call(lambda server: server.model_ready("m", 0)).ready

        until(is_ready)
        Path(model / "1" / "model.py.busy").touch()
        until(lambda: not is_ready())


SEQUENCE = """
    max_batch_size: 4
    input { name: "X" data_type: TYPE_FP32 dims: 1 } output { name: "Y" data_type: TYPE_FP32 dims: 1 }
    sequence_batching {
      state {
        input_name: "S" output_name: "T" data_type: TYPE_FP32 dims: 1
        initial_state { data_type: TYPE_FP32 dims: 1 zero_data: true name: "zero" }
      }
    }
"""


def test_sequences_keep_their_state_and_end(write: Write, served: Serve, caplog: pytest.LogCaptureFixture) -> None:
    model = write(
        "m",
        """
        import os
        import triton_python_backend_utils as pb_utils

        class TritonPythonModel:
            def execute(self, requests):
                responses = []
                for request in requests:
                    x = pb_utils.get_input_tensor_by_name(request, "X").as_numpy()
                    s = pb_utils.get_input_tensor_by_name(request, "S").as_numpy()
                    tensors = [pb_utils.Tensor("Y", s + x), pb_utils.Tensor("T", s + x)]
                    responses.append(pb_utils.InferenceResponse(tensors))
                return responses

            def sequence_ended(self, correlation_id, reason):
                with open(__file__ + ".ended", "a") as file:
                    print(correlation_id, reason.value, os.getpid(), file=file)
                raise RuntimeError("it goes on nevertheless")
        """,
        SEQUENCE,
    )
    ended = model / "1" / "model.py.ended"

    with served(model) as client:
        for sequence in (5, 6):
            for number in (1, 2, 3):
                request = client["m"].request(X=[[number * sequence]])
                request.correlation_id = sequence
                request.sequence_start, request.sequence_end = number == 1, number == 3
                total = client.send(request).outputs["Y"].array
                assert total.tolist() == [[sequence * number * (number + 1) / 2]]
        until(lambda: ended.exists() and len(ended.read_text().splitlines()) == 2)

    (first, process), (second, same) = [line.rsplit(" ", 1) for line in ended.read_text().splitlines()]
    assert [first, second] == ["5 end", "6 end"]
    assert process == same
    assert caplog.text.count("RuntimeError: it goes on nevertheless") == 2


def test_an_onnx_model_is_isolated_as_well(tmp_path: Path, served: Serve) -> None:
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("naiad_onnx")
    tensors = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["n", "k"]) for name in ("x", "y")]
    two = onnx.numpy_helper.from_array(np.full(1, 2, np.float32), "two")
    node = onnx.helper.make_node("Mul", ["x", "two"], ["y"])
    graph = onnx.helper.make_graph([node], "g", tensors[:1], tensors[1:], [two])
    proto = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    folder = tmp_path / "models" / "double"
    (folder / "1").mkdir(parents=True)
    onnx.save(proto, folder / "1" / "model.onnx")
    isolation = 'parameters { key: "isolation" value { string_value: "process" } }'
    (folder / "config.pbtxt").write_text(f"instance_group {{ count: 2 kind: KIND_CPU }} {isolation}")

    with served(folder) as client:
        assert client.infer(x=[[1, 2, 3]])["y"].tolist() == [[2, 4, 6]]
        large = np.ones((4, 5000), np.float32)
        assert np.array_equal(client.infer(x=large)["y"], large * 2)
        size = (folder / "1" / "model.onnx").stat().st_size
        (statistics,) = client.server.statistics("double")
        assert [(each.type, each.id, each.byte_size) for each in statistics.memory_usage] == [("CPU", 0, 2 * size)]


def test_the_server_never_forks(write: Write, served: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> NoReturn:
        raise OSError(errno.EPERM, "a process with threads must not fork")

    monkeypatch.setattr(os, "fork", refuse)

    with served(write("m")) as client:
        assert client.infer(X=ONE)["Y"][0] == 2


def test_loads_and_unloads_leave_nothing(write: Write, served: Serve) -> None:
    def unloaded_after(client: Client, loads: int) -> None:
        for load in range(loads):
            if load:
                client.wait_for(lambda server: server.load("m"))
            assert client.infer(X=large)["Y"][0] == 2
            client.wait_for(lambda server: server.unload("m"))

    model = write("m")
    large = np.ones(100_000, np.float32)
    with served(model) as client:
        unloaded_after(client, 2)
        before = held()
        client.wait_for(lambda server: server.load("m"))
        unloaded_after(client, 2)
        # what an unloaded model held may end a moment after the unload has returned
        until(lambda: all(now <= then for now, then in zip(held(), before, strict=True)))
