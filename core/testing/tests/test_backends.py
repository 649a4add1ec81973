"""The conformance checks of a backend: a good one passes, and each way of being bad is reported."""

import json
import threading
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from naiad.backend import BackendTraits, Reply
from naiad.errors import InvalidArgumentError
from naiad_config import DataType, ModelInput, ModelOutput
from naiad_testing.backends import BackendCase, ContractBroken, check_backend, check_imports_no_framework


class Doubling:
    """A good backend: model.json says by how much to multiply."""

    traits = BackendTraits(name="doubling", files={"model.json": ""})

    def complete(self, context):
        self.read(context)
        target = {"data_type": DataType.TYPE_FP32, "dims": (2,)}
        sent = context.config
        return replace(
            sent,
            max_batch_size=sent.max_batch_size or 4,
            input=sent.input or (ModelInput(name="X", **target),),
            output=sent.output or (ModelOutput(name="Y", **target),),
        )

    def load(self, context):
        return Model(self.read(context), self.instance)

    def read(self, context):
        path = context.model_path("model.json")
        try:
            return json.loads(path.read_text(encoding="utf-8"))["factor"]
        except (OSError, ValueError) as error:
            raise InvalidArgumentError(f"{path} cannot be read: {error}") from error

    def instance(self, factor):
        return Instance(factor)


class Model:
    def __init__(self, factor: float, make: Callable) -> None:
        self.factor = factor
        self.make = make

    def instantiate(self, placement):
        return self.make(self.factor)

    def close(self):
        pass


class Instance:
    def __init__(self, factor: float) -> None:
        self.factor = factor

    def execute(self, batch):
        return {"Y": batch.input("X") * np.float32(self.factor)}

    def close(self):
        pass


@pytest.fixture
def case(tmp_path: Path) -> BackendCase:
    (tmp_path / "m" / "1").mkdir(parents=True)
    (tmp_path / "m" / "1" / "model.json").write_text('{"factor": 2}')
    return BackendCase(
        tmp_path / "m",
        requests=[{"X": [[1, 2]]}, {"X": [[3, 4], [5, 6]]}, {"X": [[7, 8]]}],
        expected=[{"Y": [[2, 4]]}, {"Y": [[6, 8], [10, 12]]}, {"Y": [[14, 16]]}],
    )


def test_a_good_backend_passes(case):
    check_backend(Doubling(), case)


def test_an_answer_that_is_not_expected_breaks_the_contract(case):
    with pytest.raises(ContractBroken, match=r"request 0 alone: output 'Y' is .* expected"):
        check_backend(Doubling(), replace(case, expected=[{"Y": [[1, 1]]}, *case.expected[1:]]))


class Twice(Instance):
    def execute(self, batch):
        for index, request in enumerate(batch.requests):
            for _ in range(2):
                batch.sender(index).send(Reply({"Y": request.inputs["X"].array * np.float32(self.factor)}))
            batch.sender(index).send(None, final=True)
        return [None] * len(batch.requests)


def test_the_responses_of_a_model_that_streams_are_compared_one_by_one(case):
    backend = Doubling()
    backend.instance = Twice
    (case.model_directory / "config.pbtxt").write_text("model_transaction_policy { decoupled: true }")
    twice = replace(case, expected=[[each, each] for each in case.expected])

    check_backend(backend, twice)
    with pytest.raises(ContractBroken, match="request 0 alone: there are 2 responses, expected 1"):
        check_backend(backend, case)
    with pytest.raises(ContractBroken, match="request 0 alone, response 1: output 'Y' is"):
        check_backend(backend, replace(twice, expected=[[case.expected[0], case.expected[2]], *twice.expected[1:]]))


class OnlyTheFirst(Instance):
    def execute(self, batch):
        first = batch.requests[0].inputs["X"].array
        joined = batch.input("X")
        return {"Y": np.resize(first * np.float32(self.factor), joined.shape)}


class Writing(Instance):
    def execute(self, batch):
        array = batch.requests[0].inputs["X"].array
        array *= 2
        return {"Y": array}


class Alone(Instance):
    numbers, both = count(), threading.Barrier(2, timeout=10)

    def execute(self, batch):
        if next(self.numbers) >= 4:  # behind three requests alone and one batch of them
            self.both.wait()
            raise RuntimeError("another instance executes")
        return super().execute(batch)


class Unready(Instance):
    def ready(self):
        return "never"


@pytest.mark.parametrize(
    ("kind", "error", "message"),
    [
        (OnlyTheFirst, ContractBroken, "request 1 in a batch"),
        (Writing, ValueError, "read-only"),
        (Alone, RuntimeError, "another instance executes"),
        (Unready, ContractBroken, "says it is not ready: 'never'"),
    ],
)
def test_an_instance_that_breaks_the_contract_is_refused(case, kind, error, message):
    backend = Doubling()
    backend.instance = kind

    with pytest.raises(error, match=message):
        check_backend(backend, case)


class Careless(Doubling):
    def read(self, context):
        return json.loads(context.model_path("model.json").read_text(encoding="latin-1"))["factor"]


class Blind(Doubling):
    def read(self, context):
        return 2


class Restless(Doubling):
    def complete(self, context):
        return replace(super().complete(context), max_batch_size=context.config.max_batch_size + 4)


class Empty(Doubling):
    def complete(self, context):
        return context.config


@pytest.mark.parametrize(
    ("backend", "message"),
    [
        (Careless(), "a model file that is missing raises FileNotFoundError; raise a NaiadError"),
        (Blind(), "a model file that is missing loads as if nothing were wrong"),
        (Restless(), "completing a configuration that is complete changes it"),
        (Empty(), "no inputs"),
        (object(), "is no backend: it needs traits with a name"),
    ],
)
def test_a_backend_that_breaks_the_contract_is_refused(case, backend, message):
    with pytest.raises(ContractBroken, match=message):
        check_backend(backend, case)


def test_a_plugin_that_imports_its_framework_is_refused(tmp_path, monkeypatch):
    (tmp_path / "heavy.py").write_text("import sqlite3")
    (tmp_path / "light.py").write_text("def naiad_backends():\n    return []\n")
    monkeypatch.syspath_prepend(tmp_path)

    check_imports_no_framework("light", "sqlite3")
    with pytest.raises(ContractBroken, match="importing 'heavy' imports sqlite3; import it where you load a model"):
        check_imports_no_framework("heavy", "sqlite3")
    with pytest.raises(ContractBroken, match="importing 'nowhere' failed"):
        check_imports_no_framework("nowhere")
