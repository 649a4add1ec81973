"""Behaviours of inference: tensors of every datatype, outputs, classes, and what requests and models say besides."""

import json
from typing import Any

import ml_dtypes
import numpy as np

from naiad_tensors.datatypes import TENSOR_TYPES
from naiad_testing.frontends.calls import Answer, Call, Input, Output
from naiad_testing.frontends.stage import Stage
from naiad_testing.frontends.table import Table

INFERENCE = Table()
A = np.arange(8, dtype=np.float32).reshape(2, 4)
B = np.full((2, 4), 0.5, np.float32)
SUMS = (Input("A", A), Input("B", B))
X = Input("X", np.array([1.0], np.float32))

_EDGES: dict[str, list[Any]] = {
    "BOOL": [True, False, False, True],
    "FP16": [0.5, -65504.0, np.inf, -0.0],
    "FP32": [0.1, -3.4028235e38, 1.4e-45, -0.0],
    "FP64": [0.1, -1.7976931348623157e308, 5e-324, -0.0],
    "BF16": [1.0, -2.5, 3.0e38, 2**-20],
    "BYTES": [b"", "ü ☃ \U0001f40b".encode(), b'q"\\\n\t', b"a\0\xff\xfe"],
}


def counted(count: int) -> Input:
    """The input with which `repeat` sends so many responses."""
    return Input("COUNT", np.array([count], np.int32))


def edges(datatype: str) -> np.ndarray:
    """Four elements of a datatype that are hard to carry, as two rows of two."""
    dtype = np.dtype(ml_dtypes.bfloat16) if datatype == "BF16" else TENSOR_TYPES[datatype].dtype
    values = _EDGES.get(datatype) or [np.iinfo(dtype).min, np.iinfo(dtype).max, 0, 1]
    return np.array(values, dtype).reshape(2, 2)


def mirrored(stage: Stage, arrays: dict[str, np.ndarray]) -> Answer:
    """What `mirror` answers to arrays by their datatype."""
    return stage.shared.adapter.infer(
        Call("mirror", [Input(f"IN_{kind}", each, kind) for kind, each in arrays.items()])
    )


def said(answer: Answer) -> dict[str, Any]:
    """What `sayer` says of its request."""
    text = answer.outputs["SAID"]
    assert text is not None
    document: dict[str, Any] = json.loads(text[0])
    return document


@INFERENCE.behaviour
def an_answer_has_the_outputs_and_says_whose_it_is(stage: Stage) -> None:
    answer = stage.shared.adapter.infer(Call("add_sub", SUMS, version="1", id='a "strange" id ü'))

    assert (answer.model, answer.version, answer.id) == ("add_sub", "1", 'a "strange" id ü')
    assert answer.datatypes == {"SUM": "FP32", "DIFFERENCE": "FP32"}
    np.testing.assert_array_equal(answer.outputs["SUM"], A + B)
    np.testing.assert_array_equal(answer.outputs["DIFFERENCE"], A - B)


@INFERENCE.cases({kind: (kind,) for kind in TENSOR_TYPES})
def a_tensor_comes_back_as_it_was(stage: Stage, datatype: str) -> None:
    sent = edges(datatype)

    answer = mirrored(stage, {datatype: sent})

    came = answer.outputs[f"OUT_{datatype}"]
    assert came is not None
    assert (answer.datatypes, came.dtype, came.shape) == ({f"OUT_{datatype}": datatype}, sent.dtype, (2, 2))
    assert came.tolist() == sent.tolist() if datatype == "BYTES" else came.tobytes() == sent.tobytes()


@INFERENCE.cases({str(shape): (shape,) for shape in ((0, 2), (2, 0), (0, 0))})
def tensors_without_elements_keep_their_shape(stage: Stage, shape: tuple[int, int]) -> None:
    answer = mirrored(stage, {kind: np.zeros(shape, edges(kind).dtype) for kind in TENSOR_TYPES})

    assert {name: each.shape for name, each in answer.outputs.items() if each is not None} == {
        f"OUT_{kind}": shape for kind in TENSOR_TYPES
    }


@INFERENCE.behaviour
def large_tensors_come_back_whole(stage: Stage) -> None:
    sent = {
        "FP32": np.arange(1_000_000, dtype=np.float32).reshape(1000, -1),
        "BYTES": np.tile(edges("BYTES"), (50, 100)),
    }

    answer = mirrored(stage, sent)

    np.testing.assert_array_equal(answer.outputs["OUT_FP32"], sent["FP32"])
    np.testing.assert_array_equal(answer.outputs["OUT_BYTES"], sent["BYTES"])


@INFERENCE.behaviour
def only_requested_outputs_come(stage: Stage) -> None:
    answer = stage.shared.adapter.infer(Call("add_sub", SUMS, [Output("DIFFERENCE")]))

    assert list(answer.outputs) == ["DIFFERENCE"]
    np.testing.assert_array_equal(answer.outputs["DIFFERENCE"], A - B)


@INFERENCE.behaviour
def requests_that_are_sent_at_once_each_get_their_own_answer(stage: Stage) -> None:
    arrays = [np.full((1, 4), number, np.float32) for number in range(40)]
    calls = [Call("add_sub", [Input("A", each), Input("B", each)], id=str(each[0, 0])) for each in arrays]

    pending = [stage.shared.adapter.begin(call) for call in calls]
    answers = [each.result() for each in pending]

    assert [answer.id for answer in answers] == [call.id for call in calls]
    np.testing.assert_array_equal([answer.outputs["SUM"] for answer in answers], [2 * each for each in arrays])


@INFERENCE.cases({"2": (2, 2), "more than there are": (100, 4)})
def the_best_classes_come_with_value_index_and_label(stage: Stage, classes: int, count: int) -> None:
    answer = stage.shared.adapter.infer(Call("add_sub", SUMS, [Output("SUM", classes=classes)]))

    scores = answer.outputs["SUM"]
    assert scores is not None
    assert (answer.datatypes["SUM"], scores.shape) == ("BYTES", (2, count))
    assert scores[:, :2].tolist() == [[b"3.500000:3", b"2.500000:2:two"], [b"7.500000:3", b"6.500000:2:two"]]


@INFERENCE.behaviour
def everything_that_a_request_says_reaches_the_model(stage: Stage) -> None:
    own = {"text": "ü", "whole": 2**63 - 1, "minus": -1, "half": 0.5, "yes": True, "no": False}

    answer = stage.shared.adapter.infer(
        Call(
            "sayer",
            [X],
            [Output("SAID")],
            id="r1",
            sequence_id=7,
            sequence_start=True,
            sequence_end=True,
            priority=3,
            timeout=5_000_000,
            parameters=own,
        )
    )

    assert said(answer) | {"has_deadline": False} == {
        "id": "r1",
        "parameters": own,
        "priority": 3,
        "timeout": 5_000_000,
        "requested": ["SAID"],
        "sequence": [7, True, True],
        "has_deadline": False,
    }


@INFERENCE.behaviour
def a_sequence_may_be_named_by_a_text(stage: Stage) -> None:
    answer = stage.shared.adapter.infer(Call("sayer", [X], sequence_id="seven", sequence_start=True))

    assert said(answer)["sequence"] == ["seven", True, False]


@INFERENCE.behaviour
def parameters_of_a_model_come_with_its_answer(stage: Stage) -> None:
    own = {"text": "ü", "whole": 2**63 - 1, "minus": -1, "half": 0.5, "yes": True, "no": False}

    answer = stage.shared.adapter.infer(Call("sayer", [X], parameters=own))

    assert answer.parameters == own


@INFERENCE.behaviour
def headers_that_match_are_forwarded_and_win_over_parameters(stage: Stage) -> None:
    headers = {"x-tenant": "blue", "other": "kept back"}

    answer = stage.shared.adapter.infer(Call("sayer", [X], headers=headers, parameters={"x-tenant": "forged", "p": 1}))

    forwarded = {name.lower(): value for name, value in said(answer)["parameters"].items()}
    assert forwarded == {"x-tenant": "blue", "p": 1}
