"""Executing batches on real sessions of ONNX Runtime."""

import numpy as np
import pytest
from onnx import TensorProto

from naiad.errors import InvalidArgumentError, ModelFailedError
from naiad_tensors.tensors import Tensor


def test_a_scalar_per_request_is_batched_as_a_vector(workbench, models, float_array):
    served = workbench.load(models.identity(["n"]))

    answer = served.execute({"IN": float_array([1.0, 2.0])}, {"IN": float_array([3.0])})

    assert answer["OUT"].tolist() == [1.0, 2.0, 3.0]


def test_a_scalar_model_without_batching_runs(workbench, models, float_array):
    served = workbench.load(models.identity([]))

    answer = served.execute({"IN": float_array(7.0)})

    assert answer["OUT"].shape == ()
    assert float(answer["OUT"]) == 7.0


def test_outputs_are_views_on_the_memory_of_onnx_runtime(workbench, models, float_array):
    served = workbench.load(models.identity(["n", 4]))

    out = served.execute({"IN": float_array([[1, 2, 3, 4]])})["OUT"]

    assert not out.flags.owndata


def test_bf16_outputs_outlive_the_run(workbench, models):
    served = workbench.load(models.identity(["n", 512], TensorProto.BFLOAT16))
    sent = np.arange(512, dtype=np.uint16).reshape(1, 512)

    kept = [served.execute({"IN": Tensor("IN", "BF16", (1, 512), sent + step)})["OUT"] for step in range(20)]

    assert [int(out[0, 0]) for out in kept] == list(range(20))


def test_an_input_in_bf16_that_the_model_also_gives_as_an_output_outlives_its_request(workbench, models):
    served = workbench.load(models.given_back(["n", 512], TensorProto.BFLOAT16))
    sent = np.arange(512, dtype=np.uint16).reshape(1, 512)

    answer = served.execute({"IN": Tensor("IN", "BF16", (1, 512), sent)})
    sent[:] = 0  # as memory that something else was put into

    assert answer["IN"][0].tolist() == list(range(512))


def test_a_scalar_in_bf16_runs(workbench, models):
    served = workbench.load(models.identity([], TensorProto.BFLOAT16))

    answer = served.execute({"IN": Tensor("IN", "BF16", (), np.array(0x3F80, np.uint16))})

    assert (answer["OUT"].shape, int(answer["OUT"])) == ((), 0x3F80)


def test_a_failing_operator_says_what_onnx_runtime_says(workbench, models):
    served = workbench.load(models.gather())

    with pytest.raises(ModelFailedError) as caught:
        served.execute({"INDEX": np.array([[9]])})

    assert "model 'm': onnx runtime error 2" in str(caught.value)
    assert "out of data bounds, idx=9" in str(caught.value)


def test_bytes_that_are_no_text_are_refused_by_element(workbench, models):
    served = workbench.load(models.identity(["n", 2], TensorProto.STRING))

    with pytest.raises(InvalidArgumentError, match=r"element 1 .* \(byte 0xff"):
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
