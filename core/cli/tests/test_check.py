"""What `naiad check` finds, with a backend that loads nothing."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import naiad
import naiad_warmup
from naiad import ModelInspector, PluginRegistry, default_scheduler
from naiad.backend import BackendTraits, Model, ModelContext
from naiad.errors import InvalidArgumentError
from naiad.options import Settings
from naiad_config import ModelConfig, ModelInput, ModelOutput
from naiad_config.tensors import DataType

Check = Callable[..., Mapping[str, Sequence[str]]]


class BeadBackend:
    """Completes a configuration from the text of `1/beads.txt`: its number of beads."""

    traits = BackendTraits("beads", files={"beads.txt": ""})

    def complete(self, context: ModelContext) -> ModelConfig:
        text = (context.version_directory / "beads.txt").read_text()
        if text == "unreadable":
            raise InvalidArgumentError("beads.txt cannot be read")
        beads, config = int(text), context.config
        model_input = ModelInput(name="x", data_type=DataType.TYPE_FP32, dims=(beads,))
        taken = config.output or (ModelOutput(name="x", data_type=DataType.TYPE_FP32, dims=(beads,)),)
        return replace(config, input=(model_input,), output=taken)

    def load(self, context: ModelContext) -> Model:
        raise AssertionError(f"{context.config.name} must not be loaded")


class BeadPlugin:
    @naiad.hookimpl
    def naiad_backends(self) -> list[BeadBackend]:
        return [BeadBackend()]


def write_model(repository: Path, name: str, config: str = "", beads: str | None = "4") -> None:
    folder = repository / name
    folder.mkdir(parents=True)
    if config:
        (folder / "config.pbtxt").write_text(config)
    if beads is not None:
        (folder / "1").mkdir()
        (folder / "1" / "beads.txt").write_text(beads)


def checked(*repositories: Path, **options: bool) -> Mapping[str, Sequence[str]]:
    registry = PluginRegistry.of([default_scheduler, naiad_warmup, BeadPlugin()])
    settings = Settings(registry.options(), {name.replace("_", "-"): value for name, value in options.items()})
    return ModelInspector(registry, settings).problems(repositories)


def test_a_model_that_its_backend_can_complete_has_no_problem(tmp_path: Path) -> None:
    write_model(tmp_path, "sound")

    assert checked(tmp_path) == {"sound": []}


def test_without_completion_the_configuration_must_be_whole(tmp_path: Path) -> None:
    write_model(tmp_path, "bare", 'input { name: "x" }')

    completed, bare = checked(tmp_path), checked(tmp_path, disable_auto_complete_config=True)

    assert completed["bare"] == []
    assert any("data_type" in problem for problem in bare["bare"])


def test_every_mistake_of_a_file_is_reported_with_its_position(tmp_path: Path) -> None:
    write_model(tmp_path, "typos", "max_batch_sise: 4\nbackend: 7\n")

    first, second = checked(tmp_path)["typos"]

    assert "config.pbtxt:1:1: " in first
    assert "max_batch_size" in first
    assert "config.pbtxt:2:" in second


def test_every_invalid_value_is_reported_with_its_position(tmp_path: Path) -> None:
    write_model(tmp_path, "values", 'max_batch_size: -1\noutput { name: "x" data_type: TYPE_FP32 dims: [0] }\n')

    result = checked(tmp_path)["values"]

    assert len(result) >= 2
    assert all("config.pbtxt:" in problem for problem in result)


@pytest.mark.parametrize(
    ("config", "beads", "message"),
    [
        ("", None, "version policy"),
        ("", "unreadable", "beads.txt cannot be read"),
        ("", "many", "ValueError: invalid literal"),
        ('backend: "abacus"', "4", "(Installed backends: beads.)"),
        ("dynamic_batching {}", "4", "naiad-scheduler-dynamic"),
        (
            'output { name: "x" data_type: TYPE_FP32 dims: [4] label_filename: "labels.txt" }',
            "4",
            "config.pbtxt:1:51: output[0].label_filename",
        ),
    ],
)
def test_each_way_to_be_broken_is_reported_and_harms_no_other_model(
    tmp_path: Path, config: str, beads: str | None, message: str
) -> None:
    write_model(tmp_path, "m", config, beads)
    write_model(tmp_path, "sound")

    result = checked(tmp_path)

    assert result["sound"] == []
    assert message in "\n".join(result["m"])


def test_a_model_that_two_repositories_have_is_a_problem(tmp_path: Path) -> None:
    write_model(tmp_path / "a", "twin")
    write_model(tmp_path / "b", "twin")

    (problem,) = checked(tmp_path / "a", tmp_path / "b")["twin"]

    assert problem == f"the model is in more than one repository: {tmp_path / 'a'}, {tmp_path / 'b'}"
