"""`naiad ray check`: what a file leads to, and the models that cannot be served as it says."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

import pytest

from naiad_ray.command import add_parser, run_check

FILE = """
repository: models
groups:
  - {name: large, models: [large, nothing-*], num_gpus: 0.5, labels: {zone: a}}
  - {name: rest, autoscale: {maximum: 3, by: queue}}
"""
LARGE = """
backend: "python"
max_batch_size: 64
instance_group [ { count: 4 kind: KIND_CPU } ]
input [ { name: "x" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 1 ] } ]
"""
MODEL = """
class TritonPythonModel:
    def execute(self, requests):
        return []
"""
SEQUENCES = "sequence_batching { direct { } }"


def write(folder: Path, name: str, config: str) -> None:
    (folder / "models" / name / "1").mkdir(parents=True)
    (folder / "models" / name / "config.pbtxt").write_text(config)
    (folder / "models" / name / "1" / "model.py").write_text(MODEL)


def test_the_groups_are_listed_with_resources_requests_in_flight_and_models(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, "large", LARGE)
    write(tmp_path, "wrong", "max_batch_sise: 1")
    (tmp_path / "naiad-ray.yaml").write_text(FILE)

    status = run_check(Namespace(path=str(tmp_path)))

    lines = capsys.readouterr().out.splitlines()
    assert status == 1
    assert lines[:4] == [
        "application naiad: proxy, then a front desk of 1 replica, 0.5 CPUs and 0 GPUs each",
        "group large: 1 replica, 1 CPUs and 0.5 GPUs each, zone=a, 512 requests in flight each",
        "  large: ok",
        "  nothing-*: no model of the repository has that name",
    ]
    assert lines[4].startswith(
        "group rest: 1 to 3 replicas for 8 queued requests each, 1 CPUs and 0 GPUs each, 256 req"
    )
    assert "did you mean 'max_batch_size'?" in lines[5]


@pytest.mark.parametrize(
    ("config", "replicas", "then"),
    [
        (LARGE, 2, "then the replicas of its group"),
        (LARGE + SEQUENCES, 1, "then the replicas of its group"),
        (LARGE + SEQUENCES, 2, "then a front desk"),
    ],
)
def test_one_group_has_a_front_desk_for_sequences_on_several_replicas(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], config: str, replicas: int, then: str
) -> None:
    write(tmp_path, "large", config)
    (tmp_path / "naiad-ray.yaml").write_text(f"repository: models\ngroups: [{{name: a, replicas: {replicas}}}]")

    assert run_check(Namespace(path=str(tmp_path))) == 0
    assert then in capsys.readouterr().out


def test_the_help_of_the_command_lists_its_own_commands(capsys):
    parser = ArgumentParser("naiad")
    add_parser(parser.add_subparsers())

    with pytest.raises(SystemExit):
        parser.parse_args(["ray", "--help"])

    shown = capsys.readouterr().out
    assert [name for name in ("check", "up", "down") if f"\n    {name} " not in shown] == []
