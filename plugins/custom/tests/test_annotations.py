"""From annotations to a configuration, and what is said about annotations that tell too little."""

import pytest

from naiad.errors import ConfigError, InvalidArgumentError
from naiad_config import DataType, ModelInput, ModelOutput
from naiad_custom import FP32, Array, api, model
from naiad_custom.declaration import ArraySpec
from naiad_custom.native import ModelDefinition


def test_a_function_without_a_configuration_file_is_complete(folder):
    folder.write("""
        from naiad_custom import FP32, INT64, Array, model

        @model(max_batch_size=8)
        def add(a: Array[FP32, 16], b: Array[INT64, -1, 3]) -> Array[FP32, 16]:
            return a
    """)

    config = folder.completed()

    assert config.max_batch_size == 8
    assert config.input == (
        ModelInput(name="a", data_type=DataType.TYPE_FP32, dims=(16,)),
        ModelInput(name="b", data_type=DataType.TYPE_INT64, dims=(-1, 3)),
    )
    assert config.output == (ModelOutput(name="output", data_type=DataType.TYPE_FP32, dims=(16,)),)
    assert config.dynamic_batching is not None


def test_a_model_for_single_requests_gets_no_dynamic_batching(folder):
    folder.write("""
        from naiad_custom import BYTES, Array, model

        @model
        def echo(text: Array[BYTES, 1]) -> Array[BYTES, 1]:
            return text
    """)

    config = folder.completed()

    assert (config.max_batch_size, config.dynamic_batching) == (0, None)
    assert config.input[0].data_type is DataType.TYPE_STRING


@pytest.mark.parametrize("config", [kind for kind in DataType if kind is not DataType.TYPE_INVALID])
def test_every_datatype_has_a_name_to_annotate_with(config):
    wire = {"TYPE_STRING": "BYTES"}.get(config.name, config.name.removeprefix("TYPE_"))

    spec = ArraySpec.of((getattr(api, wire), 2))

    assert spec == ArraySpec(wire, (2,))


def test_a_parameter_with_a_default_is_an_optional_input(folder):
    folder.write("""
        from naiad_custom import FP32, Array, model

        @model
        def scale(x: Array[FP32, 4], by: Array[FP32, 1] | None = None) -> Array[FP32, 4]:
            return x
    """)

    assert [each.optional for each in folder.completed().input] == [False, True]


@pytest.mark.parametrize(
    ("answer", "names"),
    [
        ("Pair", ["total", "difference"]),
        ("Dict", ["total", "difference"]),
        ("Record", ["total", "difference"]),
        ('{"total": Array[FP32, 4], "difference": Array[FP32, 4]}', ["total", "difference"]),
        ("tuple[Array[FP32, 4], Array[FP32, 4]]", ["first", "second"]),
    ],
)
def test_several_outputs_are_named_by_the_return_annotation(folder, answer, names):
    outputs = 'outputs=("first", "second")' if answer.startswith("tuple") else ""
    folder.write(f"""
        from dataclasses import dataclass
        from typing import NamedTuple, TypedDict
        from naiad_custom import FP32, Array, model

        class Pair(NamedTuple):
            total: Array[FP32, 4]
            difference: Array[FP32, 4]

        class Dict(TypedDict):
            total: Array[FP32, 4]
            difference: Array[FP32, 4]

        @dataclass
        class Record:
            total: Array[FP32, 4]
            difference: Array[FP32, 4]

        @model({outputs})
        def both(a: Array[FP32, 4]) -> {answer}:
            return a
    """)

    assert [each.name for each in folder.completed().output] == names


def test_one_output_is_named_by_the_decorator(folder):
    folder.write("""
        from naiad_custom import FP32, Array, model

        @model(outputs="total")
        def add(a: Array[FP32, 4]) -> Array[FP32, 4]:
            return a
    """)

    assert folder.completed().output[0].name == "total"


def test_annotations_may_be_text(folder):
    folder.write("""
        from __future__ import annotations
        from naiad_custom import FP32, Array, model

        @model
        def add(a: Array[FP32, 4], b: Array[FP32, 4] | None = None) -> Array[FP32, 4]:
            return a
    """)

    assert [each.name for each in folder.completed().input] == ["a", "b"]


def test_everything_wrong_with_a_signature_is_reported_with_its_position_and_the_fix(folder):
    folder.write("""
        import numpy as np
        from naiad_custom import FP32, Array, model

        @model
        def add(
            a,
            b: np.ndarray,
            c: Array[FP32, 4] | None,
            *rest: Array[FP32, 4],
        ):
            return a
    """)

    with pytest.raises(ConfigError) as caught:
        folder.completed()

    problems = [(problem.line, problem.column, problem.hint) for problem in caught.value.problems]
    assert problems == [
        (6, 5, "write a: Array[FP32, 16]"),
        (7, 5, "write b: Array[FP32, 16]"),
        (8, 5, "write c: Array[FP32, 4] | None = None"),
        (9, 6, "write rest as an ordinary parameter"),
        (5, 1, "write -> Array[FP32, 16] before the colon"),
    ]
    assert f"{folder.path}/1/model.py:6:5: parameter 'a' of 'add': it has no annotation" in str(caught.value)


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ((float, 4), "starts with a datatype of naiad_custom, not with float"),
        (("FP33", 4), "not with 'FP33'"),
        ("FP32", "write Array[FP32, 16], or -1 for a variable dim"),
        (("FP32", 0), "integers >= 1, or -1 for variable; not 0"),
        (("FP32", "n"), "not 'n'"),
        (("FP32", True), "not True"),
    ],
)
def test_a_wrong_array_annotation_says_what_to_write(item, message):
    with pytest.raises(TypeError, match="Array") as caught:
        ArraySpec.of(item)

    assert message in str(caught.value)


def test_a_wrong_array_annotation_in_a_file_is_reported_with_its_line(folder):
    folder.write("""
        from naiad_custom import FP32, Array, model

        @model
        def add(a: Array[FP32]) -> Array[FP32, 4]:
            return a
    """)

    with pytest.raises(InvalidArgumentError, match=r"model\.py:4: TypeError: Array\[FP32\] has no dims"):
        folder.completed()


def test_an_unknown_name_in_an_annotation_is_reported_with_its_line(folder):
    folder.write("""
        from naiad_custom import FP32, Array, model

        @model
        class Add:
            def execute(self, a: Array[FP32, 4]) -> Arry[FP32, 4]:
                return a
    """)

    with pytest.raises(InvalidArgumentError, match=r"model\.py:5: NameError: name 'Arry' is not defined"):
        folder.completed()


def test_a_text_annotation_that_cannot_be_read_is_reported_with_its_line(folder):
    folder.write("""
        from __future__ import annotations
        from naiad_custom import FP32, Array, model

        @model
        def add(a: Arry[FP32, 4]) -> Array[FP32, 4]:
            return a
    """)

    with pytest.raises(ConfigError, match=r"model\.py:5:9: parameter 'a' of 'add': .*name 'Arry' is not defined"):
        folder.completed()


def test_a_tuple_without_names_asks_for_them():
    @model
    def both(a: Array[FP32, 4]) -> tuple[Array[FP32, 4], Array[FP32, 4]]:
        return a, a

    with pytest.raises(ConfigError, match=r'outputs=\("output0", "output1"\)'):
        ModelDefinition(both)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_batch_size": -1}, "max_batch_size is an integer >= 0, not -1"),
        ({"concurrency": 0}, "concurrency is an integer >= 1, not 0"),
        ({"outputs": ("a", "a")}, "names one output twice"),
    ],
)
def test_wrong_arguments_of_the_decorator_are_refused(arguments, message):
    with pytest.raises(TypeError, match=message):
        model(**arguments)


def test_a_marked_function_can_still_be_called():
    @model(max_batch_size=2)
    def double(x: Array[FP32, 1]) -> Array[FP32, 1]:
        return x * 2

    assert double(21) == 42
