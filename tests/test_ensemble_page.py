"""The pictures of docs/scheduler-ensemble.md are what the code draws, and its configurations are sound."""

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from naiad_config import DataType, ModelConfig, ModelInput, ModelOutput, ModelTransactionPolicy
from naiad_config.text import parse_text
from naiad_config.validation import problems
from naiad_scheduler_ensemble.composition import compose

from .ensemble_pictures import Bar, picture, play

DOCS = Path(__file__).parents[1] / "docs"
PAGE = (DOCS / "scheduler-ensemble.md").read_text()
WRITTEN = (DOCS / "pictures" / "ensemble.pbtxt").read_text()
SECONDS = {"decode": (0.002,), "detect": (0.006,), "classify": (0.004,), "write": (0.001,)}
STREAMED = SECONDS | {"detect": (0.003, 0.002, 0.002)}


def models_of(config: ModelConfig, decoupled: str = "") -> list[ModelConfig]:
    """A model for each step with exactly the tensors that are mapped."""
    kinds = {each.name: (each.data_type, tuple(each.dims)) for each in (*config.input, *config.output)}
    results = []
    for step in config.ensemble_scheduling.step:
        inputs, outputs = (
            [
                kind(
                    name=name,
                    data_type=kinds.get(tensor, (DataType.TYPE_FP32, (-1,)))[0],
                    dims=kinds.get(tensor, (DataType.TYPE_FP32, (-1,)))[1],
                )
                for name, tensor in pairs.items()
            ]
            for kind, pairs in ((ModelInput, step.input_map), (ModelOutput, step.output_map))
        )
        policy = ModelTransactionPolicy(decoupled=True) if step.model_name == decoupled else None
        results.append(
            ModelConfig(
                name=step.model_name, input=tuple(inputs), output=tuple(outputs), model_transaction_policy=policy
            )
        )
    return results


@pytest.mark.parametrize(
    ("file", "decoupled", "seconds"), [("ensemble", "", SECONDS), ("ensemble-decoupled", "detect", STREAMED)]
)
def test_the_pictures_are_what_the_code_draws(file: str, decoupled: str, seconds: dict[str, tuple[float, ...]]) -> None:
    config = parse_text(WRITTEN)
    composed = compose(config, models_of(config, decoupled))

    drawn = picture(config, composed, seconds)

    path = DOCS / "pictures" / f"{file}.svg"
    if os.environ.get("NAIAD_DRAW"):
        path.write_text(drawn)
    assert path.read_text() == drawn
    assert f"(pictures/{file}.svg)" in PAGE


def test_steps_that_need_nothing_of_each_other_run_at_the_same_time() -> None:
    config = parse_text(WRITTEN)
    composed = compose(config, models_of(config))

    seconds = {"decode": (2,), "detect": (6,), "classify": (4,), "write": (1,)}
    bars, answers = play(config, composed, seconds)

    assert bars == [Bar(0, 0, 2), Bar(1, 2, 8), Bar(2, 2, 6), Bar(3, 8, 9)]
    assert answers == [9]


def test_the_configurations_of_the_page_are_sound() -> None:
    written = [block for block in re.findall(r"```pbtxt\n(.*?)```", PAGE, re.DOTALL) if "ensemble_scheduling" in block]

    assert written
    for block in written:
        config = parse_text(block)
        result = problems(replace(config, name="page"))
        assert result == ()
        compose(config, models_of(config))
