"""How batches go through a request of OpenVINO: without copies, with variables of their own; what it tells."""

import numpy as np
import openvino
import openvino.opset13 as ops
import pytest

import naiad_openvino
import naiad_scheduler_sequence
from naiad.backend import MemoryUsage
from naiad.batch import Batch
from naiad.types import Request
from naiad_kit.sequences import SequenceEndReason
from naiad_tensors.tensors import Tensor
from naiad_testing.serving import serve

ROWS, WIDE = 2, 10_000


@pytest.fixture
def counter(workbench):
    """OUT = the sum of all that IN was since the variable of the model was set back, over FP32[n, 1]."""
    sent = ops.parameter([-1, 1], openvino.Type.f32, name="IN")
    sent.output(0).get_tensor().set_names({"IN"})
    first = ops.multiply(sent, ops.constant(np.float32(0)))
    total = ops.add(ops.read_value(first, "total"), sent)
    kept = ops.assign(total, "total")
    result = ops.result(total)
    result.output(0).get_tensor().set_names({"OUT"})
    workbench.write(openvino.Model([result], [kept], [sent], "counter"))
    return workbench


def number(value, sequence=0, **flags):
    tensor = Tensor.of("IN", np.float32([[value]]))
    return Request("m", {"IN": tensor}, correlation_id=sequence, **flags)


def read_only(shape):
    """Bytes of a request's body, which are read-only."""
    size = int(np.prod(shape))
    return np.frombuffer(np.arange(size, dtype=np.float32).tobytes(), np.float32).reshape(shape)


@pytest.mark.parametrize("sent", [np.zeros((ROWS, WIDE), np.float32), read_only((ROWS, WIDE))], ids=["ours", "a body"])
def test_neither_a_large_input_nor_a_large_output_of_a_fixed_shape_is_copied(workbench, zoo, sent):
    workbench.write(zoo.double((ROWS, WIDE)))
    served = workbench.load()

    output = served.execute({"IN": sent})["OUT"]

    request = served.instance._request
    assert request.get_input_tensor(0).data.ctypes.data == sent.ctypes.data
    assert request.get_output_tensor(0).data.ctypes.data == output.ctypes.data
    assert output.tolist() == (sent * 2).tolist()
    assert served.execute({"IN": sent + 1})["OUT"].ctypes.data != output.ctypes.data


@pytest.mark.parametrize("shape", [(-1, -1), (ROWS, WIDE)])
def test_an_answer_of_any_size_outlives_the_next_execution(workbench, zoo, shape):
    workbench.write(zoo.double(shape))
    served = workbench.load("max_batch_size: 0")

    first = served.execute({"IN": np.ones((ROWS, WIDE), np.float32)})["OUT"]
    served.execute({"IN": np.zeros((ROWS, WIDE), np.float32)})

    assert (first == 2).all()


@pytest.mark.parametrize("width", [3, WIDE])
def test_bits_of_bf16_that_may_not_be_written_to_are_taken(workbench, zoo, width):
    workbench.write(zoo.identity("bf16", (1, width)))
    array = np.frombuffer(b"\x80\x3f" * width, np.uint16).reshape(1, width)

    answer = workbench.load().execute({"IN": Tensor("IN", "BF16", (1, width), array)})

    assert answer["OUT"].tolist() == array.tolist()


def test_a_tensor_may_be_called_by_any_of_its_names(workbench, zoo):
    model = zoo.add_sub()
    model.inputs[0].get_tensor().set_names({"A", "a_of_the_exporter"})
    workbench.write(model)
    row = np.ones((1, 16), np.float32)

    served = workbench.load('max_batch_size: 4 input { name: "a_of_the_exporter" }')

    assert [each.name for each in served.config.input] == ["a_of_the_exporter", "B"]
    assert served.execute({"a_of_the_exporter": row, "B": row})["SUM"][0, 0] == 2
    assert [each.name for each in workbench.load().config.input] == ["A", "B"]


def test_a_machine_with_gpus_computes_on_its_cpu_unless_one_is_asked_for(workbench, zoo):
    workbench.write(zoo.identity())
    workbench.gpus = 2

    assert len(workbench.load().instances) == 1


def test_requests_without_a_sequence_do_not_find_what_others_left(counter):
    served = counter.load("max_batch_size: 4")

    answers = [served.execute({"IN": np.float32([[5]])}) for _ in range(2)]
    both = served.instance.execute(Batch([number(2), number(3)], [1, 1]))

    assert [answer["OUT"].tolist() for answer in answers] == [[[5]], [[5]]]
    assert both["OUT"].tolist() == [[2], [3]]


def test_each_sequence_goes_on_with_its_own_variables(counter):
    instance = counter.load("max_batch_size: 4").instance

    def sums(*requests):
        answers = instance.execute(Batch(requests, [1] * len(requests)))
        return [answer.outputs["OUT"].item() for answer in answers]

    assert sums(number(1, 7, sequence_start=True), number(10, 8, sequence_start=True)) == [1, 10]
    assert sums(number(20, 8), number(2, 7)) == [30, 3]
    assert sums(number(3, 7, sequence_end=True), number(0)) == [6, 0]
    instance.sequence_ended(8, SequenceEndReason.IDLE)
    assert instance._variables._kept == {}
    assert sums(number(5, 8), number(5, 7)) == [5, 5]


def test_a_variable_in_bf16_keeps_its_value(workbench):
    sent = ops.parameter([-1, 1], openvino.Type.f32, name="IN")
    first = ops.convert(ops.multiply(sent, ops.constant(np.float32(0))), "bf16")
    total = ops.add(ops.convert(ops.read_value(first, "total"), "f32"), sent)
    total.output(0).get_tensor().set_names({"OUT"})
    kept = ops.assign(ops.convert(total, "bf16"), "total")
    workbench.write(openvino.Model([ops.result(total)], [kept], [sent], "counter"))
    instance = workbench.load("max_batch_size: 4").instance

    requests = number(3, 7, sequence_start=True), number(4, 7)
    answers = [instance.execute(Batch([each], [1]))[0] for each in requests]

    assert [answer.outputs["OUT"].item() for answer in answers] == [3, 7]


def test_the_memory_of_the_weights_is_counted_once(workbench):
    rows = ops.parameter([-1, 10], openvino.Type.f32, name="x")
    weights = ops.constant(np.ones((10, 10), np.float32))
    workbench.write(openvino.Model([ops.result(ops.matmul(rows, weights, False, False))], [rows], "dense"))

    served = workbench.load("max_batch_size: 4 instance_group { count: 2 }")

    assert list(served.model.memory_usage()) == [MemoryUsage("CPU", 0, 400)]


def test_a_server_keeps_the_variables_of_sequences_apart(counter):
    (counter.directory / "config.pbtxt").write_text(
        """
        backend: "openvino" max_batch_size: 4
        sequence_batching { oldest { max_candidate_sequences: 8 } }
        """
    )

    with serve(counter.directory, plugins=[naiad_openvino, naiad_scheduler_sequence]) as client:
        rounds = [
            client.send_all([number(value, name, **flags) for name in ("one", "other")])
            for value, flags in ((1, {"sequence_start": True}), (2, {}), (4, {"sequence_end": True}))
        ]

    sums = [[response.outputs["OUT"].array.item() for response in responses] for responses in rounds]
    assert sums == [[1, 1], [3, 3], [7, 7]]
