"""A configuration file is completed from the code, and held against it."""

import pytest

from naiad.config import DataType, ModelDynamicBatching
from naiad.errors import ConfigError

CODE = """
    from naiad_custom import FP32, Array, model

    @model(max_batch_size=8)
    def add(a: Array[FP32, 4], b: Array[FP32, -1]) -> Array[FP32, 4]:
        return a
"""


def test_a_partial_configuration_keeps_what_it_says(folder):
    folder.write(
        CODE,
        'max_batch_size: 32 input { name: "b" dims: 7 } output { name: "output" label_filename: "labels.txt" }'
        " dynamic_batching { preferred_batch_size: 4 }",
    )

    config = folder.completed()

    assert config.max_batch_size == 32
    assert [(each.name, each.data_type, each.dims) for each in config.input] == [
        ("b", DataType.TYPE_FP32, (7,)),
        ("a", DataType.TYPE_FP32, (4,)),
    ]
    assert config.output[0].label_filename == "labels.txt"
    assert config.dynamic_batching == ModelDynamicBatching(preferred_batch_size=(4,))


def test_a_configuration_that_contradicts_the_code_names_every_place(folder):
    folder.write(
        CODE,
        'input [{ name: "a" data_type: TYPE_INT32 dims: 5 optional: true }, { name: "c" }] output { name: "total" }',
    )

    with pytest.raises(ConfigError) as caught:
        folder.completed()

    assert [(each.path, each.hint) for each in caught.value.problems] == [
        ("input[0].optional", "give the parameter a default"),
        ("input[0].data_type", "the annotation is Array[FP32, 4]; change one of the two"),
        ("input[0].dims", "the annotation is Array[FP32, 4]; change one of the two"),
        ("input[1].name", "it has a, b"),
        ("output[0].name", "it has output"),
    ]


def test_batches_for_a_function_of_single_requests_are_refused(folder):
    folder.write(CODE.replace("(max_batch_size=8)", ""), "max_batch_size: 4")

    with pytest.raises(ConfigError, match=r"write @model\(max_batch_size=4\)"):
        folder.completed()


def test_a_reshape_is_held_against_the_annotation_by_what_the_model_sees(folder):
    folder.write(CODE, 'input { name: "a" dims: [ 2, 2 ] reshape { shape: 4 } }')

    assert folder.completed().input[0].dims == (2, 2)
