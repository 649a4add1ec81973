"""Rules for warmup samples and for the files that a configuration names."""

from pathlib import Path

import pytest

from .rules import INPUT, OUTPUT, VALID, only, problems_of


@pytest.mark.parametrize(
    ("text", "path", "phrase"),
    [
        ("dims: 0 zero_data: true", ".dims[0]", "has the dimension 0"),
        ("dims: [ 4, -1 ] zero_data: true", ".dims[1]", "has the dimension -1"),
        ("dims: 4", "", "takes one of 'zero_data', 'random_data' and 'input_data_file', and has none"),
    ],
)
def test_warmup_rules(text, path, phrase):
    sample = f'model_warmup {{ batch_size: 1 inputs {{ key: "x" value {{ data_type: TYPE_FP32 {text} }} }} }}'

    message = only(VALID + INPUT + sample)

    assert message[0] == f'model_warmup[0].inputs["x"]{path}'
    assert phrase in message[1]


@pytest.mark.parametrize("most", [5, 0])
def test_a_warmup_sample_may_fill_a_batch_or_run_one_by_one(most):
    sample = 'model_warmup { batch_size: 5 inputs { key: "x" value { data_type: TYPE_FP32 dims: 4 zero_data: true } } }'

    assert problems_of(f'name: "m" backend: "b" max_batch_size: {most} {INPUT} {OUTPUT} {sample}') == []


def test_a_warmup_sample_is_not_larger_than_a_batch():
    sample = 'model_warmup { batch_size: 9 inputs { key: "x" value { data_type: TYPE_FP32 dims: 4 zero_data: true } } }'

    path, message = only(VALID + INPUT + OUTPUT + sample)

    assert path == "model_warmup[0].batch_size"
    assert "a warmup sample of m has batch_size 9, and max_batch_size is 8" in message


@pytest.mark.parametrize(
    ("sizes", "requests"),
    [
        ("batch_size: 4294967295", "4,294,967,295"),
        ("batch_size: 1 count: 4294967295", "4,294,967,295"),
        ("batch_size: 1024 count: 1025", "1,049,600"),
    ],
)
def test_a_warmup_sample_has_a_limit_of_requests(sizes, requests):
    inputs = 'inputs { key: "x" value { data_type: TYPE_FP32 dims: 4 zero_data: true } }'
    model = f'name: "m" backend: "b" {INPUT} {OUTPUT}'

    assert problems_of(f"{model} model_warmup {{ {sizes} {inputs} }}") == [
        ("model_warmup[0]", f"a warmup sample of m has {requests} requests, and the most is 1,048,576")
    ]
    assert problems_of(f"{model} model_warmup {{ batch_size: 1024 count: 1024 {inputs} }}") == []


def test_a_sample_must_be_like_the_inputs():
    sample = """
    input { name: "z" data_type: TYPE_FP32 dims: 1 }
    sequence_batching { control_input { name: "S" control { int32_false_true: [ 0, 1 ] } } }
    model_warmup { name: "w" batch_size: 1
      inputs { key: "x" value { data_type: TYPE_INT32 dims: 4 zero_data: true } }
      inputs { key: "xx" value { data_type: TYPE_INT32 dims: 4 zero_data: true } }
      inputs { key: "S" value { data_type: TYPE_INT32 dims: 1 zero_data: true } }
    }
    """

    assert problems_of(VALID + INPUT + sample) == [
        ('model_warmup[0].inputs["x"].data_type', "warmup input 'x' is TYPE_INT32, but the input of m is TYPE_FP32"),
        ('model_warmup[0].inputs["xx"]', "warmup input 'xx' is not an input of m"),
        ("model_warmup[0]", "warmup sample 'w' lacks the input z"),
    ]


def test_controls_and_states_in_a_sample_must_have_their_types():
    sample = """
    sequence_batching {
      control_input { name: "S" control { int32_false_true: [ 0, 1 ] } }
      state { input_name: "in" output_name: "out" data_type: TYPE_FP16 dims: 1 }
    }
    model_warmup { name: "w" batch_size: 1
      inputs { key: "x" value { data_type: TYPE_FP32 dims: 4 zero_data: true } }
      inputs { key: "S" value { data_type: TYPE_FP32 dims: 1 zero_data: true } }
      inputs { key: "in" value { data_type: TYPE_FP32 dims: 1 zero_data: true } }
    }
    """

    assert [(path, message.split()[-1]) for path, message in problems_of(VALID + INPUT + sample)] == [
        ('model_warmup[0].inputs["S"].data_type', "TYPE_INT32"),
        ('model_warmup[0].inputs["in"].data_type', "TYPE_FP16"),
    ]


@pytest.mark.parametrize("name", ["../x", "/x", "a/../../x", "..", "a\\000b"])
def test_no_file_leaves_its_folder(name):
    text = f"""
    default_model_filename: "{name}"
    cc_model_filenames {{ key: "8.0" value: "{name}" }}
    output {{ name: "o" data_type: TYPE_FP32 dims: 1 label_filename: "{name}" }}
    model_warmup {{ inputs {{ key: "x" value {{ data_type: TYPE_FP32 dims: 1 input_data_file: "{name}" }} }} }}
    """

    assert [path for path, _ in problems_of(VALID + INPUT + text, model_directory=Path("/nowhere"))] == [
        "default_model_filename",
        'cc_model_filenames["8.0"]',
        "output[0].label_filename",
        'model_warmup[0].inputs["x"].input_data_file',
    ]


def test_files_must_be_there_and_large_enough(tmp_path):
    (tmp_path / "warmup").mkdir()
    (tmp_path / "warmup" / "small").write_bytes(b"1234")
    (tmp_path / "warmup" / "folder").mkdir()
    text = """
    output { name: "o" data_type: TYPE_FP32 dims: 1 label_filename: "labels.txt" }
    model_warmup [
      { inputs { key: "x" value { data_type: TYPE_FP32 dims: 4 input_data_file: "small" } } },
      { inputs { key: "x" value { data_type: TYPE_FP32 dims: 4 input_data_file: "none" } } },
      { inputs { key: "x" value { data_type: TYPE_FP32 dims: 4 input_data_file: "folder" } } }
    ]
    """

    assert problems_of(VALID + INPUT + text, model_directory=tmp_path) == [
        ("output[0].label_filename", "the label file 'labels.txt' of output 'o' is not in the model folder"),
        (
            'model_warmup[0].inputs["x"].input_data_file',
            "warmup setting expects 16 bytes, but the data provided from small only has 4 bytes",
        ),
        ('model_warmup[1].inputs["x"].input_data_file', "the file 'none' is not there"),
        ('model_warmup[2].inputs["x"].input_data_file', "the file 'folder' is not there"),
    ]


def test_a_file_name_longer_than_the_file_system_allows_is_a_file_that_is_not_there(tmp_path):
    text = f'output {{ name: "o" data_type: TYPE_FP32 dims: 1 label_filename: "{"x" * 5000}" }}'

    assert [path for path, _ in problems_of(VALID + text, model_directory=tmp_path)] == ["output[0].label_filename"]


def test_files_that_are_there_are_no_problem(tmp_path):
    (tmp_path / "warmup").mkdir()
    (tmp_path / "warmup" / "x.bin").write_bytes(bytes(20))
    (tmp_path / "warmup" / "s.bin").write_bytes(b"\1\0\0\0a")
    (tmp_path / "labels.txt").write_text("a\n")
    text = """
    input { name: "s" data_type: TYPE_STRING dims: 1000 }
    output { name: "o" data_type: TYPE_FP32 dims: 1 label_filename: "labels.txt" }
    model_warmup { batch_size: 1
      inputs { key: "x" value { data_type: TYPE_FP32 dims: 4 input_data_file: "x.bin" } }
      inputs { key: "s" value { data_type: TYPE_STRING dims: 1000 input_data_file: "s.bin" } }
    }
    """

    assert problems_of(VALID + INPUT + text, model_directory=tmp_path) == []
