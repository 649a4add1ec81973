"""Checks of the conformance suite of backends: completion, execution, datatypes, sequences, refusals, serving."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from naiad.errors import (
    ConfigError,
    InvalidArgumentError,
    ModelFailedError,
    NaiadError,
    NotFoundError,
    UnsupportedError,
)
from naiad_config import DataType
from naiad_tensors.datatypes import TENSOR_TYPES
from naiad_tensors.tensors import Tensor
from naiad_testing.backend_models import SuiteModel, Trial
from naiad_testing.backends import BackendCase, check_backend, check_imports_no_framework
from naiad_testing.executing import outcomes_of
from naiad_testing.serving import serve
from naiad_testing.simulation import ContractBroken
from naiad_testing.workbench import Loaded, tensor_entry

_BATCHING = "dynamic_batching { preferred_batch_size: 3 max_queue_delay_microseconds: 10000000 }"


def expect(expected: object, actual: object, what: str) -> None:
    """Raise ContractBroken, saying `what`, where the two differ."""
    if expected != actual:
        raise ContractBroken(f"{what}: expected {expected!r}, and it is {actual!r}")


def refused(run: Callable[[], object], kinds: type[NaiadError] | tuple[type[NaiadError], ...], *facts: str) -> None:
    """Raise ContractBroken unless `run` raises an error of these kinds whose text has each of the facts."""
    try:
        run()
    except kinds as error:
        expect([], [fact for fact in facts if fact not in str(error)], f"missing in the error '{error}'")
    except Exception as error:
        raise ContractBroken(f"{type(error).__name__} is raised instead of {kinds}: {error}") from error
    else:
        raise ContractBroken(f"nothing is refused; expected {kinds} with {facts}")


def constant(rows: int, value: float, columns: int = 4) -> np.ndarray:
    """FP32[rows, columns], all of one value."""
    return np.full((rows, columns), value, np.float32)


def each_outcome(loaded: Loaded, *requests: Mapping[str, Any]) -> list[Any]:
    """The outputs as arrays, or the error, for each request of one batch."""
    return [
        outcome if isinstance(outcome, NaiadError) else {name: each.array for name, each in outcome.outputs.items()}
        for (outcome,) in outcomes_of(loaded.instance, requests, loaded.config)
    ]


def expect_output(expected: object, outcome: Any, name: str, what: str) -> None:
    """Raise ContractBroken, saying `what`, unless the outcome has that output with those values."""
    if isinstance(outcome, NaiadError):
        raise ContractBroken(f"{what} fails: {outcome}")
    expect(expected, outcome[name].tolist(), what)


def check_imports(trial: Trial) -> None:
    """The plugin's module imports none of the frameworks."""
    check_imports_no_framework(trial.suite.plugin, *trial.suite.frameworks)


def check_contract(trial: Trial) -> None:
    """`check_backend` holds for three requests of different sizes."""
    model, chance = trial.suite.add_sub, np.random.default_rng(0)
    requests = [
        {name: chance.standard_normal((rows, 4)).astype(np.float32) for name in model.inputs} for rows in (1, 3, 2)
    ]
    a, b = model.inputs
    expected = [dict(zip(model.outputs, (each[a] + each[b], each[a] - each[b]), strict=True)) for each in requests]
    check_backend(trial.suite.backend, BackendCase(trial.served(model), requests, expected, gpus=trial.suite.gpus))


def check_completion(trial: Trial) -> None:
    """What the configuration leaves open is filled from the model's file; what is written stays."""
    model = trial.suite.add_sub
    with trial.loaded(model) as loaded:
        config = loaded.config
    for names, tensors in ((model.inputs, config.input), (model.outputs, config.output)):
        described = {(each.name, each.data_type, each.dims) for each in tensors}
        expect({(name, DataType.TYPE_FP32, (4,)) for name in names}, described, "the completed tensors")
    if "max_batch_size" not in model.config:
        workbench = trial.empty()
        expect(
            (4, True), (config.max_batch_size, config.dynamic_batching is not None), "batching where none is written"
        )
        by_setting = workbench.complete(model.config, {"default-max-batch-size": "3"})
        expect(3, by_setting.max_batch_size, "max_batch_size with the backend's setting default-max-batch-size 3")
        written = workbench.complete(model.config + " max_batch_size: 2")
        expect(2, written.max_batch_size, "a max_batch_size that is written")


def check_outputs(trial: Trial) -> None:
    """Only the outputs that are requested and configured are there, and none changes with the next execution."""
    model = trial.suite.add_sub
    sent = dict(zip(model.inputs, (constant(1, 3), constant(1, 1)), strict=True))
    with trial.loaded(model) as loaded:
        expect([model.outputs[1]], list(loaded.execute(sent, requested=model.outputs[1:])), "the requested outputs")
        first = loaded.execute(sent)
        loaded.execute(dict(zip(model.inputs, (constant(1, 9), constant(1, 9)), strict=True)))
        expect([[4.0] * 4], first[model.outputs[0]].tolist(), "an answer after the next execution")
        odd = np.frombuffer(b"123" + np.arange(4, dtype=np.float32).tobytes(), np.float32, offset=3).reshape(1, 4)
        summed = loaded.execute(dict.fromkeys(model.inputs, odd))
        expect([[0, 2, 4, 6]], summed[model.outputs[0]].tolist(), "the sum of read-only memory at an odd address")
    if "output" not in model.config:
        with trial.loaded(model, tensor_entry("output", model.outputs[0], "FP32", "4")) as loaded:
            expect([model.outputs[0]], list(loaded.execute(sent)), "the outputs where one is configured")


def check_datatype(trial: Trial, model: SuiteModel, datatype: str) -> None:
    """Values of that datatype pass unchanged, alone and in a batch; so does a tensor without elements."""
    dtype, name = TENSOR_TYPES[datatype].dtype, model.inputs[0]
    values: list[Any] = [[[1, 0, 1]], [[0, 1, 1], [1, 1, 0]]]
    if datatype == "BYTES":
        odd = "é\0b".encode() if trial.suite.text_only else b"\xff\0\xfe"
        values = [[[b"a", odd, b""]], [[b"", b"b" * 300, b"c"], [odd, b"", b"d"]]]
    sent = [Tensor.of(name, np.array(rows, object if datatype == "BYTES" else np.float32), datatype) for rows in values]
    with trial.loaded(model) as loaded:
        alone = loaded.execute({name: sent[0]})[model.outputs[0]]
        expect((dtype, sent[0].array.tolist()), (alone.dtype, alone.tolist()), f"{datatype} alone")
        batch = loaded.execute(*({name: each} for each in sent))[model.outputs[0]]
        expect([row for each in sent for row in each.array.tolist()], batch.tolist(), f"{datatype} in a batch")
        empty = loaded.execute({name: Tensor(name, datatype, (2, 0), np.empty((2, 0), dtype))})[model.outputs[0]]
        expect((dtype, (2, 0)), (empty.dtype, empty.shape), f"a {datatype} tensor without elements")


def check_variable_dims(trial: Trial, model: SuiteModel) -> None:
    """A dim of -1 may differ from execution to execution."""
    with trial.loaded(model) as loaded:
        sent = [constant(rows, 1, columns) for rows, columns in ((1, 3), (4, 1), (2, 5))]
        shapes = [loaded.execute({model.inputs[0]: each})[model.outputs[0]].shape for each in sent]
    expect([(1, 3), (4, 1), (2, 5)], shapes, "the shapes of variable dims")


def check_narrow_dims(trial: Trial, model: SuiteModel) -> None:
    """A request that fits the configuration and not the model is refused with the input's name and shape."""
    entries = tensor_entry("input", model.inputs[0], "FP32", "-1") + tensor_entry(
        "output", model.outputs[0], "FP32", "3"
    )
    with trial.loaded(model, f"max_batch_size: 4 {entries}") as loaded:
        fitting, narrow = ({model.inputs[0]: constant(1, 1, columns)} for columns in (3, 2))
        good, bad = each_outcome(loaded, fitting, narrow)
        expect_output([[1.0] * 3], good, model.outputs[0], "the request that fits, in a batch with one that does not")
        expect(InvalidArgumentError, type(bad), "the request that does not fit the model, in a batch")
        refused(lambda: loaded.execute(narrow), InvalidArgumentError, f"'{model.inputs[0]}'", "[1,2]")


def check_failing_requests(trial: Trial, model: SuiteModel) -> None:
    """A request that fails does not fail the others of its batch, nor those that come later."""
    dtype = TENSOR_TYPES[trial.suite.lookup_datatype].dtype
    with trial.loaded(model) as loaded:
        requests = [{model.inputs[0]: np.array(rows, dtype)} for rows in ([[1]], [[9]], [[3], [0]])]
        first, bad, last = each_outcome(loaded, *requests)
        expect_output([[11.0]], first, model.outputs[0], "the first request of a batch with one that fails")
        expect(ModelFailedError, type(bad), "the request that fails")
        expect_output([[13.0], [10.0]], last, model.outputs[0], "the last request of a batch with one that fails")
        refused(lambda: loaded.execute(requests[1]), ModelFailedError, "model 'm'")
        (after,) = each_outcome(loaded, requests[0])
        expect_output([[11.0]], after, model.outputs[0], "a request after one that failed")


def check_sequence(trial: Trial, model: SuiteModel) -> None:
    """Controls and states are inputs and outputs of the model, and none of the configuration."""
    column = np.array([[1.0], [2.0]], np.float32)
    sent = dict(zip(model.inputs, (column, np.array([[1], [0]], np.float32), column * 10), strict=True))
    with trial.loaded(model) as loaded:
        expect([model.inputs[0]], [each.name for each in loaded.config.input], "the inputs beside controls and states")
        expect([model.outputs[0]], [each.name for each in loaded.config.output], "the outputs beside states")
        answer = loaded.execute(sent)
        for name in model.outputs:
            expect([[1.0], [22.0]], answer[name].tolist(), f"output '{name}' of a sequence's model")


def check_ragged(trial: Trial, model: SuiteModel) -> None:
    """Requests of different lengths share a ragged batch."""
    with trial.loaded(model) as loaded:
        requests = [{model.inputs[0]: np.array([row], np.float32)} for row in ([1, 2, 3], [4], [5, 6])]
        sums = [each[model.outputs[0]].tolist() for each in each_outcome(loaded, *requests)]
    expect([[[6.0]], [[4.0]], [[11.0]]], sums, "the sums of ragged requests")


def check_optional(trial: Trial, model: SuiteModel) -> None:
    """An optional input may be missing."""
    vector, factor = (np.array(values, np.float32) for values in ([1, 2, 3], [10]))
    with trial.loaded(model) as loaded:
        products = [
            loaded.execute(sent)[model.outputs[0]].tolist()
            for sent in ({model.inputs[0]: vector}, {model.inputs[0]: vector, model.inputs[1]: factor})
        ]
    expect([[2, 4, 6], [10, 20, 30]], products, "the outputs without and with the optional input")


def check_missing_file(trial: Trial) -> None:
    """A missing model file is named with what is there instead."""
    workbench = trial.empty()
    workbench.path("notes.txt").write_text("no model")
    refused(lambda: workbench.load(trial.suite.add_sub.config), NotFoundError, f"{trial.suite.file}'", "notes.txt")


def check_contradictions(trial: Trial) -> None:
    """A configuration that contradicts the model's file is refused with every problem and the file's name."""
    first, second = trial.suite.add_sub.inputs
    workbench = trial.written(trial.suite.add_sub)
    wrong = "max_batch_size: 4 " + tensor_entry("input", first, "INT32", "4")
    facts = (f"'{first}'", "TYPE_INT32", f"'{second}'", "[5]", trial.suite.file)
    refused(lambda: workbench.load(wrong + tensor_entry("input", second, "FP32", "5")), ConfigError, *facts)
    outputs = "".join(tensor_entry("output", name, "FP32", "4") for name in trial.suite.add_sub.outputs)
    missing = "max_batch_size: 4 " + tensor_entry("input", first, "FP32", "4") + outputs
    refused(lambda: workbench.load(missing), InvalidArgumentError, "1 inputs")


def check_parameters(trial: Trial) -> None:
    """A parameter that is one slip from one that the backend reads is refused; a user's own is left alone."""
    model, key = trial.suite.add_sub, trial.suite.parameter
    with trial.loaded(model, 'parameters { key: "note_of_mine" value { string_value: "x" } }'):
        pass
    misspelt = f'parameters {{ key: "{key}s" value {{ string_value: "1" }} }}'
    workbench = trial.empty()
    refused(lambda: workbench.load(model.config + misspelt), ConfigError, f"'{key}s'", f"'{key}'")


def check_gpu(trial: Trial) -> None:
    """An instance on a GPU that the framework cannot use is refused when it is loaded."""
    workbench = trial.written(trial.suite.add_sub)
    workbench.gpus = 1
    on_gpu = trial.suite.add_sub.config + "instance_group [ { kind: KIND_GPU gpus: [ 0 ] } ]"
    refused(lambda: workbench.load(on_gpu), (UnsupportedError, InvalidArgumentError), "GPU")


def check_served(trial: Trial) -> None:
    """Behind a server a model is warmed up, and requests share an execution."""
    model = trial.suite.add_sub
    tensor = "{ data_type: TYPE_FP32 dims: [ 4 ] zero_data: true }"
    inputs = " ".join(f'inputs {{ key: "{name}" value {tensor} }}' for name in model.inputs)
    more = f'model_warmup {{ name: "zeros" batch_size: 2 {inputs} }} instance_group {{ count: 1 }} {_BATCHING}'
    requests = [dict(zip(model.inputs, (constant(1, value), constant(1, 1)), strict=True)) for value in (1, 2, 3)]
    with serve(trial.served(model, more), plugins=trial.suite.served_with) as client:
        answers = client.infer_all(*requests)
        (counted,) = client.call(lambda server: server.statistics("m"))
    expect([0.0, 1.0, 2.0], [each[model.outputs[1]][0, 0].item() for each in answers], "what a server answers")
    expect((3, 1), (counted.inference_count, counted.execution_count), "the inferences and executions")
