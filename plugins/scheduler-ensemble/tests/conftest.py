"""Ensembles for the tests, written as they are in a file, over models that are written as short."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from naiad_config import ModelConfig
from naiad_config.text import parse_text
from naiad_scheduler_ensemble.composition import EnsembleComposition
from naiad_scheduler_ensemble.composition import compose as composed
from naiad_testing.loops import coroutine_tests

if TYPE_CHECKING:
    from .parts import Parts


pytest_pyfunc_call = coroutine_tests()


@pytest.fixture
def parts(tmp_path: Path) -> "Parts":
    """A repository to write models and ensembles into, and the backend that serves the models."""
    from .parts import Parts

    return Parts(tmp_path)


@pytest.fixture
def chain(parts: "Parts") -> "Parts":
    """The ensemble e: plus one, then plus ten; and f, which is e and plus one again."""
    from .parts import plus

    parts.add("one", "x", "y", plus(1))
    parts.add("ten", "x", "y", plus(10))
    parts.join("e", "A", "C", "one x=A -> y=B", "ten x=B -> y=C")
    parts.join("f", "A", "D", "e A=A -> C=C", "one x=C -> y=D")
    return parts


def side(kind: str, names: str) -> str:
    """Inputs or outputs: `a b?` are two of FP32[4], the second of them optional."""
    return " ".join(
        f'{kind} {{ name: "{name.rstrip("?")}" data_type: TYPE_FP32 dims: 4 {"optional: true" * name.endswith("?")} }}'
        for name in names.split()
    )


def model(inputs: str, outputs: str, *, name: str = "m", more: str = "", decoupled: bool = False) -> ModelConfig:
    """The configuration of a step's model."""
    policy = "model_transaction_policy { decoupled: true }" if decoupled else ""
    return parse_text(f'name: "{name}" {side("input", inputs)} {side("output", outputs)} {policy} {more}')


def step(name: str, inputs: str, outputs: str) -> str:
    """A step: `a=A b=B` maps the model's a and b to the ensemble's A and B."""
    maps = [
        f'{kind} {{ key: "{pair.split("=")[0]}" value: "{pair.split("=")[1]}" }}'
        for kind, pairs in (("input_map", inputs), ("output_map", outputs))
        for pair in pairs.split()
    ]
    return f'step {{ model_name: "{name}" model_version: -1 {" ".join(maps)} }}'


def ensemble(inputs: str, outputs: str, steps: Sequence[str], more: str = "", scheduling: str = "") -> ModelConfig:
    """The configuration of the ensemble e."""
    return parse_text(
        f'name: "e" platform: "ensemble" {side("input", inputs)} {side("output", outputs)} {more} '
        f"ensemble_scheduling {{ {' '.join(steps)} {scheduling} }}"
    )


Compose = Callable[..., EnsembleComposition]


@pytest.fixture
def compose() -> Compose:
    """Compose an ensemble of those steps, each given as (model's configuration, inputs, outputs)."""

    def compose(inputs: str, outputs: str, *steps: tuple[ModelConfig, str, str], scheduling: str = ""):  # type: ignore[no-untyped-def]
        written = [step(each.name, read, written) for each, read, written in steps]
        config = ensemble(inputs, outputs, written, scheduling=scheduling)
        return composed(config, [each for each, _, _ in steps])

    return compose
