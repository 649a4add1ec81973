"""Answers are sent without a copy, unless the model still holds what it answered with."""

import numpy as np

from naiad_custom.ownership import are_fresh, settle


def test_a_fresh_array_is_left_alone():
    outputs = {"a": np.arange(4.0), "b": np.arange(4.0) + 1}

    assert are_fresh(outputs)


def test_a_buffer_that_somebody_holds_is_copied():
    buffer = np.arange(4.0)
    outputs = {"fresh": np.arange(4.0), "held": buffer}
    fresh = id(outputs["fresh"])

    assert not are_fresh(outputs)
    settle(outputs, [])
    buffer[:] = 0

    assert outputs["held"].tolist() == [0, 1, 2, 3]
    assert id(outputs["fresh"]) == fresh


def test_a_view_of_a_held_buffer_is_copied():
    buffer = np.arange(4.0)
    outputs = {"view": buffer[1:3]}

    assert not are_fresh(outputs)
    settle(outputs, [])
    buffer[:] = 0

    assert outputs["view"].tolist() == [1, 2]


def test_a_view_of_a_fresh_array_is_left_alone():
    outputs = {"view": np.arange(4.0)[1:3]}
    memory = outputs["view"].__array_interface__["data"]

    settle(outputs, [])

    assert outputs["view"].__array_interface__["data"] == memory


def test_an_input_that_is_handed_back_is_left_alone():
    given = np.arange(4.0)
    outputs = {"same": given, "view": given[:2]}

    settle(outputs, [given])

    assert outputs["same"] is given
    assert outputs["view"].base is given


def test_arrays_that_nobody_can_write_to_are_left_alone():
    received = np.frombuffer(bytes(32))
    outputs = {"received": received}

    settle(outputs, [])

    assert outputs["received"] is received


def test_other_holders_can_be_counted_in():
    array = np.arange(4.0)
    keep = [array]
    outputs = {"a": keep[0]}
    del array

    assert not are_fresh(outputs)
    assert are_fresh(outputs, holders=1)


def test_a_model_that_fills_one_buffer_anew_answers_right(folder, batch_of):
    folder.write("""
        import numpy as np
        from naiad_custom import INT64, Array, model

        @model
        class Reuse:
            def load(self, context):
                self.buffer = np.empty(1, np.int64)

            def execute(self, x: Array[INT64, 1]) -> Array[INT64, 1]:
                return np.copyto(self.buffer, x) or self.buffer
    """)
    instance = folder.instance()

    answers = [instance.execute(batch_of({"x": [number]}, batching=False)) for number in (1, 2)]

    assert [answer["output"].item() for answer in answers] == [1, 2]


def test_a_fresh_result_of_a_function_is_not_copied(folder, batch_of):
    folder.write("""
        import numpy as np
        from naiad_custom import INT64, Array, model

        MADE = []

        @model
        def fresh(x: Array[INT64, 1]) -> Array[INT64, 1]:
            made = x + 1
            MADE.append(made.__array_interface__["data"])
            return made
    """)
    instance = folder.instance()

    answer = instance.execute(batch_of({"x": [1]}, batching=False))["output"]

    assert answer.__array_interface__["data"] in instance._call.__globals__["MADE"]
