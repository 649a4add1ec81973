"""Executing batches on real sessions of ONNX Runtime."""

import threading

import numpy as np
import pytest
from onnx import TensorProto

from naiad.backend import Reply
from naiad.datatypes import TENSOR_TYPES, fp32_to_bf16
from naiad.errors import InvalidArgumentError, ModelFailedError
from naiad.types import Tensor

ONNX_TYPES = {
    "BOOL": TensorProto.BOOL,
    "UINT8": TensorProto.UINT8,
    "UINT16": TensorProto.UINT16,
    "UINT32": TensorProto.UINT32,
    "UINT64": TensorProto.UINT64,
    "INT8": TensorProto.INT8,
    "INT16": TensorProto.INT16,
    "INT32": TensorProto.INT32,
    "INT64": TensorProto.INT64,
    "FP16": TensorProto.FLOAT16,
    "FP32": TensorProto.FLOAT,
    "FP64": TensorProto.DOUBLE,
    "BYTES": TensorProto.STRING,
    "BF16": TensorProto.BFLOAT16,
}


def test_one_request_is_answered(workbench, models, float_array):
    served = workbench.load(models.add_sub())

    answer = served.execute({"A": float_array([[3.0] * 16]), "B": float_array([[1.0] * 16])})

    assert answer["SUM"].tolist() == [[4.0] * 16]
    assert answer["DIFFERENCE"].tolist() == [[2.0] * 16]


def test_requests_of_a_batch_are_joined_in_order(workbench, models, float_array):
    served = workbench.load(models.identity(["n", 1]))

    answer = served.execute({"IN": float_array([[1], [2]])}, {"IN": float_array([[3]])})

    assert answer["OUT"].tolist() == [[1], [2], [3]]


@pytest.mark.parametrize("datatype", list(TENSOR_TYPES))
def test_every_datatype_passes_unchanged(workbench, models, datatype):
    served = workbench.load(models.identity(["n", "k"], ONNX_TYPES[datatype]))
    sent = {
        "BYTES": np.array([["a", "é\0b".encode()]], dtype=object),
        "BF16": fp32_to_bf16(np.array([[1.5, -3.0]])),
        "BOOL": np.array([[True, False]]),
    }.get(datatype, np.array([[1, 2]], dtype=TENSOR_TYPES[datatype].dtype))
    tensor = Tensor.of("IN", sent, datatype)

    answer = served.execute({"IN": tensor})

    assert answer["OUT"].dtype == TENSOR_TYPES[datatype].dtype
    assert answer["OUT"].tolist() == tensor.array.tolist()


@pytest.mark.parametrize("datatype", list(TENSOR_TYPES))
def test_a_tensor_without_elements_passes(workbench, models, datatype):
    served = workbench.load(models.identity(["n", "k"], ONNX_TYPES[datatype]))
    empty = np.empty((2, 0), dtype=TENSOR_TYPES[datatype].dtype)

    answer = served.execute({"IN": Tensor("IN", datatype, (2, 0), empty)})

    assert answer["OUT"].shape == (2, 0)
    assert answer["OUT"].dtype == TENSOR_TYPES[datatype].dtype


def test_bf16_requests_are_batched(workbench, models):
    served = workbench.load(models.identity(["n", 2], TensorProto.BFLOAT16))
    one, two = (Tensor.of("IN", fp32_to_bf16(np.full((1, 2), number)), "BF16") for number in (1.0, 2.0))

    answer = served.execute({"IN": one}, {"IN": two})

    assert answer["OUT"].tolist() == fp32_to_bf16(np.array([[1.0, 1.0], [2.0, 2.0]])).tolist()


def test_only_the_outputs_asked_for_are_there(workbench, models, float_array):
    served = workbench.load(models.add_sub())
    ones = float_array([[1.0] * 16])

    answer = served.execute({"A": ones, "B": ones}, requested=("DIFFERENCE",))

    assert list(answer) == ["DIFFERENCE"]


def test_only_configured_outputs_are_there(workbench, models, float_array):
    served = workbench.load(models.add_sub(), 'output { name: "SUM" }')
    ones = float_array([[1.0] * 16])

    answer = served.execute({"A": ones, "B": ones})

    assert list(answer) == ["SUM"]


def test_variable_dims_may_differ_from_run_to_run(workbench, models, float_array):
    served = workbench.load(models.identity(["n", "height", 2]))

    shapes = [served.execute({"IN": np.zeros(shape, np.float32)})["OUT"].shape for shape in ((1, 3, 2), (4, 1, 2))]

    assert shapes == [(1, 3, 2), (4, 1, 2)]


def test_a_scalar_per_request_is_batched_as_a_vector(workbench, models, float_array):
    served = workbench.load(models.identity(["n"]))

    answer = served.execute({"IN": float_array([1.0, 2.0])}, {"IN": float_array([3.0])})

    assert answer["OUT"].tolist() == [1.0, 2.0, 3.0]


def test_a_scalar_model_without_batching_runs(workbench, models, float_array):
    served = workbench.load(models.identity([]))

    answer = served.execute({"IN": float_array(7.0)})

    assert answer["OUT"].shape == ()
    assert float(answer["OUT"]) == 7.0


def test_an_input_with_a_default_may_be_left_out(workbench, models, float_array):
    served = workbench.load(models.with_default(), 'input [ { name: "IN" }, { name: "SCALE", optional: true } ]')
    given = float_array([1.0, 2.0, 3.0])

    default = served.execute({"IN": given})
    scaled = served.execute({"IN": given, "SCALE": float_array([10.0])})

    assert default["OUT"].tolist() == [2.0, 4.0, 6.0]
    assert scaled["OUT"].tolist() == [10.0, 20.0, 30.0]


def test_outputs_are_views_on_the_memory_of_onnx_runtime(workbench, models, float_array):
    served = workbench.load(models.identity(["n", 4]))

    out = served.execute({"IN": float_array([[1, 2, 3, 4]])})["OUT"]

    assert not out.flags.owndata


def test_bf16_outputs_outlive_the_run(workbench, models):
    served = workbench.load(models.identity(["n", 512], TensorProto.BFLOAT16))
    sent = np.arange(512, dtype=np.uint16).reshape(1, 512)

    kept = [served.execute({"IN": Tensor("IN", "BF16", (1, 512), sent + step)})["OUT"] for step in range(20)]

    assert [int(out[0, 0]) for out in kept] == list(range(20))


def test_a_read_only_view_at_an_odd_address_is_taken(workbench, models):
    served = workbench.load(models.identity(["n", 4]))
    received = b"123" + np.arange(4, dtype=np.float32).tobytes()
    view = np.frombuffer(received, np.float32, offset=3).reshape(1, 4)

    answer = served.execute({"IN": Tensor("IN", "FP32", (1, 4), view)})

    assert not view.flags.aligned
    assert answer["OUT"].tolist() == [[0, 1, 2, 3]]


def test_a_failing_operator_says_what_onnx_runtime_says(workbench, models):
    served = workbench.load(models.gather())

    with pytest.raises(ModelFailedError) as caught:
        served.execute({"INDEX": np.array([[9]])})

    assert "model 'm': onnx runtime error 2" in str(caught.value)
    assert "out of data bounds, idx=9" in str(caught.value)


def test_a_request_that_fits_the_configuration_and_not_the_model_is_refused_with_both_shapes(
    workbench, models, float_array
):
    tensors = 'input { name: "IN" data_type: TYPE_FP32 dims: -1 } output { name: "OUT" data_type: TYPE_FP32 dims: 3 }'
    served = workbench.load(models.identity(["n", 3]), "max_batch_size: 4 " + tensors)

    good, bad = served.execute({"IN": float_array([[1, 2, 3]])}, {"IN": float_array([[1, 2]])})

    assert good.outputs["OUT"].tolist() == [[1, 2, 3]]
    assert isinstance(bad, InvalidArgumentError)
    assert str(bad) == "input 'IN' of model 'm' has shape [1,2], and model.onnx takes [-1,3]"


def test_only_the_request_that_fails_a_batch_fails(workbench, models):
    served = workbench.load(models.gather())

    first, second, third = served.execute(
        {"INDEX": np.array([[0]])}, {"INDEX": np.array([[9]])}, {"INDEX": np.array([[3], [1]])}
    )

    assert isinstance(second, ModelFailedError)
    assert "idx=9" in str(second)
    assert isinstance(first, Reply)
    assert first.outputs["OUT"].tolist() == [[10.0]]
    assert third.outputs["OUT"].tolist() == [[13.0], [11.0]]


def test_bytes_that_are_no_text_are_refused_by_element(workbench, models):
    served = workbench.load(models.identity(["n", 2], TensorProto.STRING))

    with pytest.raises(InvalidArgumentError, match=r"input 'IN' of model 'm': element 1 is not UTF-8 text \(byte 0xff"):
        served.execute({"IN": np.array([[b"fine", b"\xff\xfe"]], dtype=object)})


def test_bytes_that_are_no_text_fail_their_request_alone(workbench, models):
    served = workbench.load(models.identity(["n", 1], TensorProto.STRING))

    good, bad = served.execute({"IN": np.array([[b"fine"]], dtype=object)}, {"IN": np.array([[b"\xff"]], dtype=object)})

    assert good.outputs["OUT"].tolist() == [[b"fine"]]
    assert isinstance(bad, InvalidArgumentError)


def test_the_borders_of_compute_are_marked(workbench, models, float_array, request_batch):
    served = workbench.load(models.identity(["n", 1]))
    batch = request_batch({"IN": float_array([[1]])})

    served.instance.execute(batch)

    assert 0 < batch.input_done_ns <= batch.infer_done_ns


def test_two_instances_run_at_once(workbench, models, request_batch):
    served = workbench.load(models.dense())
    results: list[list[np.ndarray]] = [[], []]

    def run(index: int) -> None:
        for _ in range(50):
            answer = served.instances[index].execute(request_batch({"IN": np.full((2, 64), index + 1, np.float32)}))
            results[index].append(answer["OUT"])

    threads = [threading.Thread(target=run, args=(index,)) for index in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert all((out == 64.0 * (index + 1)).all() for index in range(2) for out in results[index])
    assert [len(out) for out in results] == [50, 50]
