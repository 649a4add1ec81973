"""A configuration file is completed from the code, and held against it."""

import pytest

from naiad.errors import ConfigError
from naiad_config import DataType, ModelDynamicBatching
from naiad_testing import serve

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


def test_a_configuration_that_contradicts_the_code_names_every_position(folder):
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


def test_a_model_that_asks_for_one_response_may_not_yield(folder):
    config = "model_transaction_policy { decoupled: false }"
    folder.write(
        """
        from collections.abc import Iterator
        from naiad_custom import INT64, Array, model

        @model
        def twice(x: Array[INT64, 1]) -> Iterator[Array[INT64, 1]]:
            yield x
        """,
        config,
    )

    with pytest.raises(ConfigError, match=r"model_transaction_policy\.decoupled: 'twice' gives any .*write true, or"):
        folder.completed()


def test_a_model_that_may_give_several_responses_may_give_one(folder):
    folder.write(
        """
        from naiad_custom import INT64, Array, model

        @model
        def once(x: Array[INT64, 1]) -> Array[INT64, 1]:
            return x
        """,
        "model_transaction_policy { decoupled: true }",
    )

    with serve(folder.path) as client:
        results = [(response.final, response.is_empty) for response in client.responses(client.request(x=[1]))]

    assert results == [(True, False)]


def test_a_function_that_yields_needs_to_be_declared_where_nothing_is_completed(folder):
    folder.write(
        """
        from collections.abc import Iterator
        from naiad_custom import INT64, Array, model

        @model
        def twice(x: Array[INT64, 1]) -> Iterator[Array[INT64, 1]]:
            yield x
        """,
        'input { name: "x" data_type: TYPE_INT64 dims: 1 } output { name: "output" data_type: TYPE_INT64 dims: 1 }',
    )

    with pytest.raises(ConfigError, match=r"write model_transaction_policy \{ decoupled: true \}"):
        folder.backend.load(folder.context())
