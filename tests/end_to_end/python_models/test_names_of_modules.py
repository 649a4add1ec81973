"""Modules of a model by the names that other code has for them: pickle, unittest.mock and multiprocessing."""

from dataclasses import dataclass
from pathlib import Path

import pytest
import tritonclient.grpc
import tritonclient.http

from .. import models
from .conftest import Ask

_SOURCE = """
import concurrent.futures
import importlib
import multiprocessing
import pickle
from dataclasses import dataclass
from unittest import mock

import numpy as np
import parts
import triton_python_backend_utils as pb_utils

FACTOR = {factor}


@dataclass
class Number:
    value: "int"


def times(number):
    return Number(FACTOR * number.value + parts.OFFSET)


def two_pools_that_fork(number):
    context = multiprocessing.get_context("fork")
    with context.Pool(2) as pool:
        assert pool.map(times, [Number(0), Number(1)]) == [times(Number(0)), times(Number(1))]
    with context.Pool(2) as pool:
        return pool.apply(times, (number,))


def a_pool_that_spawns(number):
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(times, (number,))


def an_executor_that_spawns(number):
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as executor:
        return executor.submit(times, number).result()


def pickles(number):
    assert type(pickle._loads(pickle.dumps(number))) is Number
    assert pickle._loads(b"cmodel\\ntimes\\n.") is times
    assert pickle._loads(b"cparts.deep\\nPart\\n.") is parts.deep.Part
    return pickle._loads(pickle._dumps(times))(number)


def mocks(number):
    with mock.patch("model.FACTOR", 100), mock.patch("parts.OFFSET", 7):
        assert times(Number(1)).value == 107
    with mock.patch("parts.deep.DEPTH", 5):
        assert parts.deep.DEPTH == 5
    assert parts.deep.DEPTH == 1
    return times(number)


def imports(number):
    module = importlib.import_module("model")
    assert module.Number is Number and "times" in dir(module) and isinstance(module, type(parts))
    assert importlib.import_module("parts.deep").Part is parts.deep.Part
    return module.times(number)


STEPS = [two_pools_that_fork, a_pool_that_spawns, an_executor_that_spawns, pickles, mocks, imports]


class TritonPythonModel:
    def execute(self, requests):
        return [self._answer(int(each.inputs()[0].as_numpy()[0])) for each in requests]

    def _answer(self, number):
        y = STEPS[number // 100](Number(number % 100)).value
        return pb_utils.InferenceResponse([pb_utils.Tensor("Y", np.array([y]))])
"""
_STEPS = ["two_pools_that_fork", "a_pool_that_spawns", "an_executor_that_spawns", "pickles", "mocks", "imports"]
_CONFIG = models.triton_config({"X": "INT64"}, {"Y": "INT64"}, "1")
_ISOLATED = _CONFIG + ' parameters { key: "isolation" value { string_value: "process" } }'


@dataclass(frozen=True)
class ModelWithParts:
    """A model that multiplies by `factor`, and adds what the package `parts` beside it has."""

    factor: int
    config: str = _CONFIG

    def write(self, repository: Path, name: str) -> None:
        """Write it into the repository."""
        parts = models.write(repository, name, _SOURCE.format(factor=self.factor), self.config) / "1" / "parts"
        parts.mkdir()
        (parts / "__init__.py").write_text(f"from . import deep\nOFFSET = {self.factor}\n")
        (parts / "deep.py").write_text("DEPTH = 1\n\n\nclass Part:\n    pass\n")


MODELS = {
    "threes": ModelWithParts(3),
    "fives": ModelWithParts(5),
    "isolated_threes": ModelWithParts(3, _ISOLATED),
    "isolated_fives": ModelWithParts(5, _ISOLATED),
}


@pytest.mark.parametrize(
    ("step", "ask"),
    [*zip(_STEPS, [tritonclient.http, tritonclient.grpc] * 3, strict=True)],
    ids=_STEPS,
    indirect=["ask"],
)
def test_each_model_has_its_modules_by_the_names_that_others_use(ask: Ask, step: str) -> None:
    answers = {name: ask(name, 100 * _STEPS.index(step) + 2) for name in MODELS}

    assert answers == {name: 3 * model.factor for name, model in MODELS.items()}
