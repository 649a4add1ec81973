"""Models of sequences behind a whole server: controls, states, flags, rows without a request, and ends."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import naiad_custom
import naiad_scheduler_sequence
from naiad.errors import ModelFailedError
from naiad_testing import serve

PLUGINS = [naiad_custom, naiad_scheduler_sequence]
ADDING = """
    from typing import NamedTuple

    import numpy as np
    from naiad_custom import BOOL, INT32, Array, model

    class Sums(NamedTuple):
        total: Array[INT32, 1]
        sum_out: Array[INT32, 1]

    @model(max_batch_size=8)
    {kind} add(x: Array[INT32, 1], sum_in: Array[INT32, 1], start: Array[BOOL, 1]) -> Sums:
        total = np.where(start, x, x + sum_in)
        return Sums(total, total)
"""
STATE = """
instance_group [ { count: 1 } ]
sequence_batching {
  STRATEGY
  control_input [ { name: "start" control [ { kind: CONTROL_SEQUENCE_START bool_false_true: [ false, true ] } ] } ]
  state [ { input_name: "sum_in" output_name: "sum_out" data_type: TYPE_INT32 dims: [ 1 ] } ]
}
"""
TELLING = """
    import triton_python_backend_utils as pb_utils

    class TritonPythonModel:
        def initialize(self, args):
            self.batches = []

        def execute(self, requests):
            self.batches.append([self.seen(request) for request in requests])
            report = str(self.batches[-1]).encode()
            return [self.answer(report) for request in requests]

        def seen(self, request):
            tensors = [pb_utils.get_input_tensor_by_name(request, name) for name in ("START", "READY", "ID")]
            return (request.correlation_id(), request.flags(), [tensor.as_numpy().tolist() for tensor in tensors])

        def answer(self, report):
            import numpy as np

            return pb_utils.InferenceResponse([pb_utils.Tensor("REPORT", np.array([[report]], object))])
"""
CONTROLS = """
max_batch_size: 4
instance_group [ { count: 1 } ]
input { name: "X" data_type: TYPE_INT32 dims: 1 }
output { name: "REPORT" data_type: TYPE_STRING dims: 1 }
sequence_batching {
  STRATEGY
  control_input [
    { name: "START" control [ { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } ] },
    { name: "READY" control [ { kind: CONTROL_SEQUENCE_READY fp32_false_true: [ 0, 1 ] } ] },
    { name: "ID" control [ { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } ] }
  ]
}
"""


@contextmanager
def asking(folder: Any) -> Iterator[Any]:
    """A function that asks the model that is written there: of a sequence, with a number and flags."""
    with serve(folder.path, plugins=PLUGINS) as client:
        (name,) = (each.name for each in client.call(lambda server: server.model_metadata("m")).inputs)

        def ask(sequence: int | str, number: int, start: bool = False, end: bool = False) -> Any:
            request = client.request(**{name: np.array([[number]], np.int32)})
            request.correlation_id, request.sequence_start, request.sequence_end = sequence, start, end
            return next(iter(client.send(request).outputs.values())).array.item()

        yield ask


@pytest.mark.parametrize("strategy", ["direct {}", "oldest { max_candidate_sequences: 4 }"])
@pytest.mark.parametrize("kind", ["def", "async def"])
def test_a_function_takes_and_returns_the_state_of_its_sequences(folder, kind, strategy):
    folder.write(ADDING.format(kind=kind), STATE.replace("STRATEGY", strategy))

    with asking(folder) as ask:
        first = ask("a", 5, start=True)
        other = ask("b", 100, start=True)
        second = ask("a", 7)
        again = ask("a", 1, start=True, end=True)
        last = ask("b", 1, end=True)

    assert (first, other, second, again, last) == (5, 100, 12, 1, 101)


def test_a_call_that_fails_leaves_the_state_as_it_was(folder):
    code = ADDING.format(kind="def").replace("total = np.where", "assert (x < 50).all()\n        total = np.where")
    folder.write(code, STATE.replace("STRATEGY", "direct {}"))

    with asking(folder) as ask:
        ask(1, 5, start=True)
        with pytest.raises(ModelFailedError):
            ask(1, 60)
        after = ask(1, 7)

    assert after == 12


def test_a_triton_model_sees_flags_ids_and_controls(folder):
    folder.write(TELLING, CONTROLS.replace("STRATEGY", "direct {}"))

    with asking(folder) as ask:
        reports = [ask(7, 0, start=True), ask(7, 0), ask(7, 0, end=True), ask(8, 0, start=True, end=True)]

    assert reports == [
        b"[(7, 1, [[[1]], [[1.0]], [[7]]])]",
        b"[(7, 0, [[[0]], [[1.0]], [[7]]])]",
        b"[(7, 2, [[[0]], [[1.0]], [[7]]])]",
        b"[(8, 3, [[[1]], [[1.0]], [[8]]])]",
    ]


def test_a_row_without_a_request_is_not_ready_and_belongs_to_no_sequence(folder):
    folder.write(TELLING, CONTROLS.replace("STRATEGY", "direct {}"))

    with asking(folder) as ask:
        ask(7, 0, start=True)
        first = ask(8, 0, start=True)
        second = ask(8, 0)

    assert first == b"[(0, 0, [[[0]], [[0.0]], [[0]]]), (8, 1, [[[1]], [[1.0]], [[8]]])]"
    assert second == b"[(0, 0, [[[0]], [[0.0]], [[0]]]), (8, 0, [[[0]], [[1.0]], [[8]]])]"


def test_the_oldest_strategy_has_no_rows_without_a_request(folder):
    folder.write(TELLING, CONTROLS.replace("STRATEGY", "oldest { max_candidate_sequences: 4 }"))

    with asking(folder) as ask:
        ask(7, 0, start=True)
        message = ask(8, 0, start=True)

    assert message == b"[(8, 1, [[[1]], [[1.0]], [[8]]])]"


ENDING = """
    from naiad_custom import INT32, Array, model
    from naiad.backend import Batch

    ENDED = []

    @model(max_batch_size=4, outputs="count")
    class Ending:
        {kind} execute(self, x: Array[INT32, 1], batch: Batch) -> Array[INT32, 1]:
            if x[0, 0] == 99:
                raise ValueError(str(ENDED))
            return x

        {kind} sequence_ended(self, correlation_id, reason):
            ENDED.append((correlation_id, str(reason)))
"""


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_a_class_is_reported_which_sequences_are_over_and_why(folder, kind):
    idle = "sequence_batching { max_sequence_idle_microseconds: 60000000 }"
    folder.write(ENDING.format(kind=kind), f"instance_group [ {{ count: 1 }} ] {idle}")

    with asking(folder) as ask:
        ask("first", 1, start=True)
        ask("first", 1, end=True)
        ask(2, 1, start=True, end=True)
        with pytest.raises(ModelFailedError, match=r"\[\('first', 'end'\), \(2, 'end'\)\]"):
            ask(3, 99, start=True, end=True)  # an open one would keep the server from stopping


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_a_model_that_does_not_listen_is_not_reported(folder, kind):
    folder.write(ADDING.format(kind=kind), STATE.replace("STRATEGY", ""))

    assert not hasattr(folder.instance(), "sequence_ended")


def test_a_triton_model_may_listen_too(folder):
    listens = "    def sequence_ended(self, *report):\n            self.batches.append(report)"
    folder.write(f"{TELLING.rstrip()}\n\n    {listens}", CONTROLS.replace("STRATEGY", ""))
    instance = folder.instance()

    instance.sequence_ended("who", "idle")

    assert instance.sequence_ended.__self__.batches == [("who", "idle")]
