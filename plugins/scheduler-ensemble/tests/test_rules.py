"""What must fit together in an ensemble; each refusal names the ensemble, the tensor or the step, and its key."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from naiad.errors import ConfigError, Problem
from naiad_config import ModelConfig, ModelResponseCache
from naiad_config.text import parse_text
from naiad_scheduler_ensemble.composition import compose

from .conftest import ensemble, model, step

A_TO_B = ensemble("A", "B", [step("m", "x=A", "y=B")])
ONE = model("x", "y")


def refusals(config: ModelConfig, models: Sequence[ModelConfig]) -> tuple[Problem, ...]:
    with pytest.raises(ConfigError) as caught:
        compose(config, models)
    return caught.value.problems


def test_datatypes_must_be_the_same() -> None:
    integers = parse_text(
        'name: "m" input { name: "x" data_type: TYPE_INT32 dims: 4 } output { name: "y" data_type: TYPE_FP32 dims: 4 }'
    )

    (problem,) = refusals(A_TO_B, [integers])

    assert problem.message == (
        "in ensemble e, ensemble tensor A: inconsistent data type: TYPE_FP32 is inferred from model e "
        "while TYPE_INT32 is inferred from model m"
    )
    assert problem.path == 'ensemble_scheduling.step[0].input_map["x"]'


def test_shapes_must_fit() -> None:
    wide = parse_text(
        'name: "m" input { name: "x" data_type: TYPE_FP32 dims: 4 } '
        'output { name: "y" data_type: TYPE_FP32 dims: [2, 4] }'
    )

    (problem,) = refusals(A_TO_B, [wide])

    assert problem.message == (
        "in ensemble e, ensemble tensor B: inconsistent shape: [4] is inferred from model e "
        "while [2,4] is inferred from model m"
    )


@pytest.mark.parametrize(
    ("dims", "max_batch_size"),
    [("-1", 0), ("4", 8), ("4", 0)],
    ids=["a size that varies", "the same dims in batches", "the same dims"],
)
def test_shapes_that_can_be_adapted_fit(dims: str, max_batch_size: int) -> None:
    config = parse_text(
        f'name: "m" max_batch_size: {max_batch_size} input {{ name: "x" data_type: TYPE_FP32 dims: {dims} }} '
        f'output {{ name: "y" data_type: TYPE_FP32 dims: {dims} }}'
    )

    assert compose(A_TO_B, [config]).decoupled is False


def test_a_batch_dimension_that_is_written_out_fits_one_that_is_not() -> None:
    written_out = parse_text(
        'name: "m" input { name: "x" data_type: TYPE_FP32 dims: [-1, 4] } '
        'output { name: "y" data_type: TYPE_FP32 dims: [-1, 4] }'
    )

    composed = compose(replace(A_TO_B, max_batch_size=8), [written_out])

    assert composed.steps[0].outputs == {"B": "y"}


def test_mapped_names_must_be_the_models() -> None:
    config = ensemble("A", "B", [step("m", "x=A w=A", "y=B z=C")])

    problems = refusals(config, [ONE])

    assert [problem.message for problem in problems] == [
        "in ensemble e, ensemble tensor A is mapping to non-existing input w in model m",
        "in ensemble e, ensemble tensor C is mapped from non-existing output z in model m",
    ]
    assert [problem.hint for problem in problems] == ["its inputs are x", "its outputs are y"]


def test_every_input_of_a_model_must_be_mapped_unless_it_is_optional() -> None:
    (problem,) = refusals(A_TO_B, [model("x w v?", "y")])

    assert problem.message == "in ensemble e, input w in model m is not mapped to any ensemble tensors"
    assert problem.path == "ensemble_scheduling.step[0].input_map"


def test_no_model_may_take_smaller_batches_than_the_ensemble() -> None:
    small = replace(ONE, max_batch_size=4)

    (problem,) = refusals(replace(A_TO_B, max_batch_size=8), [small])

    assert problem.message == (
        "ensemble e allows maximum batch size 8, but it contains model m which only allows maximum batch size to be 4"
    )


def test_a_step_may_not_join_two_decoupled_ones() -> None:
    stream, join = model("x", "y", name="stream", decoupled=True), model("a b", "y", name="join")
    steps = [step("stream", "x=A", "y=B"), step("stream", "x=A", "y=C"), step("join", "a=B b=C", "y=D")]

    (problem,) = refusals(ensemble("A", "D", steps), [stream, stream, join])

    assert problem.message == (
        "in ensemble e, step of model 'join' receives inputs originated from different decoupled models"
    )
    assert problem.hint == "they come from 'stream' (step 0) and 'stream' (step 1)"
    assert problem.path == "ensemble_scheduling.step[2]"


@pytest.mark.parametrize(
    ("policy", "why"),
    [
        ("model_transaction_policy { decoupled: true }", "'decoupled' transaction policy"),
        ("sequence_batching { }", "sequence batching scheduler"),
    ],
)
def test_what_cannot_be_cached_refuses_a_cache_of_the_whole(policy: str, why: str) -> None:
    (problem,) = refusals(
        replace(A_TO_B, response_cache=ModelResponseCache(enable=True)), [model("x", "y", more=policy)]
    )

    assert problem.message == (
        f"Response Cache does not currently support model e with {why}. Please disable the response cache."
    )


def test_everything_that_is_wrong_is_reported_at_once() -> None:
    problems = refusals(replace(A_TO_B, max_batch_size=8), [replace(model("w", "z"), max_batch_size=4)])

    assert len(problems) == 4
