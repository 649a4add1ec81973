"""Reading and writing configurations as JSON."""

import json
from pathlib import Path
from time import process_time

import pytest

from naiad.errors import ConfigError, Problem
from naiad_config import DataType, InstanceKind, ModelConfig, ModelInput, ModelInstanceGroup
from naiad_config.json import parse_json, to_json
from naiad_config.model_folder import read_model
from naiad_config.text import parse_text


def test_enums_may_be_written_in_any_case_and_integers_as_strings():
    text = """{"name": "m", "maxBatchSize": "4", "input": [{"data_type": "type_fp32", "dims": [1, "2", 3.0]}],
               "instance_group": [{"kind": 2, "count": null}]}"""

    config = parse_json(text)

    assert config == ModelConfig(
        name="m",
        max_batch_size=4,
        input=(ModelInput(data_type=DataType.TYPE_FP32, dims=(1, 2, 3)),),
        instance_group=(ModelInstanceGroup(kind=InstanceKind.KIND_CPU),),
    )


def test_an_object_that_was_read_already_is_taken_as_it_is():
    assert parse_json({"name": "m"}) == parse_json(b'{"name": "m"}') == ModelConfig(name="m")


def test_all_mistakes_are_reported_at_once():
    pending = {
        "max_batch_siz": 1,
        "input": {"a": 1},
        "output": [3],
        "instance_group": [{"kind": "kind_cpux", "count": True, "gpus": [2**40]}],
        "dynamic_batching": {"priority_queue_policy": {"x": {}}},
        "ensemble_scheduling": {},
        "name": 3,
        "maxBatchSize": "many",
        "parameters": [],
    }

    with pytest.raises(ConfigError) as caught:
        parse_json(pending, file="override")

    int32 = "expected an integer from -2147483648 to 2147483647"
    assert caught.value.problems == (
        Problem(
            "unknown key 'max_batch_siz' in a model configuration",
            "max_batch_siz",
            "override",
            hint="did you mean 'max_batch_size'?",
        ),
        Problem("expected a JSON array, found an object", "input", "override"),
        Problem("expected a JSON object, found 3", "output[0]", "override"),
        Problem("unknown value 'kind_cpux'", "instance_group[0].kind", "override", hint="did you mean 'KIND_CPU'?"),
        Problem(f"{int32}, found true", "instance_group[0].count", "override"),
        Problem(f"{int32}, found {2**40}", "instance_group[0].gpus[0]", "override"),
        Problem(
            'expected an integer from 0 to 18446744073709551615, found the string "x"',
            "dynamic_batching.priority_queue_policy",
            "override",
        ),
        Problem(
            "'ensemble_scheduling' and 'dynamic_batching' exclude each other",
            "ensemble_scheduling",
            "override",
            hint="keep one of them",
        ),
        Problem("expected a string in quotes, found 3", "name", "override"),
        Problem(f'{int32}, found the string "many"', "maxBatchSize", "override"),
        Problem("expected a JSON object, found an array", "parameters", "override"),
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (r'{"metric_tags": {"a": "\ud800"}}', "JSON: the JSON has half of a surrogate pair, which UTF-8 cannot carry"),
        (r'{"\udc00": 1}', "JSON: the JSON has half of a surrogate pair, which UTF-8 cannot carry"),
        ("[" * 100_000, "JSON: the JSON is nested too deep (a model configuration has seven levels)"),
        ('{"a":1,"a":2}', "JSON: broken JSON: the key 'a' is given twice in one object"),
        ('{"a":NaN}', 'JSON: broken JSON: NaN is not a JSON number; write it as a string, "NaN"'),
        ("[1]", "JSON: a model configuration is a JSON object (start it with '{')"),
        ('{"name": "m",\n x', "JSON:2:2: broken JSON: Expecting property name enclosed in double quotes"),
        (b'{"\xff', "JSON: the JSON is not UTF-8: invalid start byte at byte 2"),
    ],
)
def test_what_is_no_json_is_refused_with_its_position(text, message):
    with pytest.raises(ConfigError) as caught:
        parse_json(text)

    assert str(caught.value) == message


def test_empty_scalars_lists_and_maps_are_written_and_unset_messages_are_not():
    assert to_json(ModelConfig(name="m")) == {
        "name": "m",
        "platform": "",
        "backend": "",
        "runtime": "",
        "max_batch_size": 0,
        "input": [],
        "output": [],
        "batch_input": [],
        "batch_output": [],
        "instance_group": [],
        "default_model_filename": "",
        "cc_model_filenames": {},
        "metric_tags": {},
        "parameters": {},
        "model_warmup": [],
    }


def test_64_bit_integers_are_numbers_but_for_three_fields():
    config = parse_text(
        """
        input { name: "a" data_type: TYPE_FP32 dims: [ 16 ] reshape { shape: [ 4, 4 ] } }
        version_policy { specific { versions: [ 3 ] } }
        sequence_batching {
          max_sequence_idle_microseconds: 5
          oldest { max_queue_delay_microseconds: 6 }
          state { dims: [ 7 ] initial_state { dims: [ 8 ] zero_data: true } }
        }
        model_warmup { inputs { key: "a" value { dims: [ 9 ] random_data: true } } }
        optimization { cuda { graph_spec { input { key: "a" value { dim: [ 10 ] } } } } }
        instance_group { secondary_devices { device_id: 11 } }
        """
    )

    result = to_json(config)

    assert result["input"][0]["dims"] == [16]
    assert result["input"][0]["reshape"] == {"shape": [4, 4]}
    assert result["version_policy"] == {"specific": {"versions": [3]}}
    sequences = result["sequence_batching"]
    assert sequences["max_sequence_idle_microseconds"] == 5
    assert sequences["oldest"]["max_queue_delay_microseconds"] == 6
    assert sequences["state"][0]["dims"] == [7]
    assert sequences["state"][0]["initial_state"] == [
        {"data_type": "TYPE_INVALID", "dims": ["8"], "zero_data": True, "name": ""}
    ]
    assert result["model_warmup"][0]["inputs"]["a"] == {
        "data_type": "TYPE_INVALID",
        "dims": [9],
        "random_data": True,
    }
    assert result["optimization"]["cuda"]["graph_spec"][0]["input"] == {"a": {"dim": ["10"]}}
    assert result["instance_group"][0]["secondary_devices"] == [{"kind": "KIND_NVDLA", "device_id": "11"}]
    assert parse_json(json.dumps(result)) == config


def test_keys_of_maps_are_strings():
    config = parse_text(
        "dynamic_batching { priority_queue_policy { key: 2 value { default_timeout_microseconds: 7 } } }"
    )

    policies = to_json(config)["dynamic_batching"]["priority_queue_policy"]

    assert policies == {
        "2": {
            "timeout_action": "REJECT",
            "default_timeout_microseconds": 7,
            "allow_timeout_override": False,
            "max_queue_size": 0,
        }
    }


def test_whole_floats_are_written_without_a_point_and_read_again():
    controls = "control_input { control { fp32_false_true: [0, 2.5] } }"
    config = parse_text(f"sequence_batching {{ direct {{ minimum_slot_utilization: 1 }} {controls} }}")

    written = json.dumps(to_json(config)["sequence_batching"])

    assert '"minimum_slot_utilization": 1}' in written
    assert '"fp32_false_true": [0, 2.5]' in written
    assert parse_json(to_json(config)) == config


def _seconds_to_refuse(folder: Path, text: str) -> float:
    started = process_time()
    with pytest.raises(ConfigError):
        read_model(folder, override=text)
    return process_time() - started


@pytest.mark.parametrize(
    ("element", "around"),
    [
        ('"a%d": 0', '{%s, "z": 0, "z": 0}'),
        ('"key_number_%d": 0', "{%s}"),
        ('{"name": "i%d", "dims": [0], "data_type": "TYPE_X"}', '{"input": [%s]}'),
        ("%d.", '{"%s": 0}'),
    ],
    ids=["a key twice", "unknown keys", "wrong inputs", "a key of dots"],
)
def test_a_large_configuration_is_refused_in_time_that_is_linear_in_its_size(
    tmp_path: Path, element: str, around: str
) -> None:
    (tmp_path / "m" / "1").mkdir(parents=True)
    small, large = (around % ",".join(element % number for number in range(count)) for count in (10_000, 40_000))

    seconds = min(_seconds_to_refuse(tmp_path / "m", small) for _ in range(3))

    assert _seconds_to_refuse(tmp_path / "m", large) < 10 * max(seconds, 0.02)
