"""The conformance suite of backends: a good backend passes every check, and a broken one fails the check for it."""

import json
from dataclasses import replace

import numpy as np
import pytest

from naiad.backend import BackendTraits, Reply
from naiad.errors import ConfigError, InvalidArgumentError, ModelFailedError, UnsupportedError
from naiad_config import DataType
from naiad_kit.backends.execution import run_or_each_alone
from naiad_kit.backends.interface import Interface, ModelTensor, NarrowInputs, completed, mismatches
from naiad_kit.backends.parameters import KnownNames, ParameterReader, default_batch_size
from naiad_testing.backend_suite import BackendSuite, SuiteModel, backend_cases
from naiad_testing.backends import ContractBroken

TABLE = np.array([10, 11, 12, 13], np.float32)
COMPUTE = {
    "add_sub": lambda inputs: {"S": inputs["A"] + inputs["B"], "D": inputs["A"] - inputs["B"]},
    "identity": lambda inputs: {"Y": inputs["X"]},
    "lookup": lambda inputs: {"Y": TABLE[inputs["X"]]},
}


class Arithmetic:
    """A good backend: model.json has what to compute, and the inputs and outputs with datatype and dims."""

    traits = BackendTraits(name="arithmetic", files={"model.json": ""})

    def complete(self, context):
        self.check_parameters(context)
        return completed(context.config, self.read(context)[1], default_batch_size(context.settings))

    def load(self, context):
        kind, interface = self.read(context)
        problems = [
            replace(each, message=f"{each.message}, in model.json") for each in mismatches(context.config, interface)
        ]
        if problems:
            raise ConfigError(problems)
        return Model(self, COMPUTE[kind], context.config, interface)

    def check_parameters(self, context):
        reader = ParameterReader(context.config, {})
        reader.refuse_misspelt(KnownNames("Arithmetic", ("PRECISION",)))
        reader.finish()

    def read(self, context):
        path = context.existing_path(context.model_path("model.json"))
        try:
            described = json.loads(path.read_bytes())
            tensors = [
                tuple(
                    ModelTensor(name, kind, DataType[f"TYPE_{kind}"], (-1, dim)) for name, kind, dim in described[side]
                )
                for side in ("inputs", "outputs")
            ]
        except ValueError as error:
            raise InvalidArgumentError(f"{path} cannot be read: {error}") from error
        return described["computes"], Interface(*tensors)

    def execute(self, model, batch):
        def run(alone):
            NarrowInputs(model.config, model.interface, "model.json").check(alone)
            outputs = model.compute({name: alone.input(name) for name in alone.requests[0].inputs})
            return {name: outputs[name] for name in self.outputs(model, alone)}

        return run_or_each_alone(batch, run, model.config.name, str)

    def outputs(self, model, batch):
        configured = [each.name for each in model.config.output]
        return [each for each in configured if each in (batch.requests[0].requested or configured)]


class Model:
    def __init__(self, backend, compute, config, interface):
        self.backend, self.compute, self.config, self.interface = backend, compute, config, interface

    def instantiate(self, placement):
        if placement.kind == "GPU":
            raise UnsupportedError("there is no GPU for arithmetic")
        return Instance(self)

    def close(self):
        pass


class Instance:
    def __init__(self, model):
        self.model = model

    def execute(self, batch):
        return self.model.backend.execute(self.model, batch)

    def close(self):
        pass


def model(computes, inputs, outputs):
    described = {"computes": computes, "inputs": inputs, "outputs": outputs}
    return SuiteModel(
        lambda workbench: workbench.path("model.json").write_text(json.dumps(described)),
        tuple(name for name, _, _ in inputs),
        tuple(name for name, _, _ in outputs),
    )


def identity(datatype, dims):
    kind = {"BYTES": "STRING"}.get(datatype, datatype)
    return model("identity", [("X", kind, int(dims))], [("Y", kind, int(dims))])


def suite_of(backend):
    return BackendSuite(
        backend,
        plugin="naiad_testing.backend_suite",
        frameworks=("sqlite3",),
        file="model.json",
        parameter="PRECISION",
        served_with=(),
        add_sub=model("add_sub", [(name, "FP32", 4) for name in "AB"], [(name, "FP32", 4) for name in "SD"]),
        identity=identity,
        lookup=model("lookup", [("X", "INT64", 1)], [("Y", "FP32", 1)]),
    )


@pytest.mark.parametrize("case", backend_cases(suite_of(Arithmetic())), ids=str)
def test_a_good_backend_passes_every_check(case, tmp_path):
    case.check(tmp_path)


class FailsTogether(Arithmetic):
    def execute(self, model, batch):
        try:
            return model.compute({name: batch.input(name) for name in batch.requests[0].inputs})
        except IndexError as error:
            failure = ModelFailedError(f"model 'm': {error}")
            return [failure for _ in batch.requests]


class Generous(Arithmetic):
    def outputs(self, model, batch):
        return [each.name for each in model.config.output]


class Numeric(Arithmetic):
    def execute(self, model, batch):
        answer = super().execute(model, batch)
        return answer if isinstance(answer, list) else {name: each.astype(float) for name, each in answer.items()}


class Reusing(Arithmetic):
    def __init__(self):
        self.kept = {}

    def execute(self, model, batch):
        for name, array in super().execute(model, batch).items():
            buffer = self.kept.setdefault(name, np.zeros(64, np.float32))[: array.size].reshape(array.shape)
            buffer[:] = array
        return {name: self.kept[name][: array.size].reshape(array.shape) for name in self.outputs(model, batch)}


class Trusting(Arithmetic):
    def check_parameters(self, context):
        pass

    def execute(self, model, batch):
        replies = [model.compute({name: each.array for name, each in one.inputs.items()}) for one in batch.requests]
        return [Reply(each) for each in replies]


@pytest.mark.parametrize(
    ("backend", "name", "message"),
    [
        (FailsTogether(), "one bad request", "the first request"),
        (Generous(), "outputs", "the requested outputs"),
        (Numeric(), "INT32", "INT32 alone"),
        (Reusing(), "outputs", "an answer after the next execution"),
        (Trusting(), "parameters", "nothing is refused"),
        (Trusting(), "narrow dims", "does not fit the model"),
    ],
)
def test_a_broken_backend_fails_the_check_for_it(backend, name, message, tmp_path):
    (case,) = [each for each in backend_cases(suite_of(backend)) if str(each) == name]

    with pytest.raises(ContractBroken, match=message):
        case.check(tmp_path)
