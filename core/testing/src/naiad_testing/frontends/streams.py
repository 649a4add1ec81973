"""Behaviours of decoupled models, and of clients that read slowly, cancel or disconnect."""

import numpy as np
import pytest

from naiad_testing.frontends.calls import Call, Input, RefusedError
from naiad_testing.frontends.inference import X, counted
from naiad_testing.frontends.stage import PATIENCE, Served, Stage
from naiad_testing.frontends.table import Table

STREAMS = Table()
MOST_UNDERWAY = 15_000_000
"""More bytes than the system's buffers of a connection and those of client and server take together."""


def repeated(count: int, size: int = 1, **more: object) -> Call:
    """A request for so many responses with a text of that size."""
    return Call("repeat", [counted(count), Input("SIZE", np.array([size], np.int32))], **more)  # type: ignore[arg-type]


def indices(served: Served, call: Call) -> list[int]:
    """What `repeat` counts to."""
    return [
        int(answer.outputs["INDEX"][0]) for answer in served.adapter.stream(call) if answer.outputs["INDEX"] is not None
    ]


@STREAMS.cases({"none": (0, 1), "one": (1, 1), "large": (5, 2_000_000), "many": (500, 100)})
def responses_come_whole_and_in_order(stage: Stage, count: int, size: int) -> None:
    answers = list(stage.shared.adapter.stream(repeated(count, size, id="r")))

    assert [each.outputs["INDEX"] for each in answers] == list(range(count))
    assert {len(each.outputs["TEXT"][0]) for each in answers if each.outputs["TEXT"] is not None} <= {size}
    assert {(each.model, each.version, each.id) for each in answers} <= {("repeat", "1", "r")}


@STREAMS.behaviour
def streams_keep_apart(stage: Stage) -> None:
    streams = [iter(stage.shared.adapter.stream(repeated(50, id=str(number)))) for number in range(12)]

    turns = [[next(each).id for each in streams] for _ in range(50)]

    assert turns == [[str(number) for number in range(12)]] * 50


@STREAMS.behaviour
def a_model_with_one_response_can_be_streamed_too(stage: Stage) -> None:
    (answer,) = stage.shared.adapter.stream(Call("sayer", [X]))

    assert answer.outputs["X"] == [1.0]


@STREAMS.cases({"behind two": (2,), "alone": (0,)})
def an_error_is_the_last_of_a_stream(stage: Stage, count: int) -> None:
    stream = iter(stage.shared.adapter.stream(repeated(count, parameters={"error": "NotFoundError"}, id="7")))

    assert [next(stream).id for _ in range(count)] == ["7"] * count
    with pytest.raises(RefusedError) as caught:
        next(stream)
    assert caught.value.message == "[request id: 7] it is wrong"


@STREAMS.behaviour
def a_slow_reader_lets_its_model_wait_and_no_one_else(stage: Stage) -> None:
    with stage.serving() as served:
        answers = iter(served.adapter.stream(repeated(500, 64_000)))
        next(answers)
        assert served.backend.stuck.wait(PATIENCE)

        assert served.backend.sent * 64_000 < MOST_UNDERWAY
        assert served.adapter.live()
        assert sum(1 for _ in answers) == 499


@STREAMS.cases({"reading": (1,), "while its model waits": (64_000,)})
def a_reader_that_leaves_takes_its_request_back(stage: Stage, size: int) -> None:
    with stage.serving() as served:
        stream = served.adapter.stream(repeated(2**30, size))
        answers = iter(stream)
        next(answers)
        if size > 1:
            assert served.backend.stuck.wait(PATIENCE)

        stream.close()
        answers.close()

        assert served.backend.cancelled.wait(PATIENCE)


@STREAMS.behaviour
def a_client_that_leaves_takes_its_request_back_while_it_executes(stage: Stage) -> None:
    with stage.serving() as served:
        pending = served.adapter.begin(Call("sayer", [X], parameters={"patient": True}))
        assert served.backend.waits.wait(PATIENCE)

        pending.cancel()

        assert served.backend.cancelled.wait(PATIENCE)
        assert served.adapter.infer(Call("sayer", [X])).model == "sayer"


@STREAMS.behaviour
def a_client_that_gives_up_takes_its_request_back(stage: Stage) -> None:
    with stage.serving() as served:
        with pytest.raises(RefusedError):
            served.adapter.infer(Call("sayer", [X], parameters={"patient": True}, limit=0.2))

        assert served.backend.cancelled.wait(PATIENCE)
        assert served.adapter.infer(Call("sayer", [X])).model == "sayer"
