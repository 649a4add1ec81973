"""What a request to an ensemble does next: which steps start, with what, and when the client is answered."""

import pytest

from naiad_scheduler_ensemble.moves import SequenceFlags

from .conftest import Compose, model
from .runs import Named, answer, started, texts_of, values

ADD = model("a b", "y")
ONE = model("x", "y")
STREAM = model("x", "y", name="stream", decoupled=True)
TWO = model("x", "y z", name="two")


def test_a_step_starts_when_all_it_reads_is_there(compose: Compose) -> None:
    ensemble = compose("A", "D", (ADD, "a=B b=C", "y=D"), (ONE, "x=A", "y=B"), (ONE, "x=A", "y=C"))
    run = ensemble.run(values("A"), ())

    first = run.begin()
    second = answer(run, first.starts[0], "y")
    third = answer(run, first.starts[1], "y")
    last = answer(run, third.starts[0], "y")

    assert started(first) == [1, 2]
    assert (second.starts, second.responses) == ([], [])
    assert texts_of(third.starts[0].inputs) == {"a": "1.y", "b": "2.y"}
    (response,) = last.responses
    assert (texts_of(response.outputs), response.final) == ({"D": "0.y"}, True)


def test_steps_that_only_lead_to_outputs_that_were_not_requested_are_not_run(compose: Compose) -> None:
    ensemble = compose("A", "C D", (ONE, "x=A", "y=B"), (ONE, "x=B", "y=C"), (ONE, "x=A", "y=D"))
    run = ensemble.run(values("A"), ("D",))

    first = run.begin()
    last = answer(run, first.starts[0], "y")

    assert started(first) == [2]
    assert texts_of(last.responses[0].outputs) == {"D": "2.y"}


def test_only_outputs_that_somebody_reads_are_requested_of_a_step(compose: Compose) -> None:
    ensemble = compose("A", "B", (TWO, "x=A", "y=B"))

    (start,) = ensemble.run(values("A"), ()).begin().starts

    assert start.requested == ("y",)


def test_all_outputs_of_a_step_that_are_read_are_requested_without_naming_them(compose: Compose) -> None:
    ensemble = compose("A", "B C", (TWO, "x=A", "y=B z=C"))

    (start,) = ensemble.run(values("A"), ()).begin().starts

    assert start.requested == ()


def test_an_output_that_was_not_produced_is_an_absent_optional_input(compose: Compose) -> None:
    optional = model("a b?", "y", name="optional")
    ensemble = compose("A", "D", (TWO, "x=A", "y=B z=C"), (optional, "a=B b=C", "y=D"))
    run = ensemble.run(values("A"), ())

    first = run.begin()
    second = answer(run, first.starts[0], "y")

    assert texts_of(second.starts[0].inputs) == {"a": "0.y"}


def test_an_output_that_was_not_produced_and_cannot_be_missed_fails_the_request(compose: Compose) -> None:
    ensemble = compose("A", "D", (TWO, "x=A", "y=B z=C"), (ADD, "a=B b=C", "y=D"))
    run = ensemble.run(values("A"), ())

    moves = answer(run, run.begin().starts[0], "y")

    assert moves.starts == []
    assert moves.failure == (
        "unexpected deadlock, at least one output is not set while no more ensemble steps can be made: "
        "step 1 needs 'C' for its input 'b', and it was not produced"
    )


@pytest.mark.parametrize("requested", [(), ("C", "B")], ids=["all", "by name"])
def test_an_output_that_no_step_produced_is_left_out(compose: Compose, requested: tuple[str, ...]) -> None:
    ensemble = compose("A", "B C", (TWO, "x=A", "y=B z=C"))
    run = ensemble.run(values("A"), requested)

    (response,) = answer(run, run.begin().starts[0], "z").responses

    assert texts_of(response.outputs) == {"C": "0.z"}


def test_a_step_whose_inputs_are_all_optional_runs_without_any(compose: Compose) -> None:
    ensemble = compose("A?", "B", (model("x?", "y", name="maybe"), "x=A", "y=B"))

    (start,) = ensemble.run({}, ()).begin().starts

    assert start.inputs == {}


def test_a_response_may_have_no_output_at_all(compose: Compose) -> None:
    ensemble = compose("A", "B C", (TWO, "x=A", "y=B z=C"))
    run = ensemble.run(values("A"), ())

    (response,) = answer(run, run.begin().starts[0]).responses

    assert (response.outputs, response.final) == ({}, True)


def test_an_optional_input_that_the_client_left_out_is_left_out_for_the_step(compose: Compose) -> None:
    optional = model("a b?", "y", name="optional")
    ensemble = compose("A B?", "D", (optional, "a=A b=B", "y=D"))

    (start,) = ensemble.run(values("A"), ()).begin().starts

    assert texts_of(start.inputs) == {"a": "A"}


def test_each_response_of_a_decoupled_step_runs_what_follows_once(compose: Compose) -> None:
    ensemble = compose("A", "C", (STREAM, "x=A", "y=B"), (ADD, "a=B b=A", "y=C"))
    run = ensemble.run(values("A"), ())
    (stream,) = run.begin().starts

    first = answer(run, stream, "y", final=False)
    second = answer(run, stream, "y", final=False)
    ended = answer(run, stream)
    one = answer(run, first.starts[0], "y")
    two = answer(run, second.starts[0], "y")

    assert ensemble.decoupled
    assert texts_of(first.starts[0].inputs) == {"a": "0.y", "b": "A"}
    assert started(second) == [1]
    assert (ended.starts, ended.responses) == ([], [])
    assert [response.final for response in (*one.responses, *two.responses)] == [False, True]


def test_responses_keep_the_order_of_the_decoupled_steps(compose: Compose) -> None:
    ensemble = compose("A", "C", (STREAM, "x=A", "y=B"), (ONE, "x=B", "y=C"))
    run = ensemble.run(values("A"), ())
    (stream,) = run.begin().starts
    first, second = (answer(run, stream, "y", final=False).starts[0] for _ in range(2))

    overtaking = run.answered(second, {"y": Named("second")}, final=True)
    overtaken = run.answered(first, {"y": Named("first")}, final=True)

    assert overtaking.responses == []
    assert [texts_of(each.outputs)["C"] for each in overtaken.responses] == ["first", "second"]


def test_a_decoupled_step_without_a_response_ends_in_an_empty_one(compose: Compose) -> None:
    ensemble = compose("A", "C", (STREAM, "x=A", "y=B"), (ONE, "x=B", "y=C"))
    run = ensemble.run(values("A"), ())

    moves = answer(run, run.begin().starts[0])

    assert started(moves) == []
    (response,) = moves.responses
    assert (response.outputs, response.final) == ({}, True)


@pytest.mark.parametrize(("needs", "failed"), [("x", True), ("x?", False)], ids=["required", "optional"])
def test_a_response_without_outputs_runs_what_follows_a_decoupled_step_too(
    compose: Compose, needs: str, failed: bool
) -> None:
    ensemble = compose("A", "C", (STREAM, "x=A", "y=B"), (model(needs, "y", name="next"), "x=B", "y=C"))
    run = ensemble.run(values("A"), ())

    moves = answer(run, run.begin().starts[0], final=False)

    assert ("step 1 needs 'B' for its input 'x', and it was not produced" in moves.failure) is failed
    assert [start.inputs for start in moves.starts] == ([] if failed else [{}])


@pytest.mark.parametrize("explicit", [True, False], ids=["a response", "the final flag"])
def test_a_response_without_outputs_of_the_last_step_gets_to_the_client(compose: Compose, explicit: bool) -> None:
    ensemble = compose("A", "B", (STREAM, "x=A", "y=B"))
    run = ensemble.run(values("A"), ())
    (stream,) = run.begin().starts

    first = run.answered(stream, {}, final=False)
    last = run.answered(stream, {}, final=True, explicit=explicit)

    assert [(each.outputs, each.final, each.explicit) for each in first.responses] == [({}, False, True)]
    assert [(each.outputs, each.final, each.explicit) for each in last.responses] == [({}, True, explicit)]


def test_what_happens_once_is_part_of_every_response_of_a_decoupled_ensemble(compose: Compose) -> None:
    ensemble = compose("A", "B C", (STREAM, "x=A", "y=B"), (ONE, "x=A", "y=C"))
    run = ensemble.run(values("A"), ())
    stream, once = run.begin().starts

    early = answer(run, stream, "y", final=False)
    answered = answer(run, once, "y")
    late = answer(run, stream, "y", final=True)

    assert early.responses == []
    assert [texts_of(each.outputs) for each in answered.responses] == [{"B": "0.y", "C": "1.y"}]
    assert [(texts_of(each.outputs), each.final) for each in late.responses] == [({"B": "0.y", "C": "1.y"}, True)]


def test_decoupled_steps_behind_each_other_open_iterations_within_iterations(compose: Compose) -> None:
    ensemble = compose("A", "D", (STREAM, "x=A", "y=B"), (STREAM, "x=B", "y=C"), (ONE, "x=C", "y=D"))
    run = ensemble.run(values("A"), ())
    (outer,) = run.begin().starts

    (inner,) = answer(run, outer, "y", final=True).starts
    leaves = [answer(run, inner, "y", final=last).starts[0] for last in (False, True)]
    ends = [answer(run, leaf, "y").responses[0].final for leaf in leaves]

    assert inner.step == 1
    assert ends == [False, True]


def test_what_a_step_says_of_the_sequence_goes_on_with_its_outputs(compose: Compose) -> None:
    ensemble = compose("A", "D C", (ONE, "x=A", "y=B"), (ONE, "x=B", "y=D"), (ONE, "x=A", "y=C"))
    run = ensemble.run(values("A"), ())
    first, beside = run.begin().starts

    moves = run.answered(first, values("y"), True, SequenceFlags(correlation_id=7, end=True))

    assert first.flags is None
    assert beside.flags is None
    assert moves.starts[0].flags == SequenceFlags(correlation_id=7, end=True)


def test_a_later_step_overrides_only_what_it_says(compose: Compose) -> None:
    ensemble = compose("A", "D", (ONE, "x=A", "y=B"), (ONE, "x=B", "y=C"), (ONE, "x=C", "y=D"))
    run = ensemble.run(values("A"), ())

    (second,) = run.answered(run.begin().starts[0], values("y"), True, SequenceFlags(7, start=True)).starts
    (third,) = run.answered(second, values("y"), True, SequenceFlags(start=False)).starts

    assert third.flags == SequenceFlags(7, start=False)


@pytest.mark.parametrize(
    ("inner", "outer", "shape", "value"),
    [
        (0, 8, (1, 4), (4,)),
        (0, 8, (2, 4), (2, 4)),
        (8, 0, (4,), (1, 4)),
        (8, 0, (3, 4), (3, 4)),
        (8, 8, (3, 4), (3, 4)),
    ],
)
def test_tensors_cross_between_models_with_and_without_batches(
    compose: Compose, inner: int, outer: int, shape: tuple[int, ...], value: tuple[int, ...]
) -> None:
    producer = model("x", "y", name="producer", more=f"max_batch_size: {outer}")
    consumer = model("x", "y", name="consumer", more=f"max_batch_size: {inner}")
    ensemble = compose("A", "C", (producer, "x=A", "y=B"), (consumer, "x=B", "y=C"))
    run = ensemble.run(values("A"), ())

    (start,) = run.answered(run.begin().starts[0], {"y": Named("y", shape)}, True).starts

    assert start.shapes.get("x", shape) == value


def test_outputs_get_to_a_client_that_counts_no_batches(compose: Compose) -> None:
    batching = model("x", "y", more="max_batch_size: 8")
    ensemble = compose("A", "B", (batching, "x=A", "y=B"))
    run = ensemble.run(values("A"), ())
    (start,) = run.begin().starts

    (response,) = run.answered(start, {"y": Named("y", (1, 4))}, True).responses

    assert start.shapes == {"x": (1, 4)}
    assert response.shapes == {"B": (4,)}
