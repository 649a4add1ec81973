"""Marked functions and classes at work: batches in, arrays out, errors to the caller."""

import inspect
import logging
from typing import NamedTuple

import ml_dtypes
import numpy as np
import pytest

from naiad import Request
from naiad.backend import Batch, ModelContext, Placement
from naiad.errors import ConfigError, InvalidArgumentError, ModelFailedError, ModelNotReadyError
from naiad_custom import BF16, BOOL, BYTES, FP32, INT64, Array, model
from naiad_testing import serve


@model(max_batch_size=8)
def add(a: Array[FP32, 2], b: Array[FP32, 2]) -> Array[FP32, 2]:
    return a + b


def test_a_marked_function_is_served_as_it_stands():
    with serve(add) as client:
        answer = client.infer(a=[[1, 2]], b=[[3, 4]])

    assert answer["output"].tolist() == [[4, 6]]


def test_requests_that_wait_together_are_one_call():
    sizes = []

    @model(max_batch_size=8)
    def double(x: Array[FP32, 1]) -> Array[FP32, 1]:
        sizes.append(len(x))
        return x * 2

    with serve(double) as client:
        answers = client.infer_all(*({"x": [[number]]} for number in range(6)))

    assert [answer["output"].item() for answer in answers] == [0, 2, 4, 6, 8, 10]
    assert sum(sizes) == 6
    assert max(sizes) > 1


def test_a_file_alone_in_its_folder_is_a_model(folder):
    folder.write("""
        from naiad_custom import FP32, Array, model

        @model(max_batch_size=8)
        def add(a: Array[FP32, 2], b: Array[FP32, 2]) -> Array[FP32, 2]:
            return a + b
    """)

    with serve(folder.path) as client:
        assert client.infer(a=[[1, 2]], b=[[3, 4]])["output"].tolist() == [[4, 6]]


class Pair(NamedTuple):
    total: Array[FP32, 2]
    difference: Array[FP32, 2]


def test_a_named_tuple_answers_with_several_outputs():
    @model
    def both(a: Array[FP32, 2], b: Array[FP32, 2]) -> Pair:
        return Pair(total=a + b, difference=a - b)

    with serve(both) as client:
        answer = client.infer(a=[5, 5], b=[1, 2])

    assert {name: array.tolist() for name, array in answer.items()} == {"total": [6, 7], "difference": [4, 3]}


@pytest.mark.parametrize(
    "result", ["total, difference", "dict(total=total, difference=difference)", "R(total, difference)"]
)
def test_tuples_dicts_and_dataclasses_answer_too(folder, batch_of, result):
    arrays = "Array[FP32, 2]"
    annotation = {
        "t": f"tuple[{arrays}, {arrays}]",
        "d": f'{{"total": {arrays}, "difference": {arrays}}}',
        "R": "R",
    }[result[0]]
    outputs = 'outputs=("total", "difference")' if result[0] == "t" else ""
    folder.write(f"""
        from dataclasses import dataclass
        from naiad_custom import FP32, Array, model

        @dataclass
        class R:
            total: Array[FP32, 2]
            difference: Array[FP32, 2]

        @model({outputs})
        def both(a: Array[FP32, 2], b: Array[FP32, 2]) -> {annotation}:
            total, difference = a + b, a - b
            return {result}
    """)

    inputs = {name: np.array(values, np.float32) for name, values in (("a", [5, 5]), ("b", [1, 2]))}
    answer = folder.instance().execute(batch_of(inputs, batching=False))

    assert {name: array.tolist() for name, array in answer.items()} == {"total": [6, 7], "difference": [4, 3]}


def test_an_optional_input_that_is_left_out_takes_its_default():
    @model
    def scaled(x: Array[FP32, 2], by: Array[FP32, 1] | None = None) -> Array[FP32, 2]:
        return x * (10 if by is None else by)

    with serve(scaled) as client:
        assert client.infer(x=[1, 2])["output"].tolist() == [10, 20]
        assert client.infer(x=[1, 2], by=[3])["output"].tolist() == [3, 6]


def test_bf16_is_float32_inside_the_function():
    seen = []

    @model
    def third(x: Array[BF16, 2]) -> Array[BF16, 2]:
        seen.append(x.dtype)
        return x / 3

    with serve(third) as client:
        answer = client.infer(x=[1.0, 2.0])["output"]

    assert seen == [np.float32]
    assert answer.tolist() == (np.array([1, 2], ml_dtypes.bfloat16) / 3).astype(np.float32).tolist()


def test_strings_go_in_as_bytes_and_out_as_either():
    @model
    def shout(text: Array[BYTES, -1]) -> Array[BYTES, -1]:
        return np.array([each.decode().upper() for each in text], dtype=object)

    with serve(shout) as client:
        assert client.infer(text=["so", "grün"])["output"].tolist() == [b"SO", "GRÜN".encode()]


def test_a_function_may_ask_for_its_request():
    @model
    def named(x: Array[INT64, 1], request: Request) -> Array[BYTES, 2]:
        return np.array([request.id, request.parameters["who"]], dtype=object)

    with serve(named) as client:
        request = client.request(x=[1])
        request.id, request.parameters = "seven", {"who": "me"}
        response = client.send(request)

    assert response.outputs["output"].array.tolist() == [b"seven", b"me"]


def test_a_function_of_batches_may_ask_for_the_batch():
    @model(max_batch_size=4)
    def ids(x: Array[INT64, 1], batch: Batch) -> Array[BYTES, 1]:
        results = [request.id for request, size in zip(batch.requests, batch.sizes, strict=True) for _ in range(size)]
        return np.array(results, dtype=object)[:, None]

    with serve(ids) as client:
        request = client.request(x=[[1], [2]])
        request.id = "both"
        response = client.send(request)

    assert response.outputs["output"].array.tolist() == [[b"both"], [b"both"]]


def test_a_single_request_in_a_function_of_batches_is_refused():
    @model(max_batch_size=4)
    def named(x: Array[INT64, 1], request: Request) -> Array[INT64, 1]:
        return x

    with pytest.raises(ConfigError, match=r"write request: Batch and look at request\.requests"), serve(named):
        pass


def test_inputs_are_read_only_alone_and_in_a_batch(batch_of, folder):
    folder.write("""
        from naiad_custom import INT64, Array, model

        @model(max_batch_size=4)
        def spoil(x: Array[INT64, 1]) -> Array[INT64, 1]:
            x += 1
            return x
    """)
    instance = folder.instance()

    for batch in (batch_of({"x": [[1]]}), batch_of({"x": [[1]]}, {"x": [[2]]})):
        with pytest.raises(ValueError, match="read-only"):
            instance.execute(batch)


def test_an_error_in_the_function_goes_to_the_caller_and_its_traceback_to_the_log(caplog):
    @model
    def broken(x: Array[INT64, 1]) -> Array[INT64, 1]:
        raise ValueError("no such luck")

    with (
        serve(broken) as client,
        pytest.raises(ModelFailedError, match=r"ValueError: no such luck \(test_functions\.py:\d+\)$"),
    ):
        client.infer(x=[1])

    logged = [record.exc_text for record in caplog.records if record.exc_text]
    assert [text.splitlines()[1].endswith("in broken") for text in logged] == [True]


def test_an_error_of_naiad_keeps_its_kind():
    @model
    def picky(x: Array[INT64, 1]) -> Array[INT64, 1]:
        raise InvalidArgumentError("x must be even")

    with serve(picky) as client, pytest.raises(InvalidArgumentError, match="x must be even"):
        client.infer(x=[1])


def test_a_function_that_forgets_to_return_is_reported():
    @model
    def forgetful(x: Array[INT64, 1]) -> Array[INT64, 1]:
        x + 1

    with serve(forgetful) as client, pytest.raises(ModelFailedError, match=r"returned None.*; return one array"):
        client.infer(x=[1])


def test_an_answer_of_another_datatype_is_the_models_error():
    @model
    def wrong(x: Array[INT64, 1]) -> Array[BOOL, 1]:
        return x * 0.5

    with (
        serve(wrong) as client,
        pytest.raises(ModelFailedError, match=r"output 'output': it is float64 .* as \.astype\(bool\)"),
    ):
        client.infer(x=[1])


def test_a_class_is_loaded_once_an_instance_and_closed(tmp_path):
    events = []

    @model(max_batch_size=4)
    class Scale:
        def load(self, context: ModelContext, placement: Placement) -> None:
            events.append(("load", context.config.name, placement.kind))
            self.factor = 3

        def execute(self, x: Array[INT64, 1]) -> Array[INT64, 1]:
            return x * self.factor

        def close(self) -> None:
            events.append("close")

    with serve(Scale) as client:
        assert client.infer(x=[[2]])["output"].tolist() == [[6]]
        assert events == [("load", "Scale", "CPU")]

    assert events[1:] == ["close"]


def test_a_class_without_execute_is_refused():
    @model
    class Empty:
        pass

    line = inspect.getsourcelines(Empty)[1] + 1
    with pytest.raises(ConfigError, match=rf"test_functions\.py:{line}:5: class '.*Empty' has no"), serve(Empty):
        pass


def test_a_load_that_fails_names_the_line(folder, caplog):
    folder.write("""
        from naiad_custom import INT64, Array, model

        @model
        class Broken:
            def load(self, context):
                self.weights = open("/nowhere/weights")

            def execute(self, x: Array[INT64, 1]) -> Array[INT64, 1]:
                return x
    """)

    with pytest.raises(ModelNotReadyError, match=r"model\.py:6: loading the model failed: FileNotFoundError"):  # noqa: SIM117
        with caplog.at_level(logging.CRITICAL), serve(folder.path):
            pass


@pytest.mark.parametrize(("answer", "reason"), [("warming up", "warming up"), (False, "answered False"), (True, "")])
def test_a_class_may_say_that_it_is_not_ready(answer, reason):
    @model
    class Moody:
        def ready(self) -> object:
            return answer

        def execute(self, x: Array[INT64, 1]) -> Array[INT64, 1]:
            return x

    with serve(Moody, options={"exit-on-error": False}) as client:
        readiness = client.call(lambda server: server.model_ready("Moody"))

    assert readiness.ready is not bool(reason)
    assert reason in " ".join(readiness.reasons)


def test_a_class_that_answers_later_whether_it_is_ready_is_refused():
    @model
    class Sleepy:
        async def ready(self) -> bool:
            return True

        def execute(self, x: Array[INT64, 1]) -> Array[INT64, 1]:
            return x

    refusal = rf"test_functions\.py:{inspect.getsourcelines(Sleepy.ready)[1]}:9: '.*Sleepy\.ready' is async def"
    with pytest.raises(ConfigError, match=refusal), serve(Sleepy):
        pass
