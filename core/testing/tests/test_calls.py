"""The fake of a server's other models, and the calls of a model that no server has loaded."""

import numpy as np
import pytest

from naiad.errors import NotFoundError, UnsupportedError
from naiad.types import Request, Response
from naiad_kit.calls import ModelCalls, NoModels
from naiad_tensors.tensors import Tensor
from naiad_testing.calls import FakeModels


def double(request: Request) -> Response:
    """OUTPUT is twice INPUT."""
    return Response("double", 1, request.id, {"OUTPUT": Tensor.of("OUTPUT", request.inputs["INPUT"].array * 2)})


def request(model: str, value: float = 1.0) -> Request:
    return Request(model, {"INPUT": Tensor.of("INPUT", np.array([value]))})


def test_a_fake_model_answers_and_tells_what_it_was_asked() -> None:
    models = FakeModels(double=double)
    outer = request("caller")

    answer = models.within([outer]).infer(request("double", 4))

    assert answer.outputs["OUTPUT"].array.tolist() == [8]
    assert [each.model_name for each in models.requests] == ["double"]
    assert models.outer == [[outer]]


def test_a_call_of_a_fake_model_that_is_not_there_is_an_error() -> None:
    with pytest.raises(NotFoundError, match="'nobody' is not found"):
        FakeModels().infer(request("nobody"))


def test_a_begun_call_of_a_fake_model_has_its_error_in_the_future() -> None:
    assert isinstance(FakeModels().begin(request("nobody")).exception(), NotFoundError)


def test_the_responses_of_a_fake_model_come_one_by_one_with_the_empty_last_one() -> None:
    last = Response("count", 1, "", {})
    models = FakeModels(count=lambda requests: [double(requests), double(requests), last])

    responses = models.stream(request("count"))

    first, second, empty = responses
    assert [response.outputs["OUTPUT"].array.tolist() for response in (first, second)] == [[2], [2]]
    assert not empty.outputs
    assert responses.begin_next().result() is None


def test_a_fake_model_that_is_decoupled_cannot_be_asked_for_one_response() -> None:
    with pytest.raises(UnsupportedError, match="'count' is decoupled"):
        FakeModels(count=lambda requests: [double(requests)]).infer(request("count"))


def test_loads_and_unloads_are_recorded() -> None:
    models = FakeModels(double=double)

    models.load("double")
    models.unload("double")

    assert (models.events, models.ready("double")) == (["load double", "unload double"], False)


@pytest.mark.parametrize("ask", ["infer", "begin", "stream"])
def test_a_model_that_no_server_has_loaded_makes_no_calls(ask: str) -> None:
    models: ModelCalls = NoModels()

    with pytest.raises(UnsupportedError, match="no server has loaded cannot call model 'm'"):
        getattr(models.within([]), ask)(request("m"))


@pytest.mark.parametrize("ask", ["ready", "load", "unload"])
def test_a_model_that_no_server_has_loaded_controls_no_models(ask: str) -> None:
    with pytest.raises(UnsupportedError, match="model 'm'"):
        getattr(NoModels(), ask)("m")
