"""Which parameters ask for an explanation, and what a frontend adds to one."""

import json

import pytest

from naiad.extend import requests_stage
from naiad.types import Response
from naiad_kit.explaining import add_encoding, as_text, asks


@pytest.mark.parametrize("value", [True, 1, "1", "true", "True", "TRUE"])
def test_true_asks(value: object) -> None:
    assert requests_stage(value)
    assert asks({"naiad_explain": value})  # type: ignore[dict-item]


@pytest.mark.parametrize("value", [False, 0, 2, "", "0", "yes please", None])
def test_all_else_does_not(value: object) -> None:
    assert not requests_stage(value)


def test_no_parameters_ask_for_nothing() -> None:
    assert not asks({})


def test_the_encoding_comes_after_the_answer() -> None:
    response = Response("m", 1, "", {}, {"naiad_explain": as_text({"answered": 10.5}), "other": 1})

    add_encoding(response, 2e-6)

    assert json.loads(str(response.parameters["naiad_explain"])) == {"answered": 10.5, "encoded": 12.5}
    assert response.parameters["other"] == 1


@pytest.mark.parametrize(
    "parameters", [{}, {"naiad_explain": "because"}, {"naiad_explain": 7}, {"naiad_explain": "{}"}]
)
def test_a_parameter_of_the_models_own_stays_as_it_is(parameters: dict[str, str | int]) -> None:
    response = Response("m", 1, "", {}, dict(parameters))

    add_encoding(response, 1.0)

    assert response.parameters == parameters
