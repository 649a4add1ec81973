"""Values, tensors, batches and errors come out of a message as they went in."""

import struct
from typing import Any

import numpy as np
import pytest

from naiad.batch import Batch, Reply, Reschedule
from naiad.errors import ConfigError, ModelFailedError, NaiadError, NotFoundError, Problem, QueueFullError
from naiad.types import Request
from naiad_process_workers.arenas import SMALLEST_ARENA
from naiad_process_workers.bodies import BodyArenas
from naiad_process_workers.codec import Decoder, Encoder
from naiad_process_workers.connection import Connection
from naiad_process_workers.frames import LinkBrokenError
from naiad_process_workers.messages import (
    answer_in,
    batch_in,
    encoded_answer,
    put_answer,
    put_batch,
    put_reply,
    reply_in,
)
from naiad_process_workers.remote_errors import error_in, put_error
from naiad_tensors.datatypes import TENSOR_TYPES
from naiad_tensors.laid_out import Field, InputLayout, LaidOutInputs
from naiad_tensors.tensors import Tensor

from .pair import connected, is_free

VALUES = [None, True, False, 0, -(2**63), 2**64 - 1, 1.5, "", "é\udc80", b"\0", [1, ["x"], {}], {"a": {"b": [None]}}]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_come_out_as_they_went_in(value: object) -> None:
    with connected() as (here, there):
        encoder = Encoder(here)
        encoder.value(value)

        assert Decoder(encoder.body(), there.memory.read).value() == value


@pytest.mark.parametrize("datatype", TENSOR_TYPES)
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3), (40, 300)], ids=str)
def test_tensors_come_out_as_they_went_in(datatype: str, shape: tuple[int, ...]) -> None:
    kind = TENSOR_TYPES[datatype]
    count = int(np.prod(shape))
    if datatype == "BYTES":
        array = np.array([b"x" * (i % 5) for i in range(count)] + [b""], dtype=object)[:count].reshape(shape)
    else:
        array = (np.arange(count) % 100).astype(kind.dtype).reshape(shape)

    with connected() as (here, there):
        encoder = Encoder(here)
        encoder.tensors(("label", 7), {"x": Tensor("x", datatype, shape, array)})
        here.send(20, 1, encoder.body())
        (frame,) = there.receive()
        label, tensors = Decoder(frame.body, there.memory.read).tensors()
        tensor = tensors["x"]

        assert label == ("label", 7)
        assert (tensor.name, tensor.datatype, tensor.shape) == ("x", datatype, shape)
        assert tensor.array.dtype == array.dtype
        assert tensor.array.tolist() == array.tolist()
        assert tensor.array.flags.aligned


def test_strided_and_foreign_arrays_are_sent_as_they_are_seen() -> None:
    array = np.arange(20000, dtype=">f4").reshape(100, 200)[::2, ::-1]
    with connected() as (here, there):
        encoder = Encoder(here)
        encoder.outputs((), {"x": array, "small": array[0]})
        here.send(20, 1, encoder.body())
        (frame,) = there.receive()

        _, (outputs,) = Decoder(frame.body, there.memory.read).output_rows(1)

        assert outputs["x"].dtype == np.float32
        assert outputs["x"].tolist() == array.tolist()
        assert outputs["small"].tolist() == array[0].tolist()


def test_requests_keep_everything_that_a_model_may_read() -> None:
    plain = Request("m", {"x": Tensor.of("x", np.zeros(2, np.float32))})
    of_text = Request("m", {"x": Tensor.of("x", np.zeros(2, np.float32))}, correlation_id="")
    full = Request(
        "m",
        {"x": Tensor.of("x", np.ones(2, np.float32))},
        id="7",
        requested=("y",),
        parameters={"a": 1, "b": "c", "d": True},
        priority=2,
        timeout_microseconds=5,
        deadline=12.5,
        correlation_id="seq",
        sequence_start=True,
        sequence_end=True,
        version=3,
    )
    with connected() as (here, there):
        encoder = Encoder(here)
        put_batch(encoder, Batch([plain, of_text, full], [1, 1, 1]), ["y", "z"])
        batch = batch_in(Decoder(encoder.body(), there.memory.read), "m", lambda index: None, None)  # type: ignore[arg-type, return-value]

    first, empty, second = batch.requests
    assert (first.id, first.requested, dict(first.parameters), first.correlation_id) == ("", (), {}, 0)
    assert empty.correlation_id == ""
    assert second.inputs["x"].array.tolist() == [1, 1]
    for name in ("id", "requested", "parameters", "priority", "timeout_microseconds", "deadline", "correlation_id"):
        assert getattr(second, name) == getattr(full, name)
    assert second.sequence_start
    assert second.sequence_end
    assert second.version == 3
    assert batch.wants("y")
    assert batch.wants("z")  # the first request takes all


@pytest.mark.parametrize("writable", [False, True])
def test_requests_and_replies_of_one_form_share_a_head(writable: bool) -> None:
    arrays = [np.full((1, 3), index, np.int16) for index in range(4)]
    inputs = [{"x": Tensor.of("x", array), "y": Tensor.of("y", array[0])} for array in arrays]
    requests = [Request("m", each) for each in inputs]
    requests[2].id = "7"  # which ends a group
    with connected(writable) as (here, there):
        encoder = Encoder(here)
        put_batch(encoder, Batch(requests, [1] * 4), [])
        body = encoder.body()
        batch = batch_in(Decoder(body, there.memory.read), "m", lambda index: None, None)  # type: ignore[arg-type, return-value]
        encoder = Encoder(here)
        put_answer(encoder, [*(Reply({"z": array}) for array in arrays[:3]), Reply({"z": arrays[3]}, {"a": 1})], batch)
        replies = answer_in(Decoder(encoder.body(), there.memory.read), batch)

    assert body.count(b"INT16") == 3 * 2  # the first two, the one with an id, and the last
    assert [each.id for each in batch.requests] == ["", "", "7", ""]
    for index, (request, reply) in enumerate(zip(batch.requests, replies, strict=True)):
        assert request.inputs["x"].array.tolist() == [[index] * 3]
        assert request.inputs["y"].array.tolist() == [index] * 3
        assert isinstance(reply, Reply)
        assert reply.outputs["z"].tolist() == [[index] * 3]
    if writable:
        batch.requests[0].inputs["x"].array[:] = 9
    assert batch.requests[0].inputs["x"].array.flags.writeable == writable
    assert batch.requests[1].inputs["x"].array.tolist() == [[1] * 3]


@pytest.mark.parametrize("writable", [False, True])
def test_replies_of_one_row_each_come_out_joined(writable: bool) -> None:
    batch = Batch([Request("m", {})] * 3, [1] * 3)
    arrays = [np.full((1, 2), index, np.float32) for index in range(3)]
    with connected(writable) as (here, there):
        encoder = Encoder(here)
        put_answer(encoder, [Reply({"y": array, "z": array[:, :1] + 1}) for array in arrays], batch)
        answer = answer_in(Decoder(encoder.body(), there.memory.read), batch)

    assert isinstance(answer, dict)
    assert answer["y"].tolist() == [[0, 0], [1, 1], [2, 2]]
    assert answer["z"].tolist() == [[1], [2], [3]]


@pytest.mark.parametrize(
    ("sizes", "shape"),
    [pytest.param((1, 2), (1, 2), id="a reply too many"), pytest.param((1, 1, 1), (2, 2), id="two rows each")],
)
def test_replies_that_are_not_one_row_of_each_request_are_not_joined(
    sizes: tuple[int, ...], shape: tuple[int, ...]
) -> None:
    batch = Batch([Request("m", {})] * len(sizes), sizes)
    with connected() as (here, there):
        encoder = Encoder(here)
        put_answer(encoder, [Reply({"y": np.zeros(shape)}) for _ in range(3)], batch)
        answer = answer_in(Decoder(encoder.body(), there.memory.read), batch)

    assert isinstance(answer, list)
    assert [each.outputs["y"].shape for each in answer] == [shape] * 3  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("kinds", "gap"),
    [
        pytest.param((("a", "FP32", (1, 3)), ("b", "INT64", (1, 1)), ("c", "UINT8", (1, 4))), 0, id="with padding"),
        pytest.param((("a", "FP32", (1, 4)), ("b", "INT64", (1, 2)), ("c", "UINT8", (1, 5))), 0, id="without"),
        pytest.param((("a", "FP32", (1, 4)), ("b", "INT64", (1, 2)), ("c", "UINT8", (1, 16))), 0, id="in one piece"),
        pytest.param((("a", "FP32", (1, 4)), ("b", "INT64", (1, 2)), ("c", "UINT8", (1, 16))), 7, id="with gaps"),
    ],
)
def test_inputs_over_received_bytes_are_written_as_tensors_are(
    kinds: tuple[tuple[str, str, tuple[int, int]], ...], gap: int
) -> None:
    fields, content = [], bytes(3)
    for name, datatype, shape in kinds:
        content += bytes(gap)
        array = np.arange(1, shape[1] + 1).astype(TENSOR_TYPES[datatype].dtype)
        fields.append(Field(name, datatype, shape, array.dtype, len(content) - 3, array.nbytes))
        content += array.tobytes()
    inputs = LaidOutInputs(InputLayout(fields), content, 3)
    bodies = []
    with connected() as (here, there):
        for each in (inputs, dict(inputs)):
            encoder = Encoder(here)
            put_batch(encoder, Batch([Request("m", each)] * 2, [1, 1]), [])
            bodies.append(encoder.body())
        batch = batch_in(Decoder(bodies[0], there.memory.read), "m", lambda index: None, None)  # type: ignore[arg-type, return-value]

    assert bodies[0] == bodies[1]
    assert batch.requests[1].inputs["a"].array.tolist() == inputs["a"].array.tolist()


@pytest.mark.parametrize(("claimed", "shape"), [(0, (3,)), (3, (3,)), (2**63, (0,)), (2, ())], ids=str)
def test_rows_that_cannot_be_there_are_noticed(claimed: int, shape: tuple[int, ...]) -> None:
    with connected() as (here, there):
        encoder = Encoder(here)
        encoder.outputs((), {"x": np.zeros(shape, np.int16)})
        body = encoder.body()
        one = struct.pack("<Q8x", 1)
        assert body.count(one) == 1

        with pytest.raises(LinkBrokenError):
            Decoder(body.replace(one, struct.pack("<Q8x", claimed)), there.memory.read).output_rows(3)


def test_outputs_that_no_request_takes_are_not_wanted() -> None:
    request = Request("m", {}, requested=("y",))
    with connected() as (here, there):
        encoder = Encoder(here)
        put_batch(encoder, Batch([request], [1]), ["y", "z"])
        batch = batch_in(Decoder(encoder.body(), there.memory.read), "m", lambda index: None, None)  # type: ignore[arg-type, return-value]

    assert batch.wants("y")
    assert not batch.wants("z")


def test_answers_come_out_as_they_went_in() -> None:
    batch = Batch([Request("m", {})] * 4, [1] * 4)
    array = np.arange(3)
    answer = [Reply({"y": array}, {"a": 1}), NotFoundError("no"), None, Reschedule({"s": array})]
    with connected() as (here, there):
        encoder = Encoder(here)
        put_answer(encoder, answer, batch)
        reply, error, none, again = answer_in(Decoder(encoder.body(), there.memory.read), batch)

        assert isinstance(reply, Reply)
        assert reply.outputs["y"].tolist() == [0, 1, 2]
        assert reply.parameters == {"a": 1}
        assert isinstance(error, NotFoundError)
        assert none is None
        assert isinstance(again, Reschedule)
        assert again.outputs["s"].tolist() == [0, 1, 2]


ERRORS = [NotFoundError("no"), QueueFullError("full", 2.0), ModelFailedError("x"), ConfigError([Problem("p", "path")])]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_errors_keep_their_class_and_words(error: NaiadError) -> None:
    with connected() as (here, there):
        encoder = Encoder(here)
        put_error(encoder, error)
        received = error_in(Decoder(encoder.body(), there.memory.read))

    assert type(received) is type(error)
    assert str(received) == str(error)
    assert getattr(received, "retry_after", None) == getattr(error, "retry_after", None)
    assert getattr(received, "problems", None) == getattr(error, "problems", None)


def test_an_exception_of_a_model_keeps_its_name_words_and_traceback() -> None:
    class OddError(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    with connected() as (here, there):
        received = []
        for error in (ValueError("bad"), OddError(), ValueError("worse")):
            encoder = Encoder(here)
            put_error(encoder, error, "the traceback")
            received.append(error_in(Decoder(encoder.body(), there.memory.read)))

    assert [type(each).__name__ for each in received] == ["ValueError", "OddError", "ValueError"]
    assert [str(each) for each in received] == ["bad", "", "worse"]
    assert type(received[0]) is type(received[2])
    assert "the traceback" in str(received[0].__cause__)


def test_what_is_no_reply_is_refused_where_it_is_made() -> None:
    with connected() as (here, _), pytest.raises(ModelFailedError, match="int"):
        put_reply(Encoder(here), 7)


def a_message_goes_and_comes(here: Connection, there: Connection) -> None:
    for sender, receiver in ((here, there), (there, here)):
        sender.send(40)
        receiver.receive()


def test_what_a_reply_has_taken_is_given_back_when_it_cannot_be_sent() -> None:
    large = np.zeros(100_000, np.float32)
    with connected() as (here, there):
        for _ in range(20):
            with pytest.raises(ModelFailedError, match="UnicodeEncodeError"):
                put_reply(Encoder(here), Reply({"y": large, "z": np.array(["\udc80"], object)}))
            with pytest.raises(ModelFailedError, match="parameter"):
                put_reply(Encoder(here), Reply({"y": large}, {"n": 2**64}))
            a_message_goes_and_comes(here, there)
            assert is_free(here.memory.own, here)

        assert here.memory.own.size == SMALLEST_ARENA


class NoText:
    """It cannot be made a string."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(Reply({"y": np.zeros(3000)}, {"n": 2**64}), id="a parameter"),
        pytest.param(Reply({"y": np.array(["\ud800"], object)}), id="a lone surrogate"),
        pytest.param(Reply({"y": [[1], [2, 3]]}), id="lists of several lengths"),  # type: ignore[dict-item]
        pytest.param(Reply({"y": np.array([NoText()], object)}), id="an object without text"),
        pytest.param(7, id="no reply"),
    ],
)
@pytest.mark.parametrize("size", [2, 3000])
def test_replies_around_one_that_cannot_be_sent_come_out_as_they_went_in(size: int, bad: Any) -> None:
    batch = Batch([Request("m", {})] * 5, [1] * 5)
    arrays = [np.full((1, size), index, np.float32) for index in range(5)]
    answer: list[Any] = [Reply({"y": array}) for array in arrays]
    answer[2] = bad
    with connected() as (here, there):
        here.send(40, 0, encoded_answer(here, answer, batch).body())
        (frame,) = there.receive()
        replies = answer_in(Decoder(frame.body, there.memory.read), batch)

        assert isinstance(replies[2], ModelFailedError)
        for index in (0, 1, 3, 4):
            assert replies[index].outputs["y"].tolist() == arrays[index].tolist()
        replies = None
        a_message_goes_and_comes(there, here)
        a_message_goes_and_comes(there, here)
        assert is_free(here.memory.own, here)


def test_a_body_that_was_lent_is_given_back_when_its_request_cannot_be_sent() -> None:
    with connected() as (here, there):
        bodies = here.memory.bodies = BodyArenas()
        body = bodies.reserve(100_000)
        assert body is not None
        inputs = {"x": Tensor.of("x", np.frombuffer(body, np.uint8))}

        with pytest.raises(struct.error):
            put_batch(Encoder(here), Batch([Request("m", inputs, parameters={"n": 2**64})], [1]), [])

        assert here.memory.lent
        a_message_goes_and_comes(here, there)
        assert not here.memory.lent


def test_every_cut_of_a_message_is_noticed() -> None:
    with connected() as (here, there):
        encoder = Encoder(here)
        put_reply(encoder, Reply({"y": np.arange(3), "s": np.array([b"ab"], dtype=object)}, {"a": "b"}))
        body = encoder.body()

        for stop in range(len(body)):
            try:
                reply_in(Decoder(body[:stop], there.memory.read))
            except LinkBrokenError:
                continue
            assert stop > len(body) - 16  # only the padding may go
