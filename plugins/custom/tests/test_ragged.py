"""Functions that take the elements of all requests at once, and what tells them where each request begins."""

import numpy as np
import pytest

from naiad.errors import ConfigError
from naiad_tensors.ragged import layout_of

CODE = """
    from typing import NamedTuple

    import numpy as np
    from naiad_custom import FP32, INT32, Array, model

    class Sums(NamedTuple):
        double: Array[FP32, -1]
        total: Array[FP32, 1]

    @model(max_batch_size=8)
    def add(x: Array[FP32, -1], offsets: Array[INT32, -1]) -> Sums:
        sums = [x[start:end].sum() for start, end in zip(offsets[:-1], offsets[1:])]
        return Sums(x * 2, np.array(sums, dtype=np.float32).reshape(-1, 1))
"""
CONFIG = """
    input { name: "x" dims: [ -1, 2 ] allow_ragged_batch: true }
    output { name: "double" dims: [ -1, 2 ] }
    batch_input { kind: BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO target_name: "offsets" data_type: TYPE_INT32
                  source_input: "x" }
    batch_output { target_name: "double" kind: BATCH_SCATTER_WITH_INPUT_SHAPE source_input: "x" }
"""


def test_a_function_gets_all_elements_and_the_batch_input_of_its_parameter(folder, batch_of):
    folder.write(CODE, CONFIG)
    long, short = np.ones((1, 3, 2), dtype=np.float32), np.full((1, 1, 2), 5, dtype=np.float32)
    batch = batch_of({"x": long}, {"x": short})
    batch.layout = layout_of(folder.completed())

    outputs = folder.instance().execute(batch)

    assert outputs["double"].tolist() == [2] * 6 + [10] * 2
    assert outputs["total"].tolist() == [[6], [10]]


def test_an_annotation_has_the_columns_of_the_shapes_of_its_source(folder):
    shapes = CONFIG.replace("BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO", "BATCH_ITEM_SHAPE")
    folder.write(CODE.replace("offsets: Array[INT32, -1]", "offsets: Array[INT32, -1, 3]"), shapes)

    with pytest.raises(ConfigError) as caught:
        folder.completed()

    (problem,) = caught.value.problems
    assert (problem.path, problem.hint) == ("batch_input[0].kind", "write offsets: Array[INT32, -1, 2]")


@pytest.mark.parametrize("columns", [2, -1])
def test_an_annotation_may_leave_the_columns_open(folder, columns):
    shapes = CONFIG.replace("BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO", "BATCH_ITEM_SHAPE")
    folder.write(CODE.replace("offsets: Array[INT32, -1]", f"offsets: Array[INT32, -1, {columns}]"), shapes)

    assert [each.name for each in folder.completed().input] == ["x"]


def test_a_batch_input_is_no_input_of_clients(folder):
    folder.write(CODE, CONFIG)

    config = folder.completed()

    assert [(each.name, each.dims) for each in config.input] == [("x", (-1, 2))]
    assert [(each.name, each.dims) for each in config.output] == [("double", (-1, 2)), ("total", (1,))]


def test_a_parameter_with_a_default_gets_the_batch_input_too(folder, batch_of):
    folder.write(CODE.replace("offsets: Array[INT32, -1]", "offsets: Array[INT32, -1] | None = None"), CONFIG)
    batch = batch_of({"x": np.ones((1, 1, 2), dtype=np.float32)})
    batch.layout = layout_of(folder.completed())

    outputs = folder.instance().execute(batch)

    assert outputs["total"].tolist() == [[2]]


def test_a_function_that_takes_the_batch_needs_no_parameter_for_each(folder, batch_of):
    folder.write(
        """
        import numpy as np
        from naiad_custom import FP32, Array, model
        from naiad.backend import Batch

        @model(max_batch_size=8, outputs="total")
        def count(x: Array[FP32, -1], batch: Batch) -> Array[FP32, 1]:
            return np.diff(batch.input("offsets")).astype(np.float32).reshape(-1, 1)
        """,
        CONFIG.replace('output { name: "double" dims: [ -1, 2 ] }', "").partition("batch_output")[0],
    )
    batch = batch_of({"x": np.ones((1, 1, 2), np.float32)}, {"x": np.ones((1, 4, 2), np.float32)})
    batch.layout = layout_of(folder.completed())

    outputs = folder.instance().execute(batch)

    assert outputs["total"].tolist() == [[2], [8]]


@pytest.mark.parametrize(
    ("old", "new", "path", "reason"),
    [
        ("offsets: Array[INT32, -1]", "other: Array[INT32, -1]", "batch_input[0].target_name[0]", "no parameter"),
        ("offsets: Array[INT32", "offsets: Array[FP32", "batch_input[0].data_type", "is TYPE_INT32 here"),
        ("offsets: Array[INT32, -1]", "offsets: Array[INT32, -1, 2]", "batch_input[0].kind", "has the shape [-1] here"),
        ("x: Array[FP32, -1]", "x: Array[FP32, -1, 2]", "input[0].allow_ragged_batch", "'x' is ragged here"),
    ],
)
def test_what_the_function_takes_otherwise_is_reported_at_load(folder, old, new, path, reason):
    folder.write(CODE.replace(old, new).replace("offsets[", "other[" if "other" in new else "offsets["), CONFIG)

    with pytest.raises(ConfigError) as caught:
        folder.completed()

    assert (caught.value.problems[0].path, reason in caught.value.problems[0].message) == (path, True)
