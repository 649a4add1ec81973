"""Sequences that a client gets wrong, leaves, or forgets: what it is told, and what the model is told."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tritonclient.utils import InferenceServerException

from ..clients.driving import Driven
from ..gates import Gate
from ..running import Running, Wire, post, until
from . import sources
from .sources import STRATEGIES

Start = Callable[..., Running]


def x(client: Driven, *rows: float) -> list[Any]:
    return [client.tensor("x", np.array([rows], np.float32).reshape(-1, 1))]


def refused(client: Driven, model: str, *rows: float, **parameters: Any) -> InferenceServerException:
    """The error of a request that must be refused as the client's own mistake."""
    with pytest.raises(InferenceServerException) as caught:
        client.infer(model, x(client, *rows), **parameters)
    assert caught.value.status() == ("400" if client.is_web else "StatusCode.INVALID_ARGUMENT")
    return caught.value


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_first_request_must_say_that_it_is_the_first(client: Driven, strategy: str) -> None:
    told = refused(client, f"native_{strategy}", 1, sequence_id=77)

    assert "must specify the START flag on the first request of the sequence" in told.message()
    assert f"sequence 77 to model 'native_{strategy}'" in told.message()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_comes_after_the_end_must_start_again(client: Driven, strategy: str) -> None:
    model = f"native_{strategy}"
    client.infer(model, x(client, 1), sequence_id=78, sequence_start=True, sequence_end=True)

    assert "START flag" in refused(client, model, 1, sequence_id=78).message()
    assert "START flag" in refused(client, model, 1, sequence_id=78, sequence_end=True).message()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_request_must_name_its_sequence(client: Driven, strategy: str) -> None:
    told = refused(client, f"native_{strategy}", 1)

    assert "must specify a non-zero or non-empty correlation ID" in told.message()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_request_of_a_sequence_has_a_batch_size_of_one(client: Driven, strategy: str) -> None:
    told = refused(client, f"native_{strategy}", 1, 2, sequence_id=79, sequence_start=True)

    assert "must specify batch-size 1 due to requirements of sequence batcher" in told.message()


@pytest.mark.parametrize("name", ["READY", "STATE"])
def test_a_client_may_not_send_what_the_server_fills_in(client: Driven, name: str) -> None:
    model = "triton_direct" if name == "READY" else "onnx_direct"
    more = client.tensor(name, np.zeros((1, 1), np.bool_ if name == "READY" else np.float32), _KIND[name])
    place = {"sequence_id": 80, "sequence_start": True, "sequence_end": True}

    with pytest.raises(InferenceServerException, match=f"unexpected inference input '{name}'"):
        client.infer(model, [*x(client, 1), more], **place)


_KIND = {"READY": "BOOL", "STATE": "FP32"}


def test_a_sequence_that_says_nothing_is_forgotten_and_the_model_is_told(client: Driven, told: Path) -> None:
    client.infer("short", x(client, 1), sequence_id=81, sequence_start=True)

    until(lambda: (told / "81 idle").exists())

    assert "START flag" in refused(client, "short", 1, sequence_id=81).message()


def test_a_sequence_that_finds_no_slot_in_time_is_refused_for_now(client: Driven) -> None:
    for name in range(90, 94):  # all slots of the only instance
        client.infer("native_direct", x(client, 1), sequence_id=name, sequence_start=True)

    with pytest.raises(
        InferenceServerException, match="timeout of the corresponding sequence has been expired"
    ) as late:
        client.infer("native_direct", x(client, 1), sequence_id=95, sequence_start=True, timeout=10_000)

    assert late.value.status() == ("503" if client.is_web else "StatusCode.UNAVAILABLE")
    for name in range(90, 94):
        client.infer("native_direct", x(client, 1), sequence_id=name, sequence_end=True, timeout=1)
    assert "START flag" in refused(client, "native_direct", 1, sequence_id=95).message()


def test_the_model_is_told_when_a_sequence_ends(client: Driven, told: Path) -> None:
    client.infer("short", x(client, 1), sequence_id="the last", sequence_start=True, sequence_end=True)

    assert until(lambda: [path.name for path in told.iterdir()]) == ["the last end"]


def test_the_statistics_count_what_was_answered_and_what_was_refused(make_client: Callable[..., Driven]) -> None:
    client = make_client("http")
    before = _counts(client)

    client.infer("onnx_oldest", x(client, 1), sequence_id=82, sequence_start=True)
    client.infer("onnx_oldest", x(client, 1), sequence_id=82, sequence_end=True)
    refused(client, "onnx_oldest", 1, sequence_id=82)

    assert [after - earlier for earlier, after in zip(before, _counts(client), strict=True)] == [2, 2, 1]


def _counts(client: Driven) -> list[int]:
    (counted,) = client.get_inference_statistics("onnx_oldest")["model_stats"]
    failed = counted["inference_stats"]["fail"]["count"]
    return [counted["inference_count"], counted["inference_stats"]["success"]["count"], failed]


@pytest.fixture
def waiting(repository: Path, start: Start, gate: Gate) -> Running:
    """A server of the model `waits`, which waits at the gate, and tells in the folder `told` beside the models."""
    (repository.parent / "told").mkdir()
    sources.write_waiting(repository, repository.parent / "told", gate)
    return start("--model-control-mode=explicit", "--load-model=*")


def _asks(sequence: int | str, **flags: bool) -> bytes:
    given = {"name": "x", "datatype": "FP32", "shape": [1, 1], "data": [1]}
    return post("/v2/models/waits/infer", {"inputs": [given], "parameters": {"sequence_id": sequence, **flags}})


def _status(wire: Wire) -> int:
    answer = wire.answer()
    assert answer is not None
    return answer.status


def test_a_client_that_leaves_ends_its_sequence(waiting: Running, gate: Gate) -> None:
    told = waiting.repository.parent / "told"
    with waiting.connected() as first, waiting.connected() as third:
        first.send(_asks(5, sequence_start=True))
        gate.wait_until_entered()
        with waiting.connected() as second:
            second.send(_asks(5))
            waiting.read_all()
            third.send(_asks(5))
            waiting.read_all()
        until(lambda: _status(third) == 499)
        gate.open()

        assert _status(first) == 200
        until(lambda: (told / "5 cancelled").exists())
        third.send(_asks(5))
        answer = third.answer()
        assert answer is not None
        assert (answer.status, "START flag" in answer.error) == (400, True)


def test_what_a_sequence_is_told_is_no_secret(client: Driven) -> None:
    config = client.get_model_config("onnx_direct")
    batching = (config if client.is_web else config["config"])["sequence_batching"]

    assert "direct" in batching
    assert json.dumps(batching["state"]).count("STATE") == 2
