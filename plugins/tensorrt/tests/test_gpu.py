"""Engines on a GPU: `make test-gpu` on a machine with one, and a TensorRT that builds for it.

Their rehearsal without a GPU is `execution/test_rehearsal.py`, which takes these functions with other fixtures.
"""

import logging
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from naiad.errors import InvalidArgumentError
from naiad_tensorrt.backend import TensorRtBackend
from naiad_tensorrt.execution import compute_capability
from naiad_tensorrt.machine import Gpus
from naiad_tensors.datatypes import bf16_to_fp32, fp32_to_bf16
from naiad_tensors.tensors import Tensor
from naiad_testing.workbench import Workbench, batch_of

from .execution import built

pytestmark = pytest.mark.gpu

ON_GPU = "instance_group [ { kind: KIND_GPU gpus: [ 0 ] } ]"
GRAPHS = """
max_batch_size: 8
optimization { cuda { graphs: true graph_spec [
  { batch_size: 4 input [ { key: "A" value { dim: [ 4 ] } }, { key: "B" value { dim: [ 4 ] } } ]
    graph_lower_bound { batch_size: 1
      input [ { key: "A" value { dim: [ 2 ] } }, { key: "B" value { dim: [ 2 ] } } ] } } ] } }
"""


@pytest.fixture
def trt():
    """The module that builds engines for this GPU."""
    capability = compute_capability(0)
    module = built.builder_for(capability)
    if module is None:
        pytest.skip(f"no TensorRT is installed that builds engines for compute capability {capability}")
    return module


@pytest.fixture
def machine():
    return Gpus()


@pytest.fixture
def bench(tmp_path, machine):
    return Workbench(tmp_path / "m", TensorRtBackend(machine), gpus=1)


def load(bench, plan, config=ON_GPU):
    bench.path("model.plan").write_bytes(plan)
    return bench.load(config)


def sent(rows, columns=4, start=0, dtype=np.float32):
    """A and B of `add_sub`."""
    counted = (np.arange(rows * columns) + start).reshape(rows, columns).astype(dtype)
    return {"A": counted, "B": np.full((rows, columns), 2, dtype)}


def check(answer, *requests):
    a, b = (np.concatenate([each[name] for each in requests]) for name in ("A", "B"))
    assert answer["SUM"].tolist() == (a + b).tolist()
    assert answer["DIFFERENCE"].tolist() == (a - b).tolist()


def test_requests_are_computed_on_the_gpu_without_a_configuration(trt, bench):
    served = load(bench, built.add_sub(trt))
    requests = sent(1), sent(3, start=10)

    answer = served.execute(*requests)

    check(answer, *requests)
    assert served.config.max_batch_size == 8


def test_every_size_of_a_batch_and_of_its_rows_is_taken(trt, bench):
    served = load(bench, built.add_sub(trt))

    for rows, columns in ((1, 4), (8, 8), (2, 1), (1, 4)):
        check(served.execute(sent(rows, columns)), sent(rows, columns))


def test_a_shape_outside_the_profile_is_refused_and_the_next_one_runs(trt, bench):
    served = load(bench, built.add_sub(trt))

    with pytest.raises(InvalidArgumentError, match="'A'"):
        served.execute(sent(2, columns=9))

    check(served.execute(sent(2)), sent(2))


def test_batches_run_on_the_profile_that_takes_them(trt, bench):
    group = 'instance_group [ { kind: KIND_GPU gpus: [ 0 ] profile: [ "0", "1" ] } ]'
    served = load(bench, built.add_sub(trt), f"max_batch_size: 32 {group}")

    for rows in (4, 20, 32, 1):
        check(served.execute(sent(rows)), sent(rows))


def test_cuda_graphs_serve_what_lies_within_their_bounds(trt, bench, caplog):
    with caplog.at_level(logging.WARNING):
        served = load(bench, built.add_sub(trt), GRAPHS + ON_GPU)

    for rows, columns, start in ((4, 4, 0), (3, 4, 5), (1, 2, 9), (4, 4, 30), (5, 4, 1), (8, 8, 2), (2, 3, 7)):
        request = sent(rows, columns, start)
        check(served.execute(request), request)
    assert "no CUDA graph" not in caplog.text


@pytest.mark.parametrize(
    "more",
    [
        "optimization { input_pinned_memory { enable: false } output_pinned_memory { enable: false } }",
        "optimization { cuda { busy_wait_events: true output_copy_stream: true } priority: PRIORITY_MAX }",
        'parameters { key: "execution_context_allocation_strategy" value { string_value: "ON_PROFILE_CHANGE" } }',
    ],
)
def test_every_way_of_working_gives_the_same(trt, bench, more):
    served = load(bench, built.add_sub(trt), f"max_batch_size: 8 {more} {ON_GPU}")

    for rows in (1, 7, 3):
        check(served.execute(sent(rows), sent(1)), sent(rows), sent(1))


def test_half_precision_is_carried(trt, bench):
    served = load(bench, built.add_sub(trt, "HALF"))

    answer = served.execute(sent(2, dtype=np.float16))

    check(answer, sent(2, dtype=np.float16))
    assert answer["SUM"].dtype == np.float16


@pytest.mark.parametrize(("kind", "dtype"), [("INT32", np.int32), ("INT64", np.int64), ("BOOL", bool)])
def test_numbers_that_are_not_floats_are_carried(trt, bench, kind, dtype):
    served = load(bench, built.copier(trt, kind))
    values = np.array([[0, 1, 2], [3, 0, 5]]).astype(dtype)

    answer = served.execute({"IN": values})

    assert answer["OUT"].tolist() == values.tolist()


def test_bf16_is_carried_as_its_bits(trt, bench):
    served = load(bench, built.copier(trt, "BF16"))
    bits = fp32_to_bf16(np.array([[1.5, -2.0, 3.25]], np.float32))

    answer = served.execute({"IN": Tensor("IN", "BF16", (1, 3), bits)})

    assert bf16_to_fp32(answer["OUT"]).tolist() == [[1.5, -2.0, 3.25]]


def test_a_shape_tensor_decides_the_shape_of_the_output(trt, bench):
    served = load(bench, built.stretcher(trt))

    answers = [
        served.execute(*[{"IN": np.array([[value]], np.float32), "SIZE": np.array([columns])} for value in (5, 7)])
        for columns in (3, 8, 3)
    ]

    assert [answer["OUT"].tolist() for answer in answers] == [
        [[5.0] * columns, [7.0] * columns] for columns in (3, 8, 3)
    ]


def test_several_instances_execute_at_once(trt, bench):
    served = load(bench, built.add_sub(trt), "instance_group [ { count: 2 kind: KIND_GPU gpus: [ 0 ] } ]")
    assert len(served.instances) == 2

    def work(instance):
        return [instance.execute(batch_of(sent(1 + start % 8, start=start))) for start in range(50)]

    with ThreadPoolExecutor(2) as pool:
        for answers in pool.map(work, served.instances):
            for start, answer in enumerate(answers):
                check(answer, sent(1 + start % 8, start=start))


def test_an_output_whose_shape_is_known_after_the_run_is_served(trt, bench):
    if "rtx" in trt.__name__:
        pytest.skip("TensorRT for RTX has no layer whose output shape depends on what its input holds")
    config = 'input [{ name: "IN" data_type: TYPE_FP32 dims: [ -1 ] }]' + ON_GPU
    served = load(bench, built.finder(trt), config)

    answers = [served.execute({"IN": np.arange(count, dtype=np.float32) % 3}) for count in (1, 4, 16, 2)]

    assert [answer["OUT"].ravel().tolist() for answer in answers] == [
        [index for index in range(count) if index % 3] for count in (1, 4, 16, 2)
    ]


def test_tensors_on_the_gpu_are_taken_from_there(trt, bench):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("this PyTorch has no CUDA")
    served = load(bench, built.add_sub(trt))
    host = sent(2)
    resident = {name: Tensor(name, "FP32", (2, 4), torch.from_numpy(array).cuda()) for name, array in host.items()}
    torch.cuda.synchronize()

    check(served.execute(resident), host)
    check(served.execute(resident, host), host, host)


def test_memory_is_counted_and_given_back(trt, bench):
    served = load(bench, built.add_sub(trt))
    served.execute(sent(8, 8))

    (usage,) = served.model.memory_usage()
    served.instance.close()
    served.model.close()

    assert (usage.type, usage.id) == ("GPU", 0)
    assert usage.byte_size >= 4 * 8 * 8 * 4
