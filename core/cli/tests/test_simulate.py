"""`naiad simulate`: the scheduler of a configuration, driven by arrivals on a virtual clock."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest

from naiad import ModelInspector, PluginRegistry, hookimpl
from naiad.backend import BackendTraits, ModelContext
from naiad_cli import simulate
from naiad_cli.main import main
from naiad_cli.sequences import has_text_ids, signals_of, wants_sequences
from naiad_config import DataType, ModelConfig, ModelDynamicBatching, ModelInput, ModelOutput
from naiad_config.text import parse_text
from naiad_testing import arrivals


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A configuration without a scheduler of its own: the default one serves it."""
    file = tmp_path / "config.pbtxt"
    file.write_text('name: "slow" max_batch_size: 4 instance_group { count: 2 kind: KIND_CPU }')
    return file


def figures(capsys: pytest.CaptureFixture[str], *words: object) -> dict[str, object]:
    assert main(["simulate", *map(str, words), "--json"]) == 0
    return dict(json.loads(capsys.readouterr().out))


def test_the_figures_are_those_of_the_simulation(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    printed = figures(capsys, config, "--arrivals", "burst:4@1000", "--duration", 2, "--service-time-ms", "10+2")

    assert (printed["scheduler"], printed["instances"]) == ("default", 2)
    assert (printed["requests"], printed["batches"], printed["reasons"]) == (8, 8, {"single": 8})
    assert (printed["wait_p50"], printed["wait_max"]) == (0.0, pytest.approx(0.012))
    assert printed["utilisation"] == pytest.approx(4 * 0.012 / 1.024)


def test_the_number_of_instances_may_be_chosen(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    printed = figures(capsys, config, "--arrivals", "burst:4@1000", "--duration", 1, "--instances", 4)

    assert (printed["instances"], printed["wait_max"]) == (4, 0.0)


def test_the_same_seed_gives_the_same_figures_and_another_one_does_not(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, again, other = (
        figures(capsys, config, "--arrivals", "poisson:200", "--duration", 2, "--seed", seed) for seed in (7, 7, 8)
    )

    assert first == again
    assert first != other


def test_arrivals_may_come_from_a_file(config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recording = tmp_path / "day.csv"
    recording.write_text("time,batch_size\n100,1\n130,4\n")

    printed = figures(capsys, config, "--arrivals", recording)

    assert (printed["requests"], printed["batch_sizes"]) == (2, {"1": 1, "4": 1})


def test_in_a_pipe_the_tables_are_plain_lines(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["simulate", str(config), "--arrivals", "uniform:10", "--duration", "1"])

    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert status == 0
    assert ["sent", "10 in 10 batches, 1.00 items each"] in lines
    assert ["Batch size", "Batches", "Share"] in lines
    assert ["single", "10", "100.0%"] in lines


def test_groups_on_gpus_that_are_not_here_count_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "config.pbtxt"
    config.write_text(
        "max_batch_size: 4 instance_group { count: 2 kind: KIND_GPU gpus: [0, 1, 2] }"
        " instance_group { count: 1 kind: KIND_CPU passive: true }"
    )

    printed = figures(capsys, config, "--arrivals", "uniform:1", "--duration", 1)

    assert printed["instances"] == 6


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--arrivals", "gamma:3"), "poisson:RATE"),
        (("--arrivals", "uniform:1", "--service-time-ms", "1+2+3"), "not a time in milliseconds"),
        (("--arrivals", "uniform:1", "--service-time-ms", "-1"), "not a time in milliseconds"),
        (("--arrivals", "uniform:1", "--duration", "soon"), "not a number of seconds above 0"),
        (("--arrivals", "uniform:1", "--instances", "0"), "not a whole number from 1"),
        ((), "--arrivals"),
    ],
)
def test_a_wrong_argument_is_answered_with_a_sentence(
    config: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], complaint: str
) -> None:
    with pytest.raises(SystemExit) as stopped:
        raise SystemExit(main(["simulate", str(config), *words]))

    assert stopped.value.code == (1 if words[1:] == ("gamma:3",) else 2)
    assert complaint in capsys.readouterr().err


def test_a_mistake_in_the_configuration_is_reported_with_its_position(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "config.pbtxt"
    config.write_text("max_batch_size: 4\ndynamic_batching {\n  prefered_batch_size: 4\n}\n")

    assert main(["simulate", str(config), "--arrivals", "uniform:1"]) == 1

    message = capsys.readouterr().err
    assert f"{config}:3:3" in message
    assert "preferred_batch_size" in message


def test_a_rule_that_the_configuration_breaks_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "config.pbtxt"
    config.write_text("max_batch_size: 4\ndynamic_batching { preferred_batch_size: 9 }\n")

    assert main(["simulate", str(config), "--arrivals", "uniform:1"]) == 1

    assert "preferred" in capsys.readouterr().err


class Sizing:
    """A backend whose model files say how large a batch may be."""

    traits = BackendTraits(name="sizing", files={"model.size": ""})

    def complete(self, context: ModelContext) -> ModelConfig:
        size = int((context.version_directory / "model.size").read_text())
        tensor = {"name": "X", "data_type": DataType.TYPE_FP32, "dims": (1,)}
        return replace(
            context.config,
            max_batch_size=size,
            input=(ModelInput(**tensor),),
            output=(ModelOutput(**tensor),),
            dynamic_batching=ModelDynamicBatching(),
        )

    def load(self, context: ModelContext) -> NoReturn:
        raise AssertionError("a simulation loads no model")

    @hookimpl
    def naiad_backends(self) -> list["Sizing"]:
        return [self]


class Batching:
    """A scheduler for dynamic batching; only its name matters here."""

    name, choice = "batching", "dynamic_batching"

    def create(self, config: ModelConfig, instances: int) -> NoReturn:
        raise AssertionError("reading a configuration makes no scheduler")

    @hookimpl
    def naiad_schedulers(self) -> list["Batching"]:
        return [self]


def test_a_model_directory_is_completed_by_its_backend_as_the_server_does(tmp_path: Path) -> None:
    (tmp_path / "digits" / "1").mkdir(parents=True)
    (tmp_path / "digits" / "1" / "model.size").write_text("16")

    config = ModelInspector(PluginRegistry.of([Sizing(), Batching()])).config(tmp_path / "digits")

    assert (config.name, config.max_batch_size) == ("digits", 16)
    assert config.dynamic_batching == ModelDynamicBatching(preferred_batch_size=(16,))


def test_a_path_without_a_configuration_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", str(tmp_path / "none"), "--arrivals", "uniform:1"]) == 1

    assert str(tmp_path / "none") in capsys.readouterr().err


def test_a_scheduler_that_is_not_installed_is_named_with_where_to_get_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "config.pbtxt"
    config.write_text('max_batch_size: 4 parameters { key: "scheduler" value { string_value: "lottery" } }')

    assert main(["simulate", str(config), "--arrivals", "uniform:1"]) == 1

    assert "lottery" in capsys.readouterr().err


def test_a_timeline_is_printed_where_it_is_asked_for(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["simulate", str(config), "--arrivals", "burst:3@1000", "--duration", "1", "--timeline"]

    assert main(words) == 0

    assert capsys.readouterr().out.splitlines()[-3:] == ["ms       0  5", "0 row 0  1  3", "1 row 0  2"]


def test_a_picture_is_drawn_where_it_is_asked_for(config: Path, tmp_path: Path) -> None:
    drawn = tmp_path / "drawn.svg"

    assert main(["simulate", str(config), "--arrivals", "uniform:3", "--duration", "1", "--svg", str(drawn)]) == 0

    assert drawn.read_text().startswith("<svg")


def test_a_picture_that_cannot_be_written_is_an_error(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    drawn = tmp_path / "no such folder" / "drawn.svg"

    assert main(["simulate", str(config), "--arrivals", "uniform:3", "--svg", str(drawn)]) == 1

    assert "no such folder" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--sequences", "--sequence-length", "--instances"])
def test_a_number_from_1_is_wanted(config: Path, capsys: pytest.CaptureFixture[str], option: str) -> None:
    with pytest.raises(SystemExit):
        main(["simulate", str(config), "--arrivals", "uniform:3", option, "0"])

    assert "whole number from 1" in capsys.readouterr().err


def test_what_a_model_is_notified_of_its_sequences_is_read_from_its_configuration() -> None:
    config = parse_text(
        'sequence_batching { control_input [ { name: "S" control { kind: CONTROL_SEQUENCE_START } }, '
        '{ name: "ALL" control { kind: CONTROL_SEQUENCE_READY } control { kind: CONTROL_SEQUENCE_END } }, '
        '{ name: "ID" control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_STRING } } ] }'
    )

    assert signals_of(config) == {"S": {"start"}, "ALL": {"ready", "end"}}
    assert (wants_sequences(config), has_text_ids(config)) == (True, True)


def test_a_model_without_sequences_wants_none() -> None:
    iterative = parse_text("sequence_batching { iterative_sequence: true }")

    assert [wants_sequences(each) for each in (ModelConfig(), iterative)] == [False, False]
    assert signals_of(ModelConfig()) == {}


def without_the_test_kit(*words: str) -> subprocess.CompletedProcess[str]:
    """The command line in a process where naiad-testing is not installed."""
    program = "import sys; sys.modules['naiad_testing'] = None; from naiad_cli.main import main; sys.exit(main())"
    return subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, check=False)


def test_without_the_test_kit_the_command_says_what_to_install(config: Path) -> None:
    ran = without_the_test_kit("simulate", str(config), "--arrivals", "uniform:100")

    assert ran.returncode == 1
    assert ran.stderr.startswith("naiad simulate: the simulator is in naiad-testing: pip install ")
    assert len(ran.stderr.splitlines()) == 1


@pytest.mark.parametrize("words", [("simulate", "--help"), ("completion", "bash")])
def test_without_the_test_kit_the_command_is_described(words: tuple[str, ...]) -> None:
    ran = without_the_test_kit(*words)

    assert (ran.returncode, ran.stderr) == (0, "")
    assert "--service-time-ms" in ran.stdout


def test_the_described_arrivals_are_those_of_the_simulator() -> None:
    assert (simulate.FORMS, simulate.DURATION) == (arrivals.FORMS, arrivals.DURATION)
