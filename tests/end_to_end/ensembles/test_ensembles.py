"""Ensembles on a running server, asked by every client of Triton's library."""

from collections.abc import Callable
from queue import Queue
from typing import Any

import numpy as np
import pytest

from ..clients.driving import Driven
from ..running import PATIENCE

X = np.arange(8, dtype=np.float32).reshape(2, 4)
SCORES = (X + 1) * 2 * np.array([1, 2, 3, 4], np.float32)


def inputs(client: Driven, x: np.ndarray = X) -> list[Any]:
    return [client.tensor("X", x)]


def test_a_request_goes_through_models_of_every_kind(client: Driven) -> None:
    result = client.infer("scoring", inputs(client))

    assert result.as_numpy("SCORES").tolist() == SCORES.tolist()
    assert result.as_numpy("MORE").tolist() == ((X + 1) * 2 + 1).tolist()


def counting(client: Driven, times: int) -> list[Any]:
    return [client.tensor("TIMES", np.array([times], np.int32), "INT32"), client.tensor("X", np.ones(4, np.float32))]


def test_a_decoupled_step_streams_through_the_steps_behind_it(make_client: Callable[..., Driven]) -> None:
    client = make_client("grpc")
    came: Queue[Any] = Queue()

    client.start_stream(lambda result, error: came.put((result, error)))
    client.async_stream_infer("counting", counting(client, 200), enable_empty_final_response=True)
    values = []
    while True:
        result, error = came.get(timeout=PATIENCE)
        assert error is None
        response = result.get_response()
        if response.outputs:
            values.append(float(result.as_numpy("Y")[0]))
        if response.parameters["triton_final_response"].bool_param:
            break
    client.stop_stream()

    assert values == [2.0 * (1 + number) for number in range(200)]


@pytest.mark.parametrize("kind", ["triton_direct", "native_oldest", "onnx_direct"])
def test_sequences_go_through_an_ensemble(client: Driven, kind: str) -> None:
    def run(sequence: int) -> list[float]:
        results = []
        for index in range(4):
            inputs = [client.tensor("X", np.array([[index + sequence]], np.float32))]
            flags = {"sequence_start": index == 0, "sequence_end": index == 3}
            result = client.infer(f"summing_{kind}", inputs, sequence_id=sequence, **flags)
            results.append(float(result.as_numpy("Y")[0, 0]))
        return results

    assert run(71) == [71, 143, 216, 290]
    assert run(72) == [72, 145, 219, 294]


def test_clients_use_the_dims_of_an_ensemble_and_its_steps_the_reshape(client: Driven) -> None:
    result = client.infer("turning", inputs(client))

    assert result.as_numpy("t").tolist() == [[0, 2, 1, 3], [4, 6, 5, 7]]
    assert result.as_numpy("Y").tolist() == X.tolist()


@pytest.mark.parametrize(("first", "produced"), [(1, ["Y"]), (-1, ["Z"]), (0, ["Y", "Z"])])
@pytest.mark.parametrize("by_name", [False, True], ids=["all", "by name"])
def test_an_output_that_no_step_produced_is_left_out(
    client: Driven, first: int, produced: list[str], by_name: bool
) -> None:
    outputs = {"outputs": [client.output(name) for name in ("Y", "Z")]} if by_name else {}

    result = client.infer("halving", inputs(client, np.full((1, 4), first, np.float32)), **outputs)

    assert [name for name in ("Y", "Z") if result.as_numpy(name) is not None] == produced


def test_an_ensemble_may_answer_without_any_output(client: Driven) -> None:
    result = client.infer("halving", inputs(client, np.ones((1, 4), np.float32)), outputs=[client.output("Z")])

    assert result.as_numpy("Z") is None
