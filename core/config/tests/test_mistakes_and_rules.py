"""A configuration with keys that cannot be read is held against the rules all the same, without echoes."""

import json
from pathlib import Path
from typing import Any

import pytest

from naiad.errors import ConfigError, Problem
from naiad_config import ModelConfig, ModelInput
from naiad_config.json import read_json
from naiad_config.model_folder import read_model
from naiad_config.tensors import DataType
from naiad_config.text import read_text
from naiad_config.validation import problems, unexplained


def test_what_can_be_read_beside_a_mistake_is_read() -> None:
    parsed = read_text('max_batch_sise: 4 input { name: "x" data_type: TYPE_FP31 dims: [ 0 ] }')

    assert parsed.config == ModelConfig(input=(ModelInput(name="x", dims=(0,)),))
    assert [problem.path for problem in parsed.problems] == ["max_batch_sise", "input[0].data_type"]
    assert parsed.positions["input[0].dims[0]"] == (1, 66)


def test_a_list_with_an_element_that_cannot_be_read_is_left_out() -> None:
    parsed = read_text('input { name: "x" data_type: TYPE_FP32 dims: [ 1, "two", 0 ] }')

    assert parsed.config.input == (ModelInput(name="x", data_type=DataType.TYPE_FP32),)


def test_json_is_read_as_far_as_it_can_be_too() -> None:
    parsed = read_json({"maxBatchSize": -1, "backend": 7, "parameters": {"a": {"stringValue": "b"}, "c": 1}})

    assert (parsed.config.max_batch_size, parsed.config.backend) == (-1, "")
    assert {key: value.string_value for key, value in parsed.config.parameters.items()} == {"a": "b"}
    assert [problem.path for problem in parsed.problems] == ["backend", 'parameters["c"]']


@pytest.mark.parametrize("text", [b"[]", b"1"])
def test_json_that_is_no_object_is_one_problem(text: bytes) -> None:
    parsed = read_json(text)

    assert (parsed.config, len(parsed.problems)) == (ModelConfig(), 1)


def test_broken_syntax_still_ends_the_reading() -> None:
    with pytest.raises(ConfigError, match=r"config\.pbtxt:1:"):
        read_text("input [ {")


def test_every_rule_that_no_mistake_explains_is_applied() -> None:
    text = """
    max_batch_size: -1
    inptu { }
    input { name: "x" data_type: TYPE_FP31 dims: [ 0 ] }
    input { name: "x" dims: [ -1 ] }
    dynamic_batching { priority_levels: 2 default_priority_level: "one" }
    """
    parsed = read_text(text)

    result = unexplained(problems(parsed.config, complete=False), parsed.problems)

    assert [problem.path for problem in result] == ["max_batch_size", "input[0].dims[0]", "input[1].name"]


@pytest.mark.parametrize(
    ("path", "misread", "is_kept"),
    [
        ("input[0].dims", "input[0].dims", False),
        ("input[0].dims[1]", "input[0].dims", False),
        ("input[0]", "input[0].dims", False),
        ("input[1]", "input[0]", True),
        ("input[0].name", "input[0].dims", True),
        ("input[10].dims", "input[1]", True),
        ("backends", "backend", True),
        ("", "backend", True),
    ],
)
def test_a_problem_is_explained_by_a_mistake_in_it_or_around_it(path: str, misread: str, is_kept: bool) -> None:
    kept = unexplained([Problem("broken rule", path)], [Problem("mistake", misread)])

    assert bool(kept) is is_kept


@pytest.mark.parametrize(
    "many",
    [
        {f"key_{number}": 0 for number in range(1000)},
        {"input": [{"data_type": "TYPE_FP31", "dims": [0]}] * 1000},
        {"input": [{"dims": [0]}] * 1000},
    ],
    ids=["keys", "values", "rules"],
)
def test_the_first_hundred_of_many_problems_are_listed(tmp_path: Path, many: dict[str, Any]) -> None:
    (tmp_path / "m" / "1").mkdir(parents=True)

    with pytest.raises(ConfigError) as caught:
        read_model(tmp_path / "m", override=json.dumps(many))

    assert len(caught.value.problems) == 101
    assert len(str(caught.value).splitlines()) == 101
    assert str(caught.value).endswith("there are more problems; mend these first")
