"""`naiad check` holds ensembles against their models, and loads neither."""

import naiad_scheduler_ensemble
from naiad import ModelInspector, PluginRegistry, default_scheduler

from .parts import Parts, plus


def check(parts: Parts) -> dict[str, list[str]]:
    """The problems of each model that has some."""
    registry = PluginRegistry.of([parts, naiad_scheduler_ensemble, default_scheduler])
    result = ModelInspector(registry).problems([parts.root])
    return {name: list(problems) for name, problems in result.items() if problems}


def test_sound_ensembles_have_no_problems(parts: Parts) -> None:
    parts.add("one", "x", "y", plus(1))
    parts.join("a", "A", "C", "b A=A -> B=C")
    parts.join("b", "A", "B", "one x=A -> y=B")

    assert check(parts) == {}


def test_what_does_not_fit_together_is_reported_with_its_position(parts: Parts) -> None:
    parts.add("one", "x", "y", plus(1))
    parts.join("a", "A", "B", "one w=A -> y=B")

    problems = check(parts)["a"]

    assert len(problems) == 2
    assert problems[0].startswith(f"{parts.root / 'a' / 'config.pbtxt'}:1:")
    assert "input w in model one" in problems[0]


def test_models_that_are_missing_broken_or_of_another_version_are_reported(parts: Parts) -> None:
    parts.add("one", "x", "y", plus(1))
    parts.write("broken", 'backend: "parts" max_batch_size: -1')
    parts.join("a", "A", "B", "no x=A -> y=B")
    parts.join("b", "A", "B", "broken x=A -> y=B")
    parts.join("c", "A", "B", "one x=A -> y=B")
    config = parts.root / "c" / "config.pbtxt"
    config.write_text(config.read_text().replace("model_version: -1", "model_version: 2"))

    result = check(parts)

    assert "ambiguous: no" in result["a"][0]
    assert "depends on 'broken', which has problems itself" in result["b"][0]
    assert "version 2 is not there" in result["c"][0]


def test_circles_are_reported_each_ensemble_in_them(parts: Parts) -> None:
    parts.join("a", "A", "B", "b A=A -> B=B")
    parts.join("b", "A", "B", "a A=A -> B=B")

    result = check(parts)

    assert "circular dependency between ensembles: a -> b -> a" in result["a"][0]
    assert "circular dependency between ensembles: b -> a -> b" in result["b"][0]
